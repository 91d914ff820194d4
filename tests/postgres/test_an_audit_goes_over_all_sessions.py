"""An audit and the history of deliveries over all sessions are the same on PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.projections import sweeping
from onrecord.projections.auditing import Asked, audit
from onrecord.projections.delivered import Wanted, delivered, whole
from onrecord.projections.findings import Finding
from onrecord.projections.stored import StoredProjections
from onrecord.transcript.events import (
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    SessionStarted,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

SESSIONS, TURNS = 5, 4


def fill(log: TranscriptLog) -> None:
    for s in range(SESSIONS):
        log.append(f"s{s}", SessionStarted(platform="signal" if s % 2 else "telegram", chat="c"))
        for n in range(TURNS):
            outcome = DeliveryFailed(delivery=f"d{n}", definite=False) if n else None
            log.append(
                f"s{s}",
                UserMessageReceived(message=f"u{n}", text="?", imported_from=f"a.jsonl:{n + 1}"),
                DeliveryAttempted(delivery=f"d{n}", turn=f"u{n}", text="!"),
                outcome or DeliveryConfirmed(delivery=f"d{n}"),
            )


def found(log: TranscriptLog, asked: Asked | None = None, **how: Any) -> list[Finding]:
    return [one for audited in audit(log, asked or Asked(), **how) for one in audited.findings]


def test_it_is_the_same_folded_shared_and_stored(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "WORTHWHILE", 0)
    monkeypatch.setattr(sweeping, "SHARE", 12)
    with TranscriptLog.open(postgres_url) as log:
        fill(log)
        folded, told = found(log), list(delivered(log, Wanted(), whole))
        shared, told_shared = found(log, jobs=2), list(delivered(log, Wanted(), whole, jobs=2))
        StoredProjections(log).rebuild()
        stored, told_stored = found(log), list(delivered(log, Wanted(), whole))
        signal = found(log, Asked(platform="signal"))
        since = next(log.read("s3")).recorded_at
        late = {one.session for one in found(log, Asked(since=since))}
        places = [one.sources for one in audit(log, Asked(sources=True), session="s0")]

    codes = [one.code for one in folded if one.session == "s0"]
    assert codes.count("turn-unclosed") == TURNS - 1
    assert codes.count("delivery-in-doubt") == TURNS - 2
    assert shared == stored == folded
    assert told == told_shared == told_stored
    assert len(told) == SESSIONS * TURNS
    assert {one.session for one in signal} == {"s1", "s3"}
    assert late == {"s3", "s4"}
    assert set(places[0].values()) == {f"a.jsonl:{n}" for n in range(1, TURNS)}
