"""A row is found by each part of what it says, in every script; the index finds what a look finds."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from histories import HISTORIES
from onrecord.projections.search import Hit, Query, search, snippet, words_of
from onrecord.projections.search.hits import WIDTH
from onrecord.projections.search.query import fold
from onrecord.projections.search.scan import scan
from onrecord.transcript.errors import AppendRefused, BadEvent
from onrecord.transcript.events import (
    AssistantMessageProduced,
    Event,
    ToolCall,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

TEXTS = {
    "english": "The disk is full, isn't it? NOT now OR later; near(a)",
    "german": "Größenänderung in der Straße",
    "french": "un café, déjà vu",
    "decomposed": "un cafe\u0301 la\u0300-bas",
    "russian": "Ёлка стоит у дома, он ждёт",
    "greek": "Ὀδυσσεύς στη θάλασσα",
    "turkish": "İSTANBUL'da ışık",
    "chinese": "磁盘已满，请清理空间。",
    "japanese": "ディスクがいっぱいです。フェリーは何時？",
    "korean": "디스크가 가득 찼습니다",
    "thai": "ดิสก์เต็มแล้วครับ",
    "arabic": "القرص ممتلئ تماما",
    "hindi": "डिस्क भर गई है",
    "wide": "ＦＵＬＬ width",
    "emoji": "done 👩\u200d💻 ✅ ok",
    "signs": 'a_b 100% "quoted" it\'s C:\\temp -x *y* (z) ^w',
    "lines": "first line\nsecond\tline\x00third",
    "short": "x",
}

FOUND = [
    ("disk full", []),
    ("disk", ["english"]), ("DISK", ["english"]), ("isk is fu", ["english"]), ("isn't", ["english"]),
    ("NOT", ["english"]), ("OR", ["english"]), ("near(a)", ["english"]), ("*", ["signs"]),
    ("strasse", ["german"]), ("STRASSE", ["german"]), ("größen", ["german"]), ("grossen", ["german"]),
    ("cafe", ["french", "decomposed"]), ("café", ["french", "decomposed"]), ("là-bas", ["decomposed"]),
    ("елка", ["russian"]), ("ЖДЕТ", ["russian"]), ("ОН", ["russian"]), ("οδυσσευς", ["greek"]),
    ("istanbul", ["turkish"]), ("磁盘", ["chinese"]), ("满", ["chinese"]), ("清理空间", ["chinese"]),
    ("いっぱい", ["japanese"]), ("何時", ["japanese"]), ("가득", ["korean"]), ("เต็ม", ["thai"]),
    ("ممتلئ", ["arabic"]), ("डिस्क", ["hindi"]), ("full", ["english", "wide"]), ("👩\u200d💻", ["emoji"]),
    ("✅", ["emoji"]), ("100%", ["signs"]), ("a_b", ["signs"]), ("'", ["english", "turkish", "signs"]),
    ("C:\\temp", ["signs"]), ("-x", ["signs"]), ("^w", ["signs"]), ("first line second", ["lines"]),
    ("line third", ["lines"]), ("a\\b", []), ("a%b", []),
]  # fmt: skip


def keys(hits: Iterable[Hit]) -> list[tuple[object, ...]]:
    return sorted((hit.session, hit.row.id, hit.at, hit.in_view, hit.row.text) for hit in hits)


def fill(log: TranscriptLog) -> None:
    for name, text in TEXTS.items():
        log.append(name, UserMessageReceived(message="u", text=text), TurnFinalized(turn="u"))


@pytest.mark.parametrize("told", [[], ["rebuilt"]], ids=["first", "again"])
def test_each_script_is_found(each_url: str, told: list[str]) -> None:
    with TranscriptLog.open(each_url) as log:
        fill(log)
        for _ in told:
            search(log, Query(words=("x",)))

        for phrase, sessions in FOUND:
            heard: list[str] = []
            query = Query(words=words_of([f'"{phrase}"']), limit=100)
            hits = search(log, query, tell=heard.append)
            assert sorted({hit.session for hit in hits}) == sorted(sessions), phrase
            assert keys(hits) == keys(scan(log, query, heard.append))
            assert heard == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["disk", "full"], ("disk", "full")),
        (["disk full"], ("disk full",)),
        (['say "Disk  full" now'], ("say", "disk  full", "now")),
        (['"open'], ("open",)),
        (['""', " ", ""], ()),
        (["a", "A"], ("a",)),
        (["\udce4x"], ("\ufffdx",)),
        (["\u0301"], ()),
    ],
)
def test_what_the_shell_gave_is_words_and_phrases(given: list[str], words: tuple[str, ...]) -> None:
    assert words_of(given) == words


def test_all_words_are_in_one_row_and_calls_are_searched(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        log.append(
            "s",
            UserMessageReceived(message="u", turn="t", text="clean up"),
            AssistantMessageProduced(
                turn="t", message="m", text="One moment",
                tool_calls=[ToolCall("c", "shell", '{"run": "rm -rf /tmp/x"}')],
            ),
        )  # fmt: skip

        assert search(log, Query(words=words_of(["clean", "moment"]))) == []
        (hit,) = search(log, Query(words=words_of(["moment", "rm -rf"])))
        assert (hit.row.role, hit.row.turn) == ("assistant", "t")


def test_a_row_with_all_parts_of_a_word_and_not_the_word_takes_no_place(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        log.append("s", UserMessageReceived(message="u1", text="abcd"))
        log.append("s", UserMessageReceived(message="u2", text="abc bcd"))

        (hit,) = search(log, Query(words=("abcd",), limit=1))
        assert hit.row.text == "abcd"


def test_filters_narrow_and_the_newest_come_first(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        for n in range(6):
            log.append(f"s{n % 2}", UserMessageReceived(message=f"u{n}", text=f"ping {n}"))
            log.append(f"s{n % 2}", TurnFinalized(turn=f"u{n}"))
        every = search(log, Query(words=("ping",), limit=100))
        third = next(record for record in log.read_all() if record.version == 3)
        since = int(third.recorded_at.timestamp() * 1_000_000)

        assert [hit.row.text for hit in every] == [f"ping {n}" for n in reversed(range(6))]
        assert search(log, Query(words=("ping",), limit=2)) == every[:2]
        assert {hit.session for hit in search(log, Query(words=("ping",), session="s1"))} == {"s1"}
        assert search(log, Query(words=("ping",), role="tool")) == []
        assert search(log, Query(words=("ping",), since=since, limit=100)) == every[:4]
        assert search(log, Query(words=("ping",), session="nobody")) == []


WORDS = (
    "ok",
    "ok. done",
    "o",
    "done.",
    "no",
    "wait",
    "ab",
    "b",
    "e",
    "run(",
    "x",
    "answer",
    "erased",
)


@settings(max_examples=60)
@given(HISTORIES, st.integers(1, 5))
def test_the_index_finds_what_a_look_at_each_row_finds(history: list[Event], step: int) -> None:
    with TranscriptLog.open("sqlite://") as log:
        for n, event in enumerate(history):
            try:
                log.append("s", event)
            except (AppendRefused, BadEvent):
                continue
            if n % step == 0:  # it is kept up from wherever it stood
                search(log, Query(words=("ok",)), tell=pytest.fail)

        for word in WORDS:
            query = Query(words=(word,), limit=1000)
            assert keys(search(log, query, tell=pytest.fail)) == keys(scan(log, query, pytest.fail))


@given(st.text(), st.text(min_size=1, max_size=4), st.text())
def test_a_snippet_shows_the_words_and_where_they_stand(before: str, word: str, after: str) -> None:
    text, folded = f"{before}{word}{after}", fold(word)

    part = snippet(text, (folded,) if folded else ())

    assert "\n" not in part.text
    assert len(part.text) <= WIDTH + 2 + len(before)
    for start, end in part.marks:
        assert 0 <= start <= end <= len(part.text)
    if text.isascii():
        assert all(fold(part.text[start:end]) == folded for start, end in part.marks)


def test_a_snippet_of_a_long_text_begins_a_little_before_the_word() -> None:
    text = "Straße " * 5_000 + "Müller " + "Straße " * 5_000

    part = snippet(text, ("muller",))

    ((start, end),) = part.marks
    assert part.text[start:end] == "Müller"
    assert part.text.startswith("…")
    assert part.text.endswith("…")
    assert len(part.text) <= WIDTH + 2
