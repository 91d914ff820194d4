"""The index follows the log when somebody searches; what was erased is never found, and leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from onrecord.projections.search import Query, index, rebuild, search
from onrecord.projections.search.index import WordIndex
from onrecord.projections.stored import StoredProjections
from onrecord.transcript.events import (
    ContentErased,
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryRevised,
    TranscriptCompacted,
    TranscriptRewound,
    TurnFinalized,
    UserMessageEdited,
    UserMessageReceived,
    UserMessageRetracted,
)
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage import word_index as statements
from onrecord.transcript.storage.word_index import Turn
from onrecord.transcript.verify import verify

ERASED = ContentErased(target={"turn": "secret"}, reason="asked for")


def texts(log: TranscriptLog, *words: str) -> list[str]:
    return sorted(hit.row.text for hit in search(log, Query(words=words), tell=pytest.fail))


def indexed(log: TranscriptLog) -> list[str]:
    """Return what stands in the index, read beside it."""
    return log.database.read(
        "looking",
        lambda c: [
            row[0] for row in c.execute("SELECT folded FROM onrecord_search_rows").fetchall()
        ],
    )


def said(log: TranscriptLog, turn: str, question: str, answer: str) -> None:
    log.append(
        "s",
        UserMessageReceived(message=turn, text=question),
        DeliveryAttempted(delivery=f"d-{turn}", turn=turn, text=answer),
        DeliveryConfirmed(delivery=f"d-{turn}"),
        TurnFinalized(turn=turn),
    )


def test_what_changed_is_indexed_again(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        said(log, "t1", "old question", "old answer")
        said(log, "t2", "another", "reply")
        assert texts(log, "old") == ["old answer", "old question"]

        log.append("s", UserMessageEdited(message="t1", text="new question"))
        log.append("s", DeliveryRevised(delivery="d-t1", text="new answer"))
        assert texts(log, "old") == []
        assert texts(log, "new") == ["new answer", "new question"]

        log.append("s", UserMessageRetracted(message="t1"))
        assert texts(log, "new", "question") == []
        assert len(indexed(log)) == 4 + 1


def test_only_what_changed_is_indexed_again(each_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with TranscriptLog.open(each_url) as log:
        for n in range(5):
            said(log, f"t{n}", f"question {n}", f"answer {n}")
        search(log, Query(words=("answer",)))
        indexed: list[str] = []
        store = statements.store

        def told(connection: Any, number: int, turns: Sequence[Turn], version: int) -> None:
            indexed.extend(entry.folded for turn in turns for entry in turn.entries)
            store(connection, number, turns, version)

        monkeypatch.setattr(statements, "store", told)

        WordIndex(log, pytest.fail).catch_up(None, lambda *_: None)
        assert indexed == []
        log.append("s", UserMessageEdited(message="t3", text="question three"))
        WordIndex(log, pytest.fail).catch_up(None, lambda *_: None)
        assert indexed == ["question three", "answer 3"]


def test_many_turns_are_indexed_in_portions(each_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "TURNS_AT_ONCE", 3)
    with TranscriptLog.open(each_url) as log:
        for n in range(9):
            said(log, f"t{n}", f"question {n}", f"answer {n}")

        assert len(texts(log, "answer")) == 9
        log.append("s", UserMessageEdited(message="t0", text="what?"))
        assert texts(log, "what?") == ["what?"]
        StoredProjections(log).rebuild()
        assert len(texts(log, "answer")) == 9
        assert len(indexed(log)) == 18 + 1


def test_indexing_that_was_interrupted_goes_on(
    each_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "TURNS_AT_ONCE", 3)
    store, portions = statements.store, iter(range(9))

    def interrupted(connection: Any, number: int, turns: Sequence[Turn], version: int) -> None:
        if next(portions) == 1:
            raise KeyboardInterrupt
        store(connection, number, turns, version)

    monkeypatch.setattr(statements, "store", interrupted)
    with TranscriptLog.open(each_url) as log:
        for n in range(9):
            said(log, f"t{n}", f"question {n}", f"answer {n}")
        with pytest.raises(KeyboardInterrupt):
            search(log, Query(words=("answer",)))

        assert len(texts(log, "answer")) == 9
        assert len(indexed(log)) == 18 + 1


def test_hits_say_whether_the_model_still_sees_them(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        for turn in ("t1", "t2", "t3"):
            said(log, turn, f"ping {turn}", "pong")
        log.append("s", TranscriptCompacted(through_turn="t1", summary="They played."))
        log.append("s", TranscriptRewound(to_turn="t3"))

        hits = search(log, Query(words=("ping",)))
        assert {hit.row.turn: hit.in_view for hit in hits} == {
            "t1": False, "t2": True, "t3": False
        }  # fmt: skip


def test_what_is_erased_is_never_found_and_leaves_the_index(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        said(log, "secret", "my number is 豚豚豚犬犬犬", "noted: 豚豚豚犬犬犬")
        said(log, "other", "hello", "hello")
        assert len(texts(log, "豚犬")) == 2

        log.append("s", ERASED)
        # Erased in between: it is in the index still, and isn't found.
        assert WordIndex(log, pytest.fail).find(Query(words=("豚犬",))) == []
        assert texts(log, "豚犬") == []
        assert [text for text in indexed(log) if "豚" in text] == []
        assert texts(log, "hello") == ["hello", "hello"]


def test_nothing_of_what_is_erased_stays_in_the_files_pages(tmp_path: Path) -> None:
    path, word = tmp_path / "log.db", "豚犬豚犬猫"
    with TranscriptLog.open(path) as log:
        for n in range(300):
            said(log, f"t{n}", f"question {n} 世界", "an answer")
        said(log, "secret", word, word)
        assert len(texts(log, word)) == 2
        log.append("s", ERASED)
        assert texts(log, word) == []

        left = log.database.read(
            "looking",
            lambda c: [
                row[0]
                for table in ("onrecord_search_words_data", "onrecord_search_words_idx")
                for row in c.execute(f"SELECT * FROM {table}").fetchall()
                for value in row
                if isinstance(value, bytes) and "豚".encode() in value
            ],
        )
        assert left == []
        assert len(texts(log, "世界")) == 20


def test_a_session_whose_name_is_erased_leaves_the_index(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        said(log, "t1", "my question", "my answer")
        log.append("t", UserMessageReceived(message="m", text="another"))
        assert len(texts(log, "my")) == 2
        with log.database.write() as connection:
            connection.execute("UPDATE sessions SET name = NULL WHERE name = ?", (b"s",))

        assert texts(log, "my") == []
        assert sorted(indexed(log)[1:]) == ["another"]


def test_projections_made_anew_are_indexed_anew(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        said(log, "t1", "question", "answer")
        before = texts(log, "answer")
        StoredProjections(log).rebuild()

        assert texts(log, "answer") == before
        rebuild(log, tell=pytest.fail)
        assert texts(log, "answer") == before
        assert len(indexed(log)) == 2 + 1


def test_several_may_search_while_others_append(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        for n in range(20):
            said(log, f"t{n}", f"question {n}", f"answer {n}")

        def look(n: int) -> int:
            with TranscriptLog.open(each_url) as other:
                said(other, f"more{n}", f"question more {n}", "answer more")
                return len(search(other, Query(words=("answer",), limit=100), tell=pytest.fail))

        with ThreadPoolExecutor(4) as pool:
            counts = list(pool.map(look, range(8)))
        assert all(20 < count <= 28 for count in counts)
        assert len(search(log, Query(words=("answer",), limit=100), tell=pytest.fail)) == 28
        assert len(indexed(log)) == 2 * 28 + 1


def test_a_log_with_an_index_opens_and_verifies(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        said(log, "t1", "question", "answer")
        texts(log, "answer")

    with TranscriptLog.open(each_url, create=False) as log:
        assert verify(log).faults == []
        said(log, "t2", "more", "answers")
        assert list(StoredProjections(log).check()) == []
