"""An audit of all sessions finds the same however it gets there, and no session stops it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from onrecord.projections import sweeping
from onrecord.projections.auditing import Asked, audit
from onrecord.projections.codes import CODES
from onrecord.projections.conversation import Conversation
from onrecord.projections.findings import Finding, findings
from onrecord.projections.stored import StoredProjections, tables
from onrecord.projections.stored import places as stored_places
from onrecord.transcript.events import (
    AssistantMessageProduced,
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    SessionStarted,
    Source,
    Target,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

SCENARIOS = sorted((Path(__file__).resolve().parent.parent / "scenarios").glob("*.json"))
Scenario = Callable[[str], Mapping[str, Any]]


def found(log: TranscriptLog, asked: Asked | None = None, **how: Any) -> list[Finding]:
    return [one for audited in audit(log, asked or Asked(), **how) for one in audited.findings]


@pytest.fixture
def incidents(log: TranscriptLog, scenario: Scenario) -> TranscriptLog:
    for path in SCENARIOS:
        scenario(path.stem)
    return log


def damage(log: TranscriptLog, session: str, version: int) -> None:
    with log.database.write() as connection:
        connection.execute("DROP TRIGGER IF EXISTS records_update")
        connection.execute(
            "UPDATE records SET payload = x'c1' WHERE version = ? AND session_key = "
            "(SELECT session_key FROM sessions WHERE name = ?)",
            (version, session.encode()),
        )


def doubted(log: TranscriptLog, session: str, platform: str = "chat") -> None:
    """Record a turn whose reply is in doubt."""
    to = Target(platform=platform, chat="c")
    log.append(
        session,
        UserMessageReceived(message="u", text="Is it up?"),
        DeliveryAttempted(delivery="d", turn="u", text="Yes.", target=to),
        DeliveryFailed(delivery="d", definite=False, reason="timed out"),
        TurnFinalized(turn="u"),
    )


def test_incidents_are_found_as_each_session_tells_them(incidents: TranscriptLog) -> None:
    alone = [
        one
        for head in incidents.sessions()
        for one in findings(head.name, incidents.read(head.name))
    ]

    assert len({one.code for one in alone}) >= 8
    assert found(incidents) == alone


def test_processes_that_share_the_work_find_the_same_in_the_same_order(
    incidents: TranscriptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = found(incidents)
    monkeypatch.setattr(sweeping, "WORTHWHILE", 0)
    monkeypatch.setattr(sweeping, "SHARE", 20)
    told: list[tuple[int, int]] = []

    shared = found(incidents, jobs=2, progress=lambda done, total: told.append((done, total)))

    records = incidents.last_position()
    assert shared == alone
    assert (told[0], told[-1]) == ((0, records), (records, records))
    assert len(told) > len(SCENARIOS) / 4


@pytest.mark.parametrize("behind", [False, True])
def test_what_is_stored_is_read_and_the_rest_folded(
    incidents: TranscriptLog, monkeypatch: pytest.MonkeyPatch, *, behind: bool
) -> None:
    StoredProjections(incidents).rebuild()
    if behind:
        for path in SCENARIOS[::2]:
            incidents.append(path.stem, UserMessageReceived(message="later", text="And now?"))
    incidents.append("not stored", UserMessageReceived(message="u", text="Hello?"))
    monkeypatch.setattr(tables, "TURNS_AT_ONCE", 1)

    stored = found(incidents)

    assert stored == found(incidents, Asked(anew=True))
    assert {one.code for one in stored} >= {"delivery-in-doubt", "turn-unclosed"}


def test_a_session_of_many_records_is_stored_first(
    incidents: TranscriptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded = found(incidents)
    monkeypatch.setattr(stored_places, "LONG", 10)

    assert found(incidents) == folded
    stored = {head.name for head in incidents.sessions()} - set(
        StoredProjections(incidents).behind()
    )
    longer = {head.name for head in incidents.sessions() if head.version > 10}
    assert stored == longer != set()


def test_stored_rows_that_were_changed_are_not_taken_for_the_promise(log: TranscriptLog) -> None:
    doubted(log, "s")
    StoredProjections(log).catch_up("s")
    with log.database.write() as connection:
        connection.execute("UPDATE projected_turns SET rows = x'90'")
        connection.execute("DELETE FROM projected_findings")

    assert [one.code for one in found(log)] == ["delivery-in-doubt"]


@pytest.mark.parametrize("stored", [False, True])
def test_a_record_that_cannot_be_read_stops_no_session(log: TranscriptLog, *, stored: bool) -> None:
    for session in ("a", "broken", "z"):
        doubted(log, session)
    damage(log, "broken", 1)
    damage(log, "broken", 3)
    if stored:
        StoredProjections(log).catch_up("broken")

    by_session = {one.session: one.findings for one in audit(log, Asked())}

    aside = [one for one in by_session["broken"] if one.code == "record-set-aside"]
    assert [one.versions for one in aside] == [(1,), (3,)]
    assert "can't be read" in aside[0].detail
    assert [one.code for one in by_session["z"]] == ["delivery-in-doubt"]


def test_a_record_that_a_fold_fails_at_is_set_aside_too(
    log: TranscriptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubted(log, "s")
    evolve = Conversation.evolve

    def fail(self: Conversation, event: Any, version: int) -> None:
        if version == 3:
            raise ZeroDivisionError("a bug")
        evolve(self, event, version)

    monkeypatch.setattr(Conversation, "evolve", fail)

    codes = {one.code: one.detail for one in found(log)}
    assert "ZeroDivisionError: a bug" in codes["record-set-aside"]


def test_a_session_that_breaks_the_promise_is_told_and_the_others_are_audited(
    log: TranscriptLog, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    doubted(log, "s")
    log.append("untouched", UserMessageReceived(message="u", text="Hello?"))
    monkeypatch.setattr(Conversation, "rows", lambda *_, **__: [])

    failed = {one.session: one.failed for one in audit(log, Asked())}
    done = command("audit")

    assert "isn't in its turn" in failed["s"]
    assert failed["untouched"] == ""
    assert (done.code, done.out) == (2, "nothing found in 2 sessions\n")
    assert done.err == f"onrecord: {failed['s']}\n"


def test_a_platform_is_that_of_the_session_its_messages_or_its_replies(log: TranscriptLog) -> None:
    doubted(log, "by target", "signal")
    doubted(log, "by start")
    log.append("by start", SessionStarted(platform="signal"))
    doubted(log, "by source")
    source = Source(platform="signal", chat="c", message="1")
    log.append("by source", UserMessageReceived(message="u2", text="Hi", source=source))
    doubted(log, "elsewhere")
    log.append("elsewhere", UserMessageReceived(message="u2", text="what about signal?"))

    told = {one.session for one in found(log, Asked(platform="signal"))}

    assert told == {"by target", "by start", "by source"}


def test_since_asks_when_the_newest_of_the_records_was_written(log: TranscriptLog) -> None:
    doubted(log, "before")
    records = list(log.read("before"))
    log.append(
        "before", DeliveryConfirmed(delivery="d"), UserMessageReceived(message="u2", text="")
    )
    log.append("before", AssistantMessageProduced(turn="u2", message="m", text="Hm."))
    log.append("before", TurnFinalized(turn="u2"))
    doubted(log, "after")
    newest = list(log.read("after"))[-1].recorded_at

    def since(moment: datetime) -> list[tuple[str, str]]:
        return [(one.session, one.code) for one in found(log, Asked(since=moment))]

    assert since(records[0].recorded_at) == [
        ("before", "produced-not-delivered"), ("after", "delivery-in-doubt"),
    ]  # fmt: skip
    assert since(newest - (newest - list(log.read("before"))[-1].recorded_at) / 2) == [
        ("after", "delivery-in-doubt")
    ]
    assert since(datetime.now(UTC) + timedelta(days=1)) == []


def test_only_the_codes_that_are_asked_for_are_told(incidents: TranscriptLog) -> None:
    asked = Asked(codes=frozenset(("delivery-in-doubt", "turn-unclosed")))

    assert {one.code for one in found(incidents, asked)} == asked.codes
    assert asked.codes < set(CODES)
