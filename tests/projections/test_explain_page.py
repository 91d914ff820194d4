"""What `explain` prints: JSON as it was promised, and pages that name what they leave out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onrecord.projections.cli.explaining import TURNS_TOLD
from onrecord.transcript import events as e
from onrecord.transcript.log import TranscriptLog
from stories import user


def test_json_is_the_contract(command: Callable[..., Any], scenario: Callable[[str], Any]) -> None:
    scenario("produced-never-delivered")

    told = command("explain", "produced-never-delivered", "--json").json

    (turn,) = told["turns"]
    assert (told["session"], turn["turn"]) == ("produced-never-delivered", "t1")
    row = {
        "id": "a2", "role": "assistant", "text": "Here is the list: a, b, c.", "origin": "produced",
        "turn": "t1",
    }  # fmt: skip
    assert turn["timeline"][3:] == [
        {
            "versions": [4], "at": "2026-06-11T09:00:03Z", "lane": "gateway",
            "said": "platform refused: rejected by the platform [d1]",
            "changes": [
                {
                    "change": "changed",
                    "before": {**row, "delivery": "in_doubt", "versions": [2, 3]},
                    "after": {**row, "delivery": "undelivered", "versions": [2, 3, 4]},
                }
            ],
        },
        {
            "versions": [5], "at": "2026-06-11T09:00:04Z", "lane": "model",
            "said": "turn completed “Here is the list: a, b, c.”",
            "changes": [{"change": "closed", "turn": "t1", "outcome": "completed"}],
        },
    ]  # fmt: skip
    (finding,) = turn["findings"]
    assert sorted(finding) == [
        "advice", "code", "events", "happened", "meaning", "model_gets", "user_saw",
    ]  # fmt: skip
    assert finding["code"] == "produced-not-delivered"
    assert finding["events"][0] == {
        "version": 2, "type": "AssistantMessageProduced", "at": "2026-06-11T09:00:01Z",
        "said": "produced “Here is the list: a, b, c.”",
    }  # fmt: skip


def test_what_is_found_in_no_turn_is_told_of_the_session(
    log: TranscriptLog, command: Callable[..., Any]
) -> None:
    log.append("s", e.SourceFaultFound(code="gap", place="row 1", detail="row 2 is gone"))

    page = command("explain", "s").out

    assert page.startswith("s itself: 1 finding\n")
    assert "Row 2 is gone (row 1). Something stood there and is gone." in " ".join(page.split())
    assert "This says nothing of what the user saw." in page


def test_turns_beyond_those_that_a_page_tells_are_named(
    log: TranscriptLog, command: Callable[..., Any]
) -> None:
    turns = [f"t{n}" for n in range(TURNS_TOLD + 3)]
    log.append("s", *(user(f"u{turn}", "a", turn) for turn in turns))

    page = command("explain", "s").out

    assert [line for line in page.splitlines() if line.startswith("turn t")] == [
        f"turn t{n} of s: 1 finding" for n in range(TURNS_TOLD)
    ]
    assert page.endswith(
        f"\n2 more turns with findings: t{TURNS_TOLD}, t{TURNS_TOLD + 1}; name one\n"
    )
    assert len(command("explain", "s", "--json").json["turns"]) == TURNS_TOLD + 2


def test_of_many_events_the_first_and_the_last_are_shown(
    log: TranscriptLog, command: Callable[..., Any]
) -> None:
    parts = [
        e.DeliveryAttempted(delivery="d", turn="t1", text=f"part{n} ", offset=6 * n)
        for n in range(9)
    ]
    log.append("s", user("u1", "a"), *parts, e.TurnFinalized(turn="t1", outcome="abandoned"))

    page = command("explain", "s").out

    shown = [line.strip() for line in page.splitlines() if "version " in line]
    assert [line.partition("version ")[2].split(",")[0] for line in shown] == [
        "2", "3", "4", "5", "10",
    ]  # fmt: skip
    assert "… 4 events more" in page
