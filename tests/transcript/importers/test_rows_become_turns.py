"""The rows of a foreign transcript are turns; what it holds twice stands once, and is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from onrecord.projections.findings import findings
from onrecord.projections.transcript import build
from onrecord.transcript.events import Source, ToolCall
from onrecord.transcript.importers.batches import Preparing
from onrecord.transcript.importers.rows import SourceRows
from onrecord.transcript.importers.running import import_source
from onrecord.transcript.importers.source import Entry
from onrecord.transcript.importers.source import Source as Opened
from onrecord.transcript.log import TranscriptLog

Story = Callable[[SourceRows], None]
CALL = ToolCall(id="c1", name="look")


def append(log: TranscriptLog, story: Story, *, finished: bool = True) -> int:
    """Append a story as an import does; return how many events were new."""
    rows = SourceRows("test", "s")
    story(rows)
    if finished:
        rows.finish()
    from onrecord.transcript.importers.batches import Batch

    preparing = Preparing(log.text_limit)
    drafts = [preparing.draft(Batch(), "s", event, at) for event, at, _ in rows.take()]
    return log.append_drafts("s", drafts).new


def told(story: Story) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the rows and the findings of a story."""
    with TranscriptLog.open("sqlite://") as log:
        append(log, story)
        rows = [(row.role, row.text) for row in build(log, "s").rows]
        found = [(one.code, one.detail.rpartition("(")[2]) for one in findings("s", log.read("s"))]
        return rows, found


def asked(rows: SourceRows) -> None:
    rows.user("1", "Look", 1, "messages 1")


def test_what_has_no_time_happened_when_the_row_before_it_did() -> None:
    rows = SourceRows("test", "s")
    asked(rows)
    rows.delivered("d1", "Seen", None, "sent 1", outcome="in_doubt")
    rows.finish()

    assert {at for _, at, _ in rows.take()} == {1}


def test_a_turn_with_a_tool_is_whole() -> None:
    def story(rows: SourceRows) -> None:
        asked(rows)
        rows.assistant("2", "Let me see", 2, "messages 2", calls=[CALL])
        rows.tool("c1", "a house", 3, "messages 3")
        rows.assistant("4", "A house", 4, "messages 4")

    expected = [
        ("user", "Look"), ("assistant", "Let me see"), ("tool", "a house"), ("assistant", "A house"),
    ]  # fmt: skip
    assert told(story) == (expected, [])


def test_a_tool_call_that_is_stored_twice_is_one() -> None:
    def story(rows: SourceRows) -> None:
        asked(rows)
        rows.assistant("2", "", 2, "messages 2", calls=[CALL])
        rows.assistant("3", "", 2, "messages 3", calls=[CALL])
        rows.tool("c1", "a house", 3, "messages 4")
        rows.tool("c1", "a house", 3, "messages 5")
        rows.assistant("6", "A house", 4, "messages 6")

    rows, found = told(story)

    assert [role for role, _ in rows] == ["user", "assistant", "tool", "assistant"]
    assert found == [
        ("duplicate-in-source", "messages 3)"),
        ("duplicate-in-source", "messages 5)"),
    ]


def test_a_fallback_that_repeats_an_earlier_text_stands_where_it_was_said() -> None:
    def story(rows: SourceRows) -> None:
        asked(rows)
        rows.assistant("2", "Noted.", 2, "messages 2", calls=[CALL])
        rows.tool("c1", "saved", 3, "messages 3")
        rows.assistant("4", "Noted.", 4, "messages 4")

    rows, found = told(story)

    assert next(text for role, text in rows if role == "assistant") == "Noted."
    assert [text for _, text in rows].count("Noted.") == 1
    assert found == [("duplicate-in-source", "messages 4)")]


def test_a_call_id_that_comes_again_in_a_later_turn_is_another_call() -> None:
    def story(rows: SourceRows) -> None:
        for turn in ("1", "2"):
            rows.user(turn, f"Look {turn}", 1, f"messages {turn}")
            rows.assistant(turn + "a", "", 2, f"messages {turn}a", calls=[CALL])
            rows.tool("c1", f"house {turn}", 3, f"messages {turn}b")
            rows.assistant(turn + "c", f"A house {turn}", 4, f"messages {turn}c")

    rows, found = told(story)

    assert [text for role, text in rows if role == "tool"] == ["house 1", "house 2"]
    assert found == []


def test_a_call_id_that_comes_again_in_its_turn_gets_its_own_result() -> None:
    def story(rows: SourceRows) -> None:
        asked(rows)
        for n in "23":
            rows.assistant(
                n, f"Try {n}", 2, f"messages {n}", calls=[CALL, ToolCall(id=f"d{n}", name="x")]
            )
            rows.tool("c1", f"house {n}", 3, f"messages {n}b")
            rows.tool(f"d{n}", f"garden {n}", 3, f"messages {n}c")
        rows.assistant("4", "Done", 4, "messages 4")

    rows, found = told(story)

    tools = [text for role, text in rows if role == "tool"]
    assert tools == ["house 2", "garden 2", "house 3", "garden 3"]
    assert found == []


def test_the_same_message_of_the_user_is_one_and_two_messages_are_two() -> None:
    def said(number: str) -> Source:
        return Source(platform="telegram", message=number, chat="7")

    def story(rows: SourceRows) -> None:
        rows.user("1", "Hello", 1, "messages 1", source=said("11"))
        rows.user("2", "Hello", 1, "messages 2")
        rows.user("3", "Hello", 2, "messages 3", source=said("12"))
        rows.assistant("4", "Hello you", 3, "messages 4")

    rows, found = told(story)

    assert [text for role, text in rows if role == "user"] == ["Hello", "Hello"]
    assert ("duplicate-in-source", "messages 2)") in found
    assert ("alternation-broken-in-source", "messages 3)") in found


