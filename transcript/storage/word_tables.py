"""The tables of the search index, made by whoever searches: no part of a log's schema.

A text is found by its trigrams, which need no words to be told apart and so serve every script. On
SQLite they are FTS5's, on PostgreSQL lexemes of a `tsvector`; what they find is held against the text
itself, so both find the same. Nothing of it is on the path of an append, and all of it can be dropped.
"""

from __future__ import annotations

from typing import Any

FORMAT = 1
"""The version of these tables and of what is written to them; others are dropped and made anew."""
MERGED_AT_ONCE = 500
"""Pages of the index that one transaction merges."""
EMPTIED_AT_ONCE = 500
"""Rows, or pages of the index, that one transaction removes before a big index is dropped."""
KNOWN = "\u2400\u2401\u2402"
"""Stands in the index from the start: where it isn't found, the index is damaged."""

_SHARED = (
    # `unmerged`: what was removed may still stand in the index's pages.
    "CREATE TABLE onrecord_search_index (format INTEGER NOT NULL, unmerged INTEGER NOT NULL)",
    f"INSERT INTO onrecord_search_index VALUES ({FORMAT}, 0)",
    # `number`: the session's in the stored projections. `size`: how many rows are indexed.
    """CREATE TABLE onrecord_search_sessions (
        number INTEGER NOT NULL PRIMARY KEY,
        version INTEGER NOT NULL,
        size INTEGER NOT NULL
    )""",
    # `id` and `digest`: of the stored turn whose rows are indexed.
    "CREATE TABLE onrecord_search_turns (id INTEGER NOT NULL PRIMARY KEY, digest BLOB NOT NULL)",
)
_SQLITE = (
    *_SHARED,
    """CREATE TABLE onrecord_search_rows (
        id INTEGER PRIMARY KEY,
        turn INTEGER NOT NULL,
        n INTEGER NOT NULL,
        role TEXT NOT NULL,
        at INTEGER NOT NULL,
        folded TEXT NOT NULL,
        UNIQUE (turn, n)
    )""",
    """CREATE VIRTUAL TABLE onrecord_search_words USING fts5 (
        folded, content='onrecord_search_rows', content_rowid='id', detail=none,
        tokenize='trigram case_sensitive 1'
    )""",
    f"INSERT INTO onrecord_search_rows VALUES (0, -1, 0, '', 0, '{KNOWN}')",
    f"INSERT INTO onrecord_search_words (rowid, folded) VALUES (0, '{KNOWN}')",
)
_POSTGRES = (
    *(text.replace("INTEGER", "BIGINT").replace("BLOB", "BYTEA") for text in _SHARED),
    # `grams`: none where a text has more of them than a tsvector takes.
    """CREATE TABLE onrecord_search_rows (
        turn BIGINT NOT NULL,
        n BIGINT NOT NULL,
        role TEXT NOT NULL,
        at BIGINT NOT NULL,
        folded TEXT NOT NULL,
        grams tsvector,
        PRIMARY KEY (turn, n)
    )""",
    "CREATE INDEX onrecord_search_rows_grams ON onrecord_search_rows USING gin (grams)",
    "CREATE INDEX onrecord_search_rows_without ON onrecord_search_rows (turn) WHERE grams IS NULL",
    f"""INSERT INTO onrecord_search_rows VALUES
        (-1, 0, '', 0, '{KNOWN}', array_to_tsvector('{{{KNOWN}}}'))""",
)
_TABLES = (
    "onrecord_search_rows",
    "onrecord_search_turns",
    "onrecord_search_sessions",
    "onrecord_search_index",
)
_OF_FTS5 = tuple(
    f"DROP TABLE IF EXISTS onrecord_search_words_{name}"
    for name in ("data", "idx", "docsize", "config")
)
_EMPTIED = (
    *_OF_FTS5,
    "CREATE TABLE onrecord_search_words_config (k PRIMARY KEY, v) WITHOUT ROWID",
    "INSERT INTO onrecord_search_words_config VALUES ('version', 4)",
    "CREATE TABLE onrecord_search_words_data (id INTEGER PRIMARY KEY, block BLOB)",
    "INSERT INTO onrecord_search_words_data VALUES (1, x''), (10, x'00000000000000')",
)
"""What an empty table of FTS5 consists of, as far as it is read to be dropped."""


