"""Many processes append and read, are killed and stopped: what each was told and read stays true."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from elle import anomalies
from elle_history import make

HARMS = {"quick": 8, "soak": 500}[os.environ.get("ONRECORD_HYPOTHESIS_PROFILE", "quick")]
DATABASES = ("sqlite", "postgres")
SHOWN = 10

pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no SIGSTOP on this system"),
]


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/log.db"
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


def test_no_process_is_told_or_reads_what_is_not_so(
    url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = make(url, tmp_path, HARMS, seed=int.from_bytes(os.urandom(4), "big"))

    found = anomalies(made.history)
    outcomes = Counter((done.kind, done.outcome) for done in made.history.operations)
    with capfd.disabled():
        told = ", ".join(
            f"{kind} {outcome}: {n}" for (kind, outcome), n in sorted(outcomes.items())
        )
        print(
            f"\n{url.partition(':')[0]}: {told}; records: {len(made.history.everything)}, "
            f"{dict(made.harms)}, anomalies: {len(found)}",
            file=sys.stderr,
        )
    assert found[:SHOWN] == []
    assert made.verified
    assert min(made.harms["killed"], made.harms["stopped"]) > 2
    assert outcomes["append", "ok"] > 100
    assert outcomes["read", "ok"] > 5
