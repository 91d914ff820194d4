"""`explain` tells one turn: its events in three lanes, and of each finding a paragraph of its facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given

from histories import HISTORIES, recorded
from onrecord.projections.accounts import ACCOUNTS
from onrecord.projections.codes import CODES
from onrecord.projections.explaining import EVENTS_OF_A_STREAM, Paragraph, explain
from onrecord.projections.findings import findings
from onrecord.projections.pages.explanation import explanation_shape
from onrecord.transcript import events as e
from onrecord.transcript.importers import codes as import_codes
from onrecord.transcript.log import TranscriptLog
from stories import end, sent, user


def paragraphs(*events: e.Event) -> dict[str, Paragraph]:
    records = recorded(list(events))
    return {p.code: p for one in explain("s", lambda: records) for p in one.paragraphs}


def test_each_code_has_its_account() -> None:
    assert sorted(ACCOUNTS) == sorted(CODES)


def test_each_code_that_an_import_tells_has_a_meaning() -> None:
    told = {code for name, code in vars(import_codes).items() if name.isupper()}

    assert told < set(CODES)


@given(HISTORIES)
def test_each_finding_of_any_history_gets_its_paragraph(events: list[e.Event]) -> None:
    records = recorded(events)
    explained = explain("s", lambda: records)

    told = [(one.turn, p.code) for one in explained for p in one.paragraphs]
    assert sorted(told) == sorted((f.turn, f.code) for f in findings("s", records))
    for paragraph in (p for one in explained for p in one.paragraphs):
        words = (paragraph.happened, paragraph.saw, paragraph.next, paragraph.advice)
        assert all(text.strip() and text[-1] in ".”" for text in words)
    for one in explained:
        assert explanation_shape(one)["turn"] == one.turn


@pytest.mark.parametrize(
    ("name", "code", "happened", "saw", "gets"),
    [
        pytest.param(
            "killed-mid-stream", "delivery-in-doubt",
            "At 09:00:05 the rest of “In WAL mode readers do not block writers”, from character 27 on, "
            "was on its way, and nothing more was heard of it, as when a process is killed. The turn "
            "ended abandoned at 09:00:06.",
            "the platform took 27 of 40 characters for certain",
            "as said, though that is in doubt",
        ),
        pytest.param(
            "split-message-fails-midway", "partly-delivered",
            "The whole text has 24 characters: “First part. Second part.” Only its first 12 went out, "
            "beginning at 09:00:02. What follows was refused: rejected by the platform at 09:00:05; the "
            "turn ended completed at 09:00:06.",
            "A beginning, 11 of 24 characters: “First part.”",
            "which is what the user got",
        ),
        pytest.param(
            "produced-never-delivered", "produced-not-delivered",
            "At 09:00:01 the model produced “Here is the list: a, b, c.” It was attempted, and the "
            "platform took nothing of it: rejected by the platform at 09:00:03. The turn ended completed "
            "at 09:00:04.",
            "Nothing of “Here is the list: a, b, c.”",
            "as if it had been said, though the user never got it",
        ),
        pytest.param(
            "footer-appended", "delivered-differs",
            "The user read “All files edited. 3 files changed”, and the model produced “All files "
            "edited.”: what the user read goes on with “3 files changed”.",
            "“All files edited. 3 files changed”.",
            "The assistant row “All files edited. 3 files changed”, as the user read it.",
        ),
        pytest.param(
            "same-reply-sent-twice", "delivered-twice",
            "“All green.” was sent and taken 2 times, at 09:00:02, 09:00:04, as messages d1-p1, d2-p1 of "
            "the platform.",
            "“All green.”",
            "as the user read it",
        ),
        pytest.param(
            "interrupted-with-pending-calls", "unanswered-tool-call",
            "At 09:00:01 the model called read [c2]. No result came; the turn ended interrupted at "
            "09:00:03.",
            "The session holds no delivery",
            "The tool row “[no result: the turn ended before the tool answered]”, which nobody said",
        ),
        pytest.param(
            "orphan-tool-result", "orphan-tool-result",
            "At 09:00:01 the result “approved” of call c9 came in. No message of the session makes that "
            "call.",
            "“Approved.”",
            "The assistant row “Approved.”, as the user read it.",
        ),
        pytest.param(
            "delivered-reply-after-tools-lost-at-restart", "turn-unclosed",
            "The turn began at 09:00:00, a later one began, and this one was never finalised. The last of "
            "it, at 09:00:04: platform took all as d1-p1 [d1].",
            "“Two unread messages.”",
            "The assistant row “Two unread messages.”, as the user read it.",
        ),
    ],
    ids=lambda text: text if text in CODES else "",
)  # fmt: skip
def test_a_paragraph_is_made_of_the_turns_facts(
    command: Callable[..., Any],
    scenario: Callable[[str], Any],
    name: str,
    code: str,
    happened: str,
    saw: str,
    gets: str,
) -> None:
    scenario(name)

    done = command("explain", name, "--json")

    (found,) = [f for turn in done.json["turns"] for f in turn["findings"] if f["code"] == code]
    assert done.code == 1
    assert found["happened"] == happened
    assert saw in found["user_saw"]
    assert gets in found["model_gets"]
    assert found["events"]


def test_a_lost_reply_of_a_source_is_told_with_its_places() -> None:
    at: dict[str, Any] = {"writer": "import:hermes"}
    told = paragraphs(
        e.UserMessageReceived(message="1", text="Book it", imported_from="messages 1", **at),
        e.DeliveryAttempted(
            delivery="d", turn="1", text="Booked.", imported_from="gateway.log:7", **at
        ),
        e.DeliveryConfirmed(
            delivery="d", platform_messages=["99"], imported_from="gateway.log:8", **at
        ),
        end("1"),
    )["delivered-not-in-source"]

    assert "“Booked.” went out at" in told.happened
    assert "(gateway.log:7), as 99 of the platform" in told.happened
    assert [one.source for one in told.evidence] == ["gateway.log:7", "gateway.log:8"]
    assert "`onrecord show s --as PROFILE`" in told.advice


def test_a_fault_of_a_source_is_told_in_the_imports_words() -> None:
    place = "messages 5"
    told = paragraphs(
        user("u1", "a"),
        e.SourceFaultFound(
            code="duplicate-in-source", place=place, detail="a second row", turn="t1",
            imported_from=place,
        ),
        e.SourceFaultFound(code="from-the-future", place="row 9", detail="it is new"),
    )  # fmt: skip

    assert told["duplicate-in-source"].happened.startswith("A second row (messages 5). ")
    assert [one.at for one in told["duplicate-in-source"].evidence] == [None]
    assert told["from-the-future"].happened.startswith("It is new (row 9). ")


def test_where_words_are_lost_the_user_may_have_seen_them() -> None:
    lost = e.SourceFaultFound(
        code="content-unrecoverable", place="gateway.log:7", detail="24 characters", turn="t1"
    )
    call = e.AssistantMessageProduced(turn="t1", message="m", tool_calls=[e.ToolCall("c", "run")])
    silent = paragraphs(user("u1", "a"), lost, call, end(), *sent("d9", "It is nine."))
    told = paragraphs(user("u1", "a"), lost, *sent("d1", "Hello.", turn="t1"))

    wanted = "Perhaps what is lost: nothing else of this turn is on record as sent."
    assert silent["content-unrecoverable"].saw == wanted
    assert silent["unanswered-tool-call"].saw == wanted
    assert told["content-unrecoverable"].saw == ("“Hello.” Perhaps also what is lost of this turn.")


def test_a_contradiction_names_both_records() -> None:
    taken = uuid4()
    told = paragraphs(
        user("u1", "a"),
        e.AssistantMessageProduced(id=taken, turn="t1", message="m1", text="Yes."),
        e.AssistantMessageProduced(
            id=uuid4(), conflicts_with=taken, turn="t1", message="m1", text="No.", writer="late"
        ),
    )["conflicting-record"]

    assert "late said: produced “No.” (contradicts an earlier record)" in told.happened
    assert "Version 2 says: produced “Yes.”" in told.happened


def test_many_parts_of_a_stream_are_one_moment() -> None:
    parts = [
        event
        for n in range(EVENTS_OF_A_STREAM)
        for event in (
            e.DeliveryAttempted(delivery="d", turn="t1", text=f"part{n} ", offset=6 * n),
            e.StreamChunkDelivered(delivery="d", through=6 * n + 6),
        )
    ]
    records = recorded([user("u1", "a"), *parts, e.DeliveryConfirmed(delivery="d"), end()])

    (one,) = explain("s", lambda: records)

    versions = [(moment.first, moment.last) for moment in one.moments]
    size = 6 * EVENTS_OF_A_STREAM
    assert versions == [(1, 1), (2, len(parts) + 1), (len(parts) + 2,) * 2, (len(parts) + 3,) * 2]
    assert f"{size} characters in {EVENTS_OF_A_STREAM} parts, platform took up to {size}" in (
        one.moments[1].said
    )
    (change,) = one.moments[1].changes
    assert (change.kind, change.before) == ("added", None)


def test_a_turn_is_chosen_by_its_findings_its_name_or_its_being_the_last(
    log: TranscriptLog, command: Callable[..., Any]
) -> None:
    log.append("s", user("u1", "a"), *sent("d1", "A", turn="t1"), end())
    log.append("s", user("u2", "b", "t2"), *sent("d2", "B", turn="t2"), end("t2"))
    fine = command("explain", "s", "--json")
    log.append("s", user("u3", "c", "t3"), *sent("d3", "C", turn="t3")[:1], end("t3"))
    log.append("s", user("u4", "d", "t4"))
    wrong = command("explain", "s", "--json")
    named = command("explain", "s", "t1", "--json")

    turns = [[turn["turn"] for turn in done.json["turns"]] for done in (fine, wrong, named)]
    assert turns == [["t2"], ["t3"], ["t1"]]
    assert [done.code for done in (fine, wrong, named)] == [0, 1, 0]


def test_lanes_stand_one_below_the_other_where_it_is_narrow(
    command: Callable[..., Any], scenario: Callable[[str], Any]
) -> None:
    scenario("final-text-only")

    page = command("explain", "final-text-only").out

    assert page.startswith(
        "turn t2 of final-text-only: 1 finding\n"
        "2026-06-11 09:00:04 to 09:00:05 UTC\n"
        "\n"
        "M model   G gateway and platform   T transcript\n"
        "09:00:04.000  5  G user “two”\n"
        "                 T + user “two”\n"
        "09:00:05.000  6  M turn completed “2”\n"
        "                 T + assistant (undelivered) “2”\n"
        "                 T = turn t2 closed: completed\n"
        "\n"
        "produced-not-delivered  The model's answer never went out, and its turn is over.\n"
        "  what happened   At 09:00:05 the agent ended its turn with “2”. No attempt to\n"
    )
    assert max(map(len, page.splitlines())) <= 80


def test_lanes_stand_side_by_side_where_it_is_wide(
    command: Callable[..., Any],
    scenario: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario("final-text-only")
    page = command("explain", "final-text-only").out
    monkeypatch.setenv("COLUMNS", "140")
    wide = command("explain", "final-text-only").out.splitlines()

    places = [wide[3].index(lane) for lane in ("model", "gateway", "transcript")]
    assert wide[4].index("user") == places[1]
    assert wide[5].index("turn completed") == places[0]
    assert wide[5].index("+ assistant") == places[2]
    assert max(map(len, wide)) <= 140
    assert wide != page.splitlines()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["explain"], "Missing argument 'SESSION'"),
        (["explain", "nobody"], "no session 'nobody'"),
        (["explain", "s", "t9"], "no turn 't9' in session 's'; its last ones are: 't1'"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_one_line(
    log: TranscriptLog, command: Callable[..., Any], words: list[str], says: str
) -> None:
    log.append("s", user("u1", "a"))

    done = command(*words)

    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert says.lower() in done.err.lower()


def test_text_is_never_obeyed_by_the_terminal(
    log: TranscriptLog, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J[red]bold[/red] \u202e"
    call = e.ToolCall(evil, evil, evil)
    log.append(
        evil,
        user("u\x1b[31m", evil, evil),
        e.AssistantMessageProduced(turn=evil, message="m", text=evil, tool_calls=[call]),
        e.DeliveryAttempted(delivery=evil, turn=evil, message="m", text=evil),
        e.SourceFaultFound(code=evil, place=evil, detail=evil, turn=evil, imported_from=evil),
        end(evil, evil),
    )

    for width in ("80", "140"):
        monkeypatch.setenv("COLUMNS", width)
        page = command("explain", evil)
        assert page.code == 1
        assert not any(char in page.out for char in "\x1b\x07\u202e")
        assert "bold[/red]" in page.out
