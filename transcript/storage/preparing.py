"""Making a SQLite database a log, or one of an older schema a log of this one."""

from __future__ import annotations

from typing import Any

from onrecord.transcript.errors import NotALog, StorageFailed
from onrecord.transcript.storage import files
from onrecord.transcript.storage.schema import (
    APPLICATION_ID,
    MIGRATIONS,
    SCHEMA_VERSION,
    wrong_schema,
)


def prepare(connection: Any, path: str | None, *, create: bool, migrate: bool) -> int:
    """Bring the database to this schema, if that was asked for; return the schema that it had.

    0: there was no log. Raise SchemaVersionMismatch, NotALog, StorageFailed, the driver's errors.
    """
    ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    found = int(connection.execute("PRAGMA user_version").fetchone()[0]) if ours else 0
    if found > SCHEMA_VERSION or (found < SCHEMA_VERSION and not (migrate if found else create)):
        raise wrong_schema(path or "the log in memory", found)
    if found < SCHEMA_VERSION:
        _migrate(connection, path)
        if path is not None:
            # A rollback journal that came back after a power cut would undo the migration.
            files.sync_folder(path)
    if path is not None:
        _write_ahead(connection, path)
    return found


def _write_ahead(connection: Any, path: str) -> None:
    mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    if mode != "wal":
        # Only now: a file that SQLite has touched is empty or ours at every moment.
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        files.sync_folder(path)
    if mode != "wal":
        raise StorageFailed(
            f"{path}: no write-ahead log here; use a local file system", may_retry=False
        )


def _migrate(connection: Any, path: str | None) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited for the lock.
        ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        found = connection.execute("PRAGMA user_version").fetchone()[0] if ours else 0
        if not ours and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise NotALog(
                f"{path} is another application's database; give another path", where=path
            )
        for statements in MIGRATIONS[found:]:
            for statement in statements:
                connection.execute(statement)
        if found < SCHEMA_VERSION:
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
