"""Who was sent what, over all sessions: filters, formats, and the same from the store as from the log."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped,unused-ignore]
import pytest

from onrecord.projections import delivered, sweeping
from onrecord.projections.delivered import LeftOut, Sent, Wanted, whole
from onrecord.projections.pages.deliveries import delivery_row
from onrecord.projections.stored import StoredProjections, places, tables
from onrecord.transcript.events import (
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    SessionStarted,
    Target,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

Command = Callable[..., Any]
EVIL = '=HYPERLINK("http://x")\r\n\x1b[2J'


@pytest.fixture
def told(log: TranscriptLog) -> TranscriptLog:
    """Give a log of three sessions on two platforms."""
    log.append("a", SessionStarted(platform="signal", chat="c1", user="Ada"))
    log.append("a", UserMessageReceived(message="u", text="Is it up?", sender="ada-1"))
    log.append(
        "a",
        DeliveryAttempted(delivery="d1", turn="u", text="Yes."),
        DeliveryConfirmed(delivery="d1", platform_messages=["p1", "p2"]),
    )
    log.append("b", UserMessageReceived(message="u", text="And now?", sender="bob"))
    to = Target(platform="telegram", account="bot", chat="-100", thread="7")
    log.append(
        "b",
        DeliveryAttempted(delivery="d1", turn="u", text=EVIL, target=to, kind="notice"),
        DeliveryAttempted(delivery="d2", turn="u", text="No.", target=to),
        DeliveryFailed(delivery="d2", definite=False, reason="timed out"),
    )
    log.append("silent", UserMessageReceived(message="u", text="Hello?"))
    return log


def sent(log: TranscriptLog, wanted: Wanted | None = None, **how: Any) -> list[Sent]:
    return list(readable(delivered.delivered(log, wanted or Wanted(), whole, **how)))


def readable(found: Iterator[Sent | LeftOut]) -> Iterator[Sent]:
    for one in found:
        assert isinstance(one, Sent)
        yield one


def test_each_delivery_says_who_was_sent_what_and_when(told: TranscriptLog) -> None:
    first, notice, answer = sent(told)
    times = {record.version: record.recorded_at for record in told.read("a")}

    assert (first.session, first.user, first.senders) == ("a", "Ada", ["ada-1"])
    assert first.target == Target(platform="signal", chat="c1")
    assert (first.at, first.confirmed_at) == (times[3], times[4])
    assert (first.status, first.platform_messages) == ("delivered", ["p1", "p2"])
    assert (notice.kind, notice.text, notice.user) == ("notice", EVIL, "bob")
    assert (answer.status, answer.confirmed_at) == ("in_doubt", None)


def test_filters_choose(told: TranscriptLog) -> None:
    everything = sent(told)
    second = everything[1].at

    def chosen(**wanted: Any) -> list[str]:
        return [f"{one.session} {one.delivery}" for one in sent(told, Wanted(**wanted))]

    assert chosen(platform="telegram") == ["b d1", "b d2"]
    assert chosen(platform="signal", chat="c1") == ["a d1"]
    assert chosen(chat="-100", kinds=frozenset(("answer",))) == ["b d2"]
    assert chosen(statuses=frozenset(("in_doubt",))) == ["b d1", "b d2"]
    assert chosen(since=second) == ["b d1", "b d2"]
    assert chosen(until=second) == ["a d1"]
    assert chosen(since=datetime.now(UTC)) == []


def test_it_is_the_same_from_the_store_and_from_several_processes(
    told: TranscriptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded = sent(told)
    monkeypatch.setattr(sweeping, "WORTHWHILE", 0)
    monkeypatch.setattr(sweeping, "SHARE", 1)
    shared = sent(told, jobs=2)
    StoredProjections(told).rebuild()

    assert shared == folded
    assert sent(told) == folded


def test_a_long_session_is_read_some_turns_at_a_time(
    log: TranscriptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(7):
        log.append("s", UserMessageReceived(message=f"u{n}", text="?"))
        log.append("s", DeliveryAttempted(delivery=f"d{n}", turn=f"u{n}", text="!"))
    folded = sent(log)
    monkeypatch.setattr(places, "LONG", 3)
    monkeypatch.setattr(tables, "TURNS_AT_ONCE", 2)

    assert sent(log) == folded
    assert StoredProjections(log).behind() == []


def test_a_record_that_cannot_be_read_is_told(told: TranscriptLog, command: Command) -> None:
    with told.database.write() as connection:
        connection.execute("DROP TRIGGER records_update")
        connection.execute(
            "UPDATE records SET payload = x'c1' WHERE version = 3 AND session_key = "
            "(SELECT session_key FROM sessions WHERE name = ?)",
            (b"a",),
        )

    done = command("deliveries", "--json")

    assert done.code == 2
    assert [one["delivery"] for one in done.json["deliveries"]] == ["d1", "d1", "d2"]
    assert done.json["deliveries"][0]["status"] == "not_sent"
    assert done.err.count("\n") == 1
    assert "session 'a': what stands at version 3 can't be read" in done.err


def test_json_of_one_session_has_the_shape_that_it_had(
    told: TranscriptLog, command: Command
) -> None:
    one, everything = (
        command("deliveries", "a", "--json").json,
        command("deliveries", "--json").json,
    )

    assert (one["session"], [d["delivery"] for d in one["deliveries"]]) == ("a", ["d1"])
    assert [(d["session"], d["text"]) for d in everything["deliveries"]] == [
        ("a", "Yes."), ("b", EVIL), ("b", "No."),
    ]  # fmt: skip
    assert everything["counts"] == {"delivered": 1, "in_doubt": 2}


def test_a_page_tells_session_by_session(told: TranscriptLog, command: Command) -> None:
    page = command("deliveries").out
    lines = page.splitlines()

    assert [line for line in lines if not line.startswith(" ")] == [
        "a  Ada", "b  bob", "3 deliveries in 2 sessions: 2 in doubt, 1 delivered",
    ]  # fmt: skip
    assert "platform ids p1, p2" in page
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in page
    assert command("deliveries", "--chat", "none").out == "nothing was sent that fits\n"


def test_csv_guards_formulas_and_parquet_keeps_texts(
    told: TranscriptLog, command: Command, tmp_path: Path
) -> None:
    rows = list(
        csv.DictReader(io.StringIO(command("deliveries", "--format", "csv").out, newline=""))
    )
    out = tmp_path / "sent.parquet"
    command("deliveries", "--format", "parquet", "--out", str(out))
    table = pq.read_table(out).to_pylist()

    assert [row["text"] for row in rows] == ["Yes.", "'" + EVIL, "No."]
    assert [row["chat"] for row in rows] == ["c1", "'-100", "'-100"]
    assert rows[0]["platform_messages"] == "p1 p2"
    assert rows[2]["failures"] == "unclear: timed out"
    assert datetime.fromisoformat(rows[0]["attempted_at"]) == table[0]["attempted_at"]
    assert [row["text"] for row in table] == ["Yes.", EVIL, "No."]
    assert table[0]["platform_messages"] == ["p1", "p2"]
    assert (table[2]["confirmed_at"], table[2]["complete"]) == (None, False)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "  =", "\uff1d"])
def test_whatever_begins_like_a_formula_is_guarded(
    log: TranscriptLog, command: Command, start: str
) -> None:
    log.append("s", DeliveryAttempted(delivery="d", turn="t", text=f"{start}1+1"))

    (row,) = csv.DictReader(io.StringIO(command("deliveries", "--format", "csv").out, newline=""))

    assert row["text"] == f"'{start}1+1"


def test_a_row_has_a_cell_for_each_column(told: TranscriptLog) -> None:
    from onrecord.projections.pages.deliveries import COLUMNS

    assert {len(delivery_row(one)) for one in sent(told)} == {len(COLUMNS)}


def test_json_is_one_object_whatever_is_written(told: TranscriptLog, command: Command) -> None:
    assert json.loads(command("deliveries", "silent", "--json").out) == {
        "session": "silent", "deliveries": [], "counts": {},
    }  # fmt: skip
