"""A clock that steps back changes the times on record, and neither order, versions nor leases."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from other_process import run

from onrecord.projections.transcript import build
from onrecord.transcript.errors import LeaseHeld
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.verify import verify

STEPS = (0, 5, -3600, -3590, -86400, 60)
"""Seconds that the clock is off, append by append."""

TURNS = """
import json, sys, time
from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog

true, off = time.time_ns, 0
time.time_ns = lambda: true() + off * 10**9
with TranscriptLog.open(sys.argv[1]) as log:
    log.leases.acquire("held", "this process", ttl=3600)
    for n, off in enumerate(json.loads(sys.argv[2])):
        lease = log.leases.acquire("s", "this process", ttl=3600)
        assert lease.generation == n + 1, lease
        before = time.time_ns() // 1000
        (record,) = log.append("s", UserMessageReceived(message=f"m{n}", text=f"{n}"), lease=lease)
        log.append(f"other {n}", UserMessageReceived(message=f"o{n}", text=f"{n}"))
        log.leases.check(lease)
        print(before, time.time_ns() // 1000, record.position)
"""


@pytest.mark.faults
def test_order_and_leases_are_the_logs(tmp_path: Path) -> None:
    path = tmp_path / "log.db"

    told = [
        tuple(int(part) for part in line.split())
        for line in run(TURNS, str(path), json.dumps(STEPS)).splitlines()
    ]

    with TranscriptLog.open(path) as log:
        records = list(log.read("s"))
        assert [record.version for record in records] == [1, 2, 3, 4, 5, 6]
        assert [record.position for record in records] == sorted(at for _, _, at in told)
        assert [record.generation for record in records] == [1, 2, 3, 4, 5, 6]
        times = [record.recorded_at for record in records]
        assert times != sorted(times)
        for at, (before, after, _) in zip(times, told, strict=True):
            assert before <= _microseconds(at) <= after
        positions = [record.position for record in log.read_all()]
        assert positions == sorted(set(positions))
        assert [row.text for row in build(log, "s").rows if row.role == "user"] == [*"012345"]
        with pytest.raises(LeaseHeld):
            log.leases.acquire("held", "another")
        assert verify(log).faults == []


def _microseconds(at: datetime) -> int:
    return (at - datetime.fromisoformat("1970-01-01T00:00:00+00:00")) // timedelta(microseconds=1)
