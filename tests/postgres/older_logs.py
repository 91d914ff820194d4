"""Logs of earlier schemas on PostgreSQL, with the records of the SQLite file of that schema."""

from __future__ import annotations

from pathlib import Path

import psycopg

from onrecord.transcript.storage import dbapi
from onrecord.transcript.storage.schema_postgres import MIGRATIONS

FIXTURES = Path(__file__).resolve().parent.parent / "transcript" / "fixtures"


def make_older_log(url: str, version: int) -> None:
    """Make a log of a schema in an empty database."""
    old = dbapi.connect(f"{FIXTURES}/schema-{version}.db")
    sessions = old.execute("SELECT session_key, name FROM sessions").fetchall()
    records = old.execute("SELECT * FROM records ORDER BY position").fetchall()
    old.close()
    with psycopg.connect(url) as connection:
        for statements in MIGRATIONS[:version]:
            for statement in statements:
                connection.execute(statement.encode())
        connection.execute("CREATE TABLE onrecord_schema (version BIGINT NOT NULL)")
        connection.execute("INSERT INTO onrecord_schema VALUES (%s)", (version,))
        for key, name in sessions:
            connection.execute(
                "INSERT INTO sessions VALUES (%s, %s, 0, %s, 0, 0)", (key, name, bytes(32))
            )
        for record in records:
            places = ", ".join(["%s"] * len(record))
            connection.execute(f"INSERT INTO records VALUES ({places})".encode(), record)
        connection.execute(
            "SELECT setval('records_position_seq', (SELECT max(position) FROM records))"
        )
