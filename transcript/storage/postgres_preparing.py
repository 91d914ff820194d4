"""Making the tables of a log in a PostgreSQL database, or bringing older ones up to date."""

from __future__ import annotations

from typing import Any

from onrecord.transcript.errors import NotALog
from onrecord.transcript.storage import postgres_driver as driver
from onrecord.transcript.storage.schema import SCHEMA_VERSION, wrong_schema
from onrecord.transcript.storage.schema_postgres import MIGRATIONS, PREPARING


def prepare(connection: Any, where: str, *, create: bool, migrate: bool) -> int:
    """Bring the database to this schema, if that was asked for; return the schema that it had.

    0: there was no log. Raise SchemaVersionMismatch, NotALog, the driver's errors.
    """
    found = _found(connection)
    if found > SCHEMA_VERSION or (found < SCHEMA_VERSION and not (migrate if found else create)):
        raise wrong_schema(where, found)
    if found < SCHEMA_VERSION:
        _migrate(connection, where)
    return found


def _found(connection: Any) -> int:
    # Not to_regclass: it may say what was so before a lock was waited for.
    there = connection.execute(
        "SELECT 1 FROM pg_tables WHERE tablename = 'onrecord_schema' "
        "AND schemaname = ANY (current_schemas(false))"
    ).fetchone()
    if there is None:
        return 0
    return int(connection.execute("SELECT version FROM onrecord_schema").fetchone()[0])


def _migrate(connection: Any, where: str) -> None:
    connection.several("BEGIN")
    try:
        connection.execute("SELECT pg_advisory_xact_lock(?)", (PREPARING,))
        # Another process may have done it while this one waited for the lock.
        found = _found(connection)
        for statements in MIGRATIONS[found:]:
            for statement in statements:
                connection.several(statement)
        if found == 0:
            connection.several("CREATE TABLE onrecord_schema (version BIGINT NOT NULL)")
            connection.execute("INSERT INTO onrecord_schema VALUES (?)", (SCHEMA_VERSION,))
        elif found < SCHEMA_VERSION:
            connection.execute("UPDATE onrecord_schema SET version = ?", (SCHEMA_VERSION,))
        connection.several("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            connection.several("ROLLBACK")
        if driver.is_there_already(error):
            raise NotALog(
                f"{where} has tables of another application ({driver.told(error)}); give another "
                "database, or a schema of its own: ?options=-csearch_path%3Dname",
                where=where,
            ) from error
        raise
