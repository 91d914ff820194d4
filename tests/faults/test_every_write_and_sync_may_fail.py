"""Wherever a write or a sync fails, the caller is told before anything is sent, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import injection
import pytest
from failing_turns import ALL
from fault_judge import Line, judge

from onrecord.transcript.log import TranscriptLog

POINTS = 120
"""Of some 2,400; `make faults` tries all of them."""
LIMIT_SECONDS = 300

pytestmark = pytest.mark.faults


@pytest.mark.slow
@pytest.mark.skipif(injection.missing() is not None, reason=str(injection.missing()))
def test_a_disk_that_fails_at_any_call_loses_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    sweep = Path(__file__).with_name("fault_sweep.py")

    done = subprocess.run(
        [sys.executable, str(sweep), "--points", str(POINTS)],
        capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    with capfd.disabled():
        print(f"\n{done.stdout.splitlines()[-1]}", file=sys.stderr)


def lines(*said: str) -> list[Line]:
    return [line.split() for line in said]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Give a log that holds the first two appends."""
    with TranscriptLog.open(f"sqlite:///{tmp_path}/log.db") as log:
        for append in ALL[:2]:
            log.append(append.session, *append.events)
    return f"sqlite:///{tmp_path}/log.db"


def test_the_judge_takes_what_is_true(url: str) -> None:
    said = ["try 0", "acked 0", "try 1", "failed 1 AppendInDoubt unknown False True", "read chat 1"]

    assert judge(url, lines(*said)) == []


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (["try 0", "acked 0", "try 1", "acked 1", "try 2", "acked 2"], "acknowledged and stands"),
        (["try 1", "failed 1 StorageFailed no False True"], "stored was 'no'"),
        (["try 0", "acked 0"], "stored was 'not tried'"),
        (["try 0", "acked 0", "try 1", "sent 1", "acked 1"], "before it was acknowledged"),
        (["try 0", "failed 0 StorageFailed unknown True True"], "may be sent"),
        (["try 0", "acked 0", "read chat 101"], "doesn't read it"),
        (["try 0", "failed 0 StorageFull no False True", "read chat 1"], "process reads it"),
    ],
)
def test_the_judge_finds_what_is_not(url: str, said: list[str], found: str) -> None:
    assert any(found in fault for fault in judge(url, lines(*said)))


def test_the_judge_finds_half_an_append(url: str) -> None:
    with TranscriptLog.open(url) as log:
        log.append("chat", ALL[4].events[0])

    assert any("in parts" in fault for fault in judge(url, lines("try 4")))
    assert ALL[4].ids[0] == UUID(int=401)
