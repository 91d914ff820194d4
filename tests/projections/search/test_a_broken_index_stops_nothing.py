"""Whatever becomes of the index: appends and reads go on, and a search finds all there is, and says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import other_process
import pytest

from onrecord.projections.promise import DeliveredNotProjected
from onrecord.projections.promised import Promised
from onrecord.projections.search import Query, search
from onrecord.projections.stored.tail import Tail
from onrecord.projections.transcript import build
from onrecord.transcript.events import DeliveryAttempted, TurnFinalized, UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage import dbapi
from onrecord.transcript.storage.word_tables import FORMAT
from onrecord.transcript.verify import DATABASE, verify

TABLES = tuple(f"onrecord_search_{name}" for name in ("index", "sessions", "turns", "rows"))
OF_FTS5 = ("data", "config")
ANEW = "is made anew"


def harms_of_both() -> Iterator[tuple[str, list[str]]]:
    for table in TABLES:
        yield f"{table} dropped", [f"DROP TABLE {table}"]
        yield f"{table} of other columns", [f"DROP TABLE {table}", f"CREATE TABLE {table} (x TEXT)"]
    for table in ("onrecord_search_index", "onrecord_search_rows"):
        yield f"{table} emptied", [f"DELETE FROM {table}"]
    yield "all dropped but one", [f"DROP TABLE {table}" for table in TABLES[:-1]]
    yield "older", [f"UPDATE onrecord_search_index SET format = {FORMAT - 1}"]
    yield "newer", [f"UPDATE onrecord_search_index SET format = {FORMAT + 1}"]
    yield "a row gone", ["DELETE FROM onrecord_search_rows WHERE n = 1 AND turn > 0"]


def harms_of_fts5() -> Iterator[tuple[str, list[str]]]:
    yield "words dropped", ["DROP TABLE onrecord_search_words"]
    yield (
        "words replaced",
        ["DROP TABLE onrecord_search_words", "CREATE TABLE onrecord_search_words (x TEXT)"],
    )
    yield "words' idx dropped", ["DROP TABLE onrecord_search_words_idx"]
    for name in OF_FTS5:
        yield f"words' {name} dropped", [f"DROP TABLE onrecord_search_words_{name}"]
        yield f"words' {name} emptied", [f"DELETE FROM onrecord_search_words_{name}"]
    yield "words' data overwritten", ["UPDATE onrecord_search_words_data SET block = x'00ff00ff'"]
    yield "words' format of the future", ["UPDATE onrecord_search_words_config SET v = 99"]


BOTH = [pytest.param(how, id=name) for name, how in harms_of_both()]
FTS5 = [pytest.param(how, id=name) for name, how in harms_of_fts5()]


def say(log: TranscriptLog, n: int) -> None:
    log.append(
        f"s{n % 2}",
        UserMessageReceived(message=f"u{n}", text=f"question {n}"),
        DeliveryAttempted(delivery=f"d{n}", turn=f"u{n}", text=f"answer {n}"),
        TurnFinalized(turn=f"u{n}"),
    )


def found(log: TranscriptLog, word: str, told: list[str]) -> list[str]:
    return sorted(hit.row.text for hit in search(log, Query(words=(word,)), tell=told.append))


def check_that_all_goes_on(log: TranscriptLog, broken: int) -> None:
    say(log, 4)
    assert build(log, "s0").rows[-1].text == "answer 4"
    told: list[str] = []

    assert found(log, "answer", told) == [f"answer {n}" for n in range(5)]
    assert [ANEW in line for line in told] == [True] * broken
    say(log, 5)
    told.clear()
    assert found(log, "answer", told) == [f"answer {n}" for n in range(6)]
    assert found(log, "question 3", told) == ["question 3"]
    assert told == []


@pytest.mark.parametrize("harm", BOTH)
def test_a_damaged_missing_or_older_index_is_made_anew(each_url: str, harm: list[str]) -> None:
    with TranscriptLog.open(each_url) as log:
        for n in range(4):
            say(log, n)
        assert len(found(log, "answer", [])) == 4
        with log.database.write() as connection:
            for statement in harm:
                connection.execute(statement)

        check_that_all_goes_on(log, 1)


@pytest.mark.parametrize("harm", FTS5)
def test_damaged_tables_of_fts5_are_made_anew(tmp_path: Path, harm: list[str]) -> None:
    path = tmp_path / "log.db"
    with TranscriptLog.open(path) as log:
        for n in range(4):
            say(log, n)
        assert len(found(log, "answer", [])) == 4
    do(path, *harm)

    with TranscriptLog.open(path) as log:
        check_that_all_goes_on(log, 1)


@pytest.mark.parametrize(
    "harm",
    [["DELETE FROM onrecord_search_words_config"], ["DELETE FROM onrecord_search_words_data"]],
)
def test_a_verification_tells_it_from_the_log(tmp_path: Path, harm: list[str]) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        say(log, 1)
        found(log, "answer", [])
    do(tmp_path / "log.db", *harm)

    with TranscriptLog.open(tmp_path / "log.db") as log:
        result = verify(log)
        for fault in result.faults:  # older versions of SQLite don't look into the index
            assert (fault.session, "search --rebuild" in fault.detail) == (DATABASE, True)
        assert result.records == 3
        found(log, "answer", [])
        assert verify(log).faults == []


def do(path: Path, *statements: str) -> None:
    other = dbapi.connect(str(path), isolation_level=None, timeout=30)
    for statement in statements:
        other.execute(statement)
    other.close()


def test_damaged_stored_rows_are_projected_and_found_anew(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        for n in range(4):
            say(log, n)
        assert len(found(log, "answer", [])) == 4
        with log.database.write() as connection:
            rows = connection.execute("SELECT id, rows FROM projected_turns").fetchall()
            for id, blob in rows:
                reworded = bytes(blob).replace(b"answer", b"ANSWER")
                connection.execute(
                    "UPDATE projected_turns SET rows = ? WHERE id = ?", (reworded, id)
                )

        assert found(log, "answer", []) == [f"answer {n}" for n in range(4)]


def test_a_record_that_cannot_be_read_is_said_and_the_rest_is_found(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        for n in range(4):
            say(log, n)
        with log.database.write() as connection:
            connection.execute("DROP TRIGGER records_update")
            connection.execute("UPDATE records SET payload = x'c1' WHERE position = 5")
        told: list[str] = []

        assert found(log, "answer ", told) == ["answer 0", "answer 2", "answer 3"]
        assert [line.partition(" can't")[0] for line in told] == [
            "session 's1': what stands at version 2"
        ]


def test_a_session_that_breaks_the_promise_is_said_and_the_rest_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(tail: Tail) -> None:
        if tail.session == "s1":
            lost = Promised(delivery="d1", turn="u1", text="answer 1", first=2, began=2)
            raise DeliveredNotProjected("s1", (lost, "is missing"), [], [lost])

    monkeypatch.setattr(Tail, "check", breaks)
    with TranscriptLog.open(tmp_path / "log.db") as log:
        for n in range(4):
            say(log, n)
        told: list[str] = []

        assert found(log, "answer ", told) == ["answer 0", "answer 2"]
        assert len(told) == 1
        assert told[0].startswith("session 's1' isn't searched to its end")


def test_where_no_index_can_be_kept_each_session_is_read(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        for n in range(4):
            say(log, n)
        with log.database.write() as connection:  # which DROP TABLE doesn't drop
            connection.execute("CREATE VIEW onrecord_search_rows AS SELECT 1 AS id")
        told: list[str] = []

        assert found(log, "answer", told) == [f"answer {n}" for n in range(4)]
        assert len(told) == 1
        assert "each session is read instead" in told[0]


def test_a_log_that_cannot_be_written_is_searched(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    with TranscriptLog.open(folder / "log.db") as log:
        for n in range(4):
            say(log, n)
        shutil.copytree(folder, tmp_path / "killed")  # with its WAL, as a killed process leaves it
    place = tmp_path / "killed"

    done = read_only(place, "search", "answer 3", "--json")

    assert (done.returncode, '"text":"answer 3"' in done.stdout) == (0, True), done.stderr
    assert "each session is read instead" in done.stderr
    assert done.stderr.count("\n") == 1


OTHER_LIBRARY = """
import sys
sys.modules["pysqlite3"] = None  # as where it has no wheel
from onrecord.projections.promise import DeliveredNotProjected
from onrecord.projections.promised import Promised
from onrecord.projections.search import Query, search
from onrecord.projections.stored.tail import Tail
from onrecord.transcript.log import TranscriptLog
with TranscriptLog.open(sys.argv[1]) as log:
    for tries in range(2):
        print(*(hit.row.text for hit in search(log, Query(words=("swer 2",)), tell=print)))
        with log.database.write() as connection:
            connection.execute("DROP TABLE onrecord_search_words_data")
"""


def test_the_systems_own_sqlite_searches_the_same_index(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        for n in range(4):
            say(log, n)
        assert len(found(log, "answer", [])) == 4

    told = other_process.run(OTHER_LIBRARY, str(tmp_path / "log.db"))

    damaged = "the search index was damaged and is made anew"
    assert told.splitlines() == ["answer 2", damaged, "answer 2"]


def read_only(place: Path, *words: str) -> Any:
    mount = f'mount --bind {place} {place} && mount -o remount,bind,ro {place} && exec "$@"'
    prefix = ("unshare", "-Urm", "sh", "-c", mount, "sh")
    if (
        not shutil.which("unshare")
        or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("nothing can be mounted read-only here")
    return subprocess.run(
        [*prefix, sys.executable, "-m", "onrecord.projections.cli", *words],
        env={**os.environ, "ONRECORD_DB": f"sqlite:///{place}/log.db"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
