"""JSON lines: export → import → export is the identity, twice adds nothing, bad lines are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.events import ModelCalled, UserMessageReceived
from onrecord.transcript.interchange import export_lines, import_lines
from onrecord.transcript.log import TranscriptLog

SCENARIOS = sorted((Path(__file__).parent.parent / "scenarios").glob("*.json"))


def lines(*found: dict[str, Any]) -> list[bytes]:
    return [json.dumps(line).encode() for line in found]


def message(**fields: Any) -> dict[str, Any]:
    return {"session": "s", "type": "UserMessageReceived", "message": "m", "text": "hi", **fields}


def without_added(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line)
    return {k: v for k, v in found.items() if k not in ("position", "digest", "imported_at")}


def test_an_import_keeps_times_and_says_so() -> None:
    with TranscriptLog.open("sqlite://") as log:
        recorded_at = "2026-01-02T03:04:05.123456Z"
        import_lines(log, lines(message(recorded_at=recorded_at, version=9, position=7)), "f")

        line = json.loads(next(export_lines(log, "s")))

    assert (line["recorded_at"], line["version"], line["position"]) == (recorded_at, 1, 1)
    assert line["imported_at"] > recorded_at


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenarios_round_trip(path: Path) -> None:
    events = json.loads(path.read_text())["events"]
    with TranscriptLog.open("sqlite://") as log, TranscriptLog.open("sqlite://") as other:
        done = import_lines(log, lines(*events), path.name)
        assert import_lines(log, lines(*events), path.name).added == 0
        first = list(export_lines(log, done.sessions[0]))
        import_lines(other, first, "again")
        second = list(export_lines(other, done.sessions[0]))

    assert [without_added(line) for line in second] == [without_added(line) for line in first]
    assert done.added + done.known == len(events)


def test_equal_lines_without_key_are_told_apart_by_their_ordinal() -> None:
    broken = {"session": "s", "type": "StreamBroken", "turn": "t", "reason": "reset"}
    with TranscriptLog.open("sqlite://") as log:
        given = lines(broken, broken, {**broken, "reason": "other"})

        assert import_lines(log, given, "f").added == 3
        assert import_lines(log, given, "f").added == 0
        assert import_lines(log, [*given, *lines(broken)], "f").added == 1


def test_fields_of_the_events_own_win() -> None:
    with TranscriptLog.open("sqlite://") as log, TranscriptLog.open("sqlite://") as other:
        log.append("s", ModelCalled(turn="t", call="c", version=41, digest="d"))
        log.append("s", ModelCalled(turn="t", call="e"))
        import_lines(other, export_lines(log, "s"), "f")

        calls = [record.event for record in other.read("s")]

    assert [(c.version, c.digest) for c in calls if isinstance(c, ModelCalled)] == [
        (41, "d"), (0, "")
    ]  # fmt: skip


def test_surrogates_and_unknown_things_survive() -> None:
    given = lines(
        message(text="a\ud800b", colour="red"),
        {
            "session": "s",
            "type": "PlanMade",
            "steps": [1, {"a": None}],
            "id": str(__import__("uuid").uuid4()),
        },
    )
    with TranscriptLog.open("sqlite://") as log, TranscriptLog.open("sqlite://") as other:
        import_lines(log, given, "f")
        first = list(export_lines(log, "s"))
        import_lines(other, first, "g")
        second = [json.loads(line) for line in export_lines(other, "s")]

    assert second[0]["colour"] == "red"
    assert second[0]["text"] == "a\ufffdb"
    assert second[0]["replaced"] == {"text": "Ye2ggGI="}
    assert second[1]["steps"] == [1, {"a": None}]


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (b"{", "JSON object"),
        (b"[]", "JSON object"),
        (b"\xff\xfe", "JSON object"),
        (b'{"session": "s"}', '"type"'),
        (b'{"type": "SessionEnded"}', '"session"'),
        (b'{"session": 5, "type": "SessionEnded"}', '"session"'),
        (b'{"session": "s", "type": "UserMessageReceived", "message": "m"}', "text"),
        (b'{"session": "s", "type": "UserMessageReceived", "message": "", "text": ""}', "non-empty"),
        (b'{"session": "s", "type": "SessionEnded", "id": "nope"}', "fields of SessionEnded"),
        (b'{"session": "s", "type": "SessionEnded", "at": "2026-01-01T00:00:00"}', "time zone"),
        (b'{"session": "s", "type": "SessionEnded", "recorded_at": "x"}', "fields of SessionEnded"),
        (b'{"session": "s", "type": "SessionEnded", "x": NaN}', "NaN"),
        (b'{"session": "s", "type": "Odd", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "JSON"),
        (b'{"session": "s", "type": "DeliveryAttempted", "delivery": "d", "text": "x", "offset": 3}',
         "follow on"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_and_nothing_of_its_session_stays(bad: bytes, expected: str) -> None:
    with TranscriptLog.open("sqlite://") as log:
        with pytest.raises(ImportRefused, match=r"incident\.jsonl, line 3: ") as caught:
            import_lines(log, [*lines(message()), b"", bad], "incident.jsonl")

        assert expected in str(caught.value)
        assert (caught.value.file, caught.value.line, caught.value.stored) == (
            "incident.jsonl",
            3,
            "no",
        )
        assert log.version("s") == 0


def test_a_conflicting_line_is_kept_beside() -> None:
    with TranscriptLog.open("sqlite://") as log:
        given = lines(message(), message(text="other"))

        assert import_lines(log, given, "f").added == 2
        assert import_lines(log, given, "f").added == 0
        assert [r.event.conflicts_with is not None for r in log.read("s")] == [False, True]


def test_sessions_of_one_file_are_kept_apart() -> None:
    given = lines(*(message(session=f"s{n % 3}", message=f"m{n}") for n in range(30)))
    with TranscriptLog.open("sqlite://") as log:
        assert import_lines(log, given, "f").sessions == ("s0", "s1", "s2")
        events = [record.event for record in log.read("s1")]

    assert [e.message for e in events if isinstance(e, UserMessageReceived)] == [
        f"m{n}" for n in range(1, 30, 3)
    ]


@pytest.mark.parametrize("id", [7, "abc", ""])
def test_an_id_that_is_none_is_named(id: Any) -> None:
    line = {"session": "s", "type": "SessionEnded", "id": id}

    with TranscriptLog.open("sqlite://") as log, pytest.raises(ImportRefused, match="is no UUID"):
        import_lines(log, lines(line), "f")