def format_of(connection: Any) -> int:
    """Return the format of the index that is there, 0 if there is none, -1 if it doesn't say."""
    if connection.dialect.name == "sqlite":
        asked = "SELECT 1 FROM sqlite_master WHERE name LIKE 'onrecord\\_search\\_%' ESCAPE '\\'"
    else:
        asked = (
            "SELECT 1 FROM pg_tables WHERE tablename LIKE 'onrecord\\_search\\_%' "
            "AND schemaname = ANY (current_schemas(false))"
        )
    if connection.execute(asked).fetchone() is None:
        return 0
    row = connection.execute("SELECT format FROM onrecord_search_index").fetchone()
    return -1 if row is None else int(row[0])


def create(connection: Any) -> None:
    """Make an empty index, unless another process just did."""
    take_turns(connection)
    if format_of(connection) == 0:
        for statement in _SQLITE if connection.dialect.name == "sqlite" else _POSTGRES:
            connection.execute(statement)


def drop(connection: Any) -> None:
    """Remove the index, whatever state it is in."""
    take_turns(connection)
    if connection.dialect.name == "sqlite":
        _drop_words(connection)
    for table in _TABLES:
        connection.execute(f"DROP TABLE IF EXISTS {table}")


def empty_some(connection: Any) -> bool:
    """Remove a part of an index that is to be dropped; return whether there may be more.

    SQLite overwrites what it removes, and whoever appends would wait for a gigabyte of it.
    """
    if connection.dialect.name != "sqlite":
        return False
    for table in ("onrecord_search_words_data", "onrecord_search_rows"):
        asked = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        if connection.execute(asked, (table,)).fetchone() is not None:
            some = f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} LIMIT ?)"
            if connection.execute(some, (EMPTIED_AT_ONCE,)).rowcount > 0:
                return True
    return False


def _drop_words(connection: Any) -> None:
    """Remove FTS5's tables. It drops its own only where it can read them, so they are emptied first."""
    asked = "SELECT 1 FROM sqlite_master WHERE name = 'onrecord_search_words' AND sql LIKE 'CREATE VIRTUAL%'"
    emptied = _EMPTIED if connection.execute(asked).fetchone() is not None else ()
    for statement in (*emptied, "DROP TABLE IF EXISTS onrecord_search_words", *_OF_FTS5):
        connection.execute(statement)


def take_turns(connection: Any) -> None:
    """Wait until no other transaction writes to the index."""
    if connection.dialect.in_turn:
        connection.execute(connection.dialect.in_turn, ("onrecord_search_index",))


def is_whole(connection: Any) -> bool:
    """Tell whether the index finds what must be there, and has all rows that it should."""
    if connection.dialect.name == "sqlite":
        finds = "SELECT count(*) FROM onrecord_search_words WHERE onrecord_search_words MATCH ?"
    else:
        finds = "SELECT count(*) FROM onrecord_search_rows WHERE turn = -1 AND grams @@ ?::tsquery"
    known = connection.execute(finds, (f'"{KNOWN}"' if "MATCH" in finds else f"'{KNOWN}'",))
    if known.fetchone()[0] != 1:
        return False
    there, told = connection.execute(
        "SELECT (SELECT count(*) FROM onrecord_search_rows), "
        "(SELECT coalesce(sum(size), 0) FROM onrecord_search_sessions)"
    ).fetchone()
    return int(there) == int(told) + 1


def merge(connection: Any, *, first: bool) -> bool:
    """Merge a part of the index, so that nothing is left in it of what was removed.

    Return whether there is more to merge. PostgreSQL does that by itself, when it vacuums.
    """
    take_turns(connection)
    unmerged = connection.execute("SELECT unmerged FROM onrecord_search_index").fetchone()[0]
    if unmerged and connection.dialect.name == "sqlite":
        before = connection.total_changes
        pages = -MERGED_AT_ONCE if first else MERGED_AT_ONCE
        connection.execute(
            "INSERT INTO onrecord_search_words (onrecord_search_words, rank) VALUES ('merge', ?)",
            (pages,),
        )
        if first or connection.total_changes - before > 1:
            return True
    connection.execute("UPDATE onrecord_search_index SET unmerged = 0")
    return False