def test_a_prompt_of_the_program_is_no_row_of_the_user() -> None:
    def story(rows: SourceRows) -> None:
        asked(rows)
        rows.assistant("2", "I began and", 2, "messages 2")
        rows.prompt("3", "Continue exactly where you left off", 3, "messages 3")
        rows.assistant("4", "went on", 4, "messages 4")

    rows, found = told(story)

    assert [role for role, _ in rows] == ["user", "assistant", "assistant"]
    assert found == [("synthetic-in-source", "messages 3)")]


def test_what_went_out_and_has_no_row_is_found() -> None:
    def story(rows: SourceRows) -> None:
        asked(rows)
        rows.delivered("d1", "A house", 2, "delivery_obligations 1", platform_messages=["99"])
        rows.user("5", "And?", 9, "messages 5")

    rows, found = told(story)

    assert ("assistant", "A house") in rows
    assert ("delivered-not-in-source", "") in [(code, "") for code, _ in found]


def test_a_row_that_came_late_takes_the_finding_back() -> None:
    def early(rows: SourceRows) -> None:
        asked(rows)
        rows.delivered("d1", "A house", 2, "ledger 1")

    def late(rows: SourceRows) -> None:
        asked(rows)
        rows.assistant("2", "A house", 3, "messages 2")
        rows.delivered("d1", "A house", 2, "ledger 1")

    with TranscriptLog.open("sqlite://") as log:
        append(log, early)
        before = [one.code for one in findings("s", log.read("s"))]
        new = append(log, late)
        after = [one.code for one in findings("s", log.read("s"))]

    assert (before, after, new) == (["delivered-not-in-source"], [], 2)


def stories() -> Iterator[Callable[[SourceRows], None]]:
    yield lambda rows: rows.user("1", "Look", 1, "messages 1")
    yield lambda rows: rows.assistant("2", "I", 2, "messages 2", calls=[CALL])
    yield lambda rows: rows.assistant("2b", "I", 2, "messages 2b", calls=[CALL])
    yield lambda rows: rows.tool("c1", "a house", 3, "messages 3")
    yield lambda rows: rows.assistant("4", "A house", 4, "messages 4")
    yield lambda rows: rows.prompt("5", "Go on", 5, "messages 5")
    yield lambda rows: rows.assistant("6", "A house", 6, "messages 6")
    yield lambda rows: rows.delivered("d1", "A house\n(by bot)", 6, "ledger 1", message="4")
    yield lambda rows: rows.user("7", "And?", 7, "messages 7")
    yield lambda rows: rows.user("8", "Hello?", 8, "messages 8")
    yield lambda rows: rows.compacted("They spoke of houses", 9, "messages 9")
    yield lambda rows: rows.user("10", "So?", 10, "messages 10")
    yield lambda rows: rows.rewound("10", 11, "messages 11")
    yield lambda rows: rows.user("12", "Once more", 12, "messages 12")


def test_reading_again_after_each_row_gives_what_reading_once_gives() -> None:
    steps = list(stories())

    def until(count: int) -> Story:
        def story(rows: SourceRows) -> None:
            for step in steps[:count]:
                step(rows)

        return story

    with TranscriptLog.open("sqlite://") as grown, TranscriptLog.open("sqlite://") as once:
        for count in range(1, len(steps) + 1):
            append(grown, until(count))
            assert append(grown, until(count)) == 0, f"step {count} was added twice"
        append(once, until(len(steps)))
        rows, expected = (
            [(row.role, row.text, row.delivery) for row in build(log, "s", full=True).rows]
            for log in (grown, once)
        )
        codes, wanted = (
            sorted(one.code for one in findings("s", log.read("s"))) for log in (grown, once)
        )

    assert rows == expected
    assert codes == wanted


def test_each_event_says_where_it_stood(tmp_path: Path) -> None:
    with TranscriptLog.open("sqlite://") as log:
        append(log, asked)
        (record, *_) = log.read("s")

    assert record.event.imported_from == "messages 1"
    assert record.event.writer == "import:test"
    assert record.event.imported_at is not None
    assert record.recorded_at.year == 1970


class Odd:
    """A source whose names are no Unicode: a session's, a key, and that of the file."""

    FORMAT: str = "odd"
    total: int | None = None

    def looks_right(self, path: Path, head: bytes) -> bool:
        return True

    def open_source(self, path: Path) -> AbstractContextManager[Opened]:
        return nullcontext(self)

    def sessions(self) -> Iterator[tuple[str, Iterator[Entry]]]:
        rows = SourceRows(self.FORMAT, "s\ud83d")
        rows.user("k\ud83d", "Hi \ud83d", 1, "f\udcff.jsonl:1")
        rows.broken("reset", 2, "f\udcff.jsonl:2")
        rows.assistant("m", "Yes", 3, "f\udcff.jsonl:3")
        rows.finish()
        yield "s\ud83d", iter(rows.take())


def test_names_that_are_no_unicode_are_mended_and_known_again() -> None:
    with TranscriptLog.open("sqlite://") as log:
        first, again = (import_source(log, Odd(), Path("odd")) for _ in range(2))
        rows = [(row.role, row.text) for row in build(log, "s\ufffd").rows]

    assert (first.added, again.added, again.known) == (4, 0, 4)
    assert rows == [("user", "Hi \ufffd"), ("assistant", "Yes")]
