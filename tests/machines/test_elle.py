"""Many processes append and read, are killed and stopped: what each was told and read stays true."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from postgres_server import Server
from standby_server import control, copy_of

from elle import anomalies
from elle_history import Made, make

HARMS = {"quick": 8, "soak": 500}[os.environ.get("ONRECORD_HYPOTHESIS_PROFILE", "quick")]
SHOWN = 10

pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no SIGSTOP on this system"),
]


def hold(made: Made, what: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Say what the history is of, and hold that it is one that a log may have."""
    found = anomalies(made.history)
    outcomes = Counter((done.kind, done.outcome) for done in made.history.operations)
    with capfd.disabled():
        told = ", ".join(
            f"{kind} {outcome}: {n}" for (kind, outcome), n in sorted(outcomes.items())
        )
        print(
            f"\n{what}: {told}; records: {len(made.history.everything)}, "
            f"{dict(made.harms)}, anomalies: {len(found)}",
            file=sys.stderr,
        )
    assert found[:SHOWN] == []
    assert made.verified
    assert min(made.harms["killed"], made.harms["stopped"]) > 2
    assert outcomes["append", "ok"] > 100
    assert outcomes["read", "ok"] > 5


def test_no_process_is_told_or_reads_what_is_not_so(
    each_url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = make(each_url, tmp_path, HARMS, seed=int.from_bytes(os.urandom(4), "big"))

    hold(made, each_url.partition(":")[0], capfd)


def test_a_server_that_crashes_in_between_makes_nothing_of_it_untrue(
    postgres_server: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with copy_of(postgres_server) as server:
        made = make(
            server.url("postgres"),
            tmp_path,
            HARMS + HARMS // 2,
            seed=int.from_bytes(os.urandom(4), "big"),
            crash=lambda: control(server, "-m", "immediate", "restart"),
        )

    hold(made, "crashing", capfd)
    assert made.harms["crashed"] > 2
