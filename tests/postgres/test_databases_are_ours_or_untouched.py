"""What opening does: makes the tables, brings them up to date, or leaves what isn't ours alone."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from older_logs import make_older_log

from onrecord.transcript.errors import NotALog, SchemaVersionMismatch, StorageFailed, StorageFull
from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage import postgres_driver, schema, schema_postgres
from onrecord.transcript.verify import verify

COLUMNS = (
    "SELECT table_name, column_name FROM information_schema.columns "
    "WHERE table_schema = 'public' ORDER BY table_name, ordinal_position"
)
DEFINED = (
    f"{COLUMNS.replace('column_name', 'column_name, data_type, is_nullable, column_default')}",
    "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
    "SELECT proname, prosrc FROM pg_proc WHERE proname LIKE 'onrecord_%' ORDER BY 1",
)


def asked(url: str, statement: str) -> list[Any]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement.encode()).fetchall()


def said(message: str) -> UserMessageReceived:
    return UserMessageReceived(message=message, text="x")


def test_both_databases_have_the_same_tables(postgres_url: str) -> None:
    with TranscriptLog.open(postgres_url), TranscriptLog.open("sqlite://") as log:
        here = set(asked(postgres_url, COLUMNS))
        there = log.database.read(
            "asking",
            lambda c: {
                (table, column)
                for (table,) in c.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
                ).fetchall()
                for _, column, *_ in c.execute(f"PRAGMA table_info({table})").fetchall()
            },
        )

    own = {("records", "transaction_id"), ("onrecord_schema", "version")}
    assert here - there == own
    assert there - here == set()


def test_migrations_have_the_same_numbers() -> None:
    assert len(schema_postgres.MIGRATIONS) == schema.SCHEMA_VERSION


@pytest.mark.parametrize("version", range(1, schema.SCHEMA_VERSION))
def test_an_older_log_is_refused_until_it_is_migrated(
    postgres_server: Any, postgres_url: str, version: int
) -> None:
    make_older_log(postgres_url, version)

    with pytest.raises(SchemaVersionMismatch, match="onrecord migrate"):
        TranscriptLog.open(postgres_url)
    with TranscriptLog.open(postgres_url, migrate=True) as log:
        assert verify(log).faults == []
        assert [record.type for record in log.read("other")] == ["PlanMade"]
        assert log.append("other", said("a"))[0].version == 2
    with postgres_server.database() as fresh, TranscriptLog.open(fresh):
        for statement in DEFINED:
            assert asked(postgres_url, statement) == asked(fresh, statement)


def test_a_newer_log_is_refused(postgres_url: str) -> None:
    with TranscriptLog.open(postgres_url):
        pass
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE onrecord_schema SET version = 99")

    with pytest.raises(SchemaVersionMismatch, match="newer"):
        TranscriptLog.open(postgres_url, migrate=True)


def test_tables_of_another_application_are_left_alone(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE records (song TEXT)")
    before = asked(postgres_url, COLUMNS)

    with pytest.raises(NotALog, match="another application"):
        TranscriptLog.open(postgres_url)

    assert asked(postgres_url, COLUMNS) == before


def test_a_schema_of_its_own_keeps_it_apart(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE records (song TEXT)")
        connection.execute("CREATE SCHEMA own")

    with TranscriptLog.open(f"{postgres_url}&options=-csearch_path%3Down") as log:
        log.append("s", said("a"))

        assert log.last_position() == 1


def test_without_create_an_empty_database_stays_empty(postgres_url: str) -> None:
    with pytest.raises(SchemaVersionMismatch, match="there is no log in it yet"):
        TranscriptLog.open(postgres_url, create=False)

    assert asked(postgres_url, COLUMNS) == []


def test_many_open_a_new_one_at_once(postgres_url: str) -> None:
    def write(n: int) -> int:
        with TranscriptLog.open(postgres_url) as log:
            return log.append(f"s{n}", said("a"))[0].version

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(write, range(6))) == [1] * 6


def test_a_fork_has_connections_of_its_own(postgres_url: str) -> None:
    with TranscriptLog.open(postgres_url) as log:
        log.append("s", said("a"))
        log.database.data_version()
        log.version("s")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                log.append("s", said("b"))
                status = 0 if log.version("s") == 2 else 2
            finally:
                os._exit(status)

        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        log.append("s", said("c"))
        assert [record.version for record in log.read("s")] == [1, 2, 3]


def test_no_message_shows_a_password() -> None:
    for url in (
        "postgresql://me:geheim@127.0.0.1:9/db",
        "postgresql://127.0.0.1:9/db?user=me&password=geheim",
        "postgresql://me:geheim@127.0.0.1:9/db?keepalives_idle=often",
        "postgresql://me:geheim@127.0.0.1:9/db?no_such=option",
        "postgresql://me:geheim@127.0.0.1:port/db",
        "postgresql://me:not@geheim@127.0.0.1:9/db",
        "mysql://me:geheim@127.0.0.1/db?password=geheim",
    ):
        with pytest.raises((StorageFailed, NotALog)) as caught:
            TranscriptLog.open(url)

        error: BaseException | None = caught.value
        while error is not None:
            assert "geheim" not in f"{error} {error!r}"
            error = error.__cause__ or error.__context__


def test_a_server_that_is_not_there_is_told_in_one_sentence() -> None:
    with pytest.raises(StorageFailed) as caught:
        TranscriptLog.open("postgresql://127.0.0.1:9/db")

    assert str(caught.value).endswith(
        "no server answers at 127.0.0.1:9 (Connection refused); start it or check the URL"
    )
    assert caught.value.may_retry


def test_an_at_sign_in_a_password_is_to_be_escaped() -> None:
    with pytest.raises(NotALog, match="write @ in the password as %40"):
        TranscriptLog.open("postgresql://me:not@this@127.0.0.1:9/db")


def test_a_full_disk_is_told_as_one() -> None:
    told = postgres_driver.translate(psycopg.errors.DiskFull("no space"), "appending")

    assert isinstance(told, StorageFull)


def test_without_psycopg_one_sentence_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from onrecord.transcript.log import TranscriptLog\n"
        "from onrecord.transcript.errors import StorageFailed\n"
        "try: TranscriptLog.open('postgresql://localhost/db')\n"
        "except StorageFailed as error: print(error, error.may_retry)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.endswith("pip install 'onrecord[postgresql]' False\n")


def test_a_log_on_sqlite_loads_no_psycopg() -> None:
    program = (
        "import sys; from onrecord.transcript.log import TranscriptLog\n"
        "TranscriptLog.open('sqlite://').close(); sys.exit('psycopg' in sys.modules)"
    )

    subprocess.run([sys.executable, "-c", program], check=True)
