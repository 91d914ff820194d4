"""The tables of a log on SQLite, and what guards them. Migrations are numbered and forward only."""

from __future__ import annotations

from onrecord.transcript.errors import SchemaVersionMismatch

APPLICATION_ID = 0x6F6E7263
"""'onrc', at byte 68 of the file: what makes a SQLite file ours."""

COLUMNS = (
    "session_key",
    "version",
    "id",
    "type",
    "event_version",
    "recorded_at",
    "generation",
    "commitment",
    "leaf",
    "chain",
)
_SAME = " AND ".join(f"NEW.{name} IS OLD.{name}" for name in ("position", *COLUMNS))

_FIRST = (
    # The session's name stands here alone, so that it can be erased. version and chain are its head.
    """CREATE TABLE sessions (
        session_key BLOB NOT NULL PRIMARY KEY CHECK (length(session_key) = 16),
        name BLOB UNIQUE,
        version INTEGER NOT NULL DEFAULT 0,
        chain BLOB NOT NULL CHECK (length(chain) = 32),
        started_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL
    ) WITHOUT ROWID""",
    # AUTOINCREMENT: a position is never given twice.
    """CREATE TABLE records (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        session_key BLOB NOT NULL REFERENCES sessions (session_key),
        version INTEGER NOT NULL CHECK (version > 0),
        id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
        type TEXT NOT NULL CHECK (length(type) > 0),
        event_version INTEGER NOT NULL,
        recorded_at INTEGER NOT NULL,
        generation INTEGER NOT NULL DEFAULT 0,
        commitment BLOB NOT NULL CHECK (length(commitment) = 32),
        leaf BLOB NOT NULL CHECK (length(leaf) = 32),
        chain BLOB NOT NULL CHECK (length(chain) = 32),
        salt BLOB,
        payload BLOB,
        UNIQUE (session_key, version),
        CHECK ((salt IS NULL) = (payload IS NULL))
    )""",
    # Which records lost their content, and the ContentErased that says why.
    """CREATE TABLE erasures (
        position INTEGER PRIMARY KEY REFERENCES records (position),
        erased_by INTEGER NOT NULL REFERENCES records (position)
    )""",
    """CREATE TABLE leases (
        session_key BLOB NOT NULL PRIMARY KEY REFERENCES sessions (session_key),
        owner BLOB NOT NULL,
        generation INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    ) WITHOUT ROWID""",
    # A row to write when earlier commits must be forced to the disk.
    "CREATE TABLE flushes (one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL)",
    "INSERT INTO flushes VALUES (1, 0)",
    # REPLACE deletes without a word where recursive triggers are off, so an insert is guarded too.
    """CREATE TRIGGER records_insert BEFORE INSERT ON records
        WHEN NEW.version IS NOT (SELECT version + 1 FROM sessions WHERE session_key = NEW.session_key)
            OR EXISTS (SELECT 1 FROM records WHERE id = NEW.id)
            OR NEW.position <= (SELECT max(position) FROM records) AND NEW.position IS NOT -1
        BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END""",
    """CREATE TRIGGER records_head AFTER INSERT ON records BEGIN
        UPDATE sessions SET version = NEW.version, chain = NEW.chain,
            started_at = CASE NEW.version WHEN 1 THEN NEW.recorded_at ELSE started_at END,
            updated_at = NEW.recorded_at
        WHERE session_key = NEW.session_key; END""",
    f"""CREATE TRIGGER records_update BEFORE UPDATE ON records
        WHEN NOT ({_SAME} AND NEW.salt IS NULL AND NEW.payload IS NULL
            AND EXISTS (SELECT 1 FROM erasures WHERE position = OLD.position))
        BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END""",
    """CREATE TRIGGER records_delete BEFORE DELETE ON records
        BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END""",
    """CREATE TRIGGER erasures_insert BEFORE INSERT ON erasures
        WHEN NOT EXISTS (SELECT 1 FROM records
                WHERE position = NEW.erased_by AND type = 'ContentErased')
            OR EXISTS (SELECT 1 FROM erasures WHERE position = NEW.position)
        BEGIN SELECT RAISE(ABORT, 'an erasure needs a recorded ContentErased'); END""",
    """CREATE TRIGGER erasures_update BEFORE UPDATE ON erasures
        BEGIN SELECT RAISE(ABORT, 'an erasure is final'); END""",
    """CREATE TRIGGER erasures_delete BEFORE DELETE ON erasures
        BEGIN SELECT RAISE(ABORT, 'an erasure is final'); END""",
    """CREATE TRIGGER sessions_update BEFORE UPDATE ON sessions
        WHEN NEW.session_key IS NOT OLD.session_key OR NEW.version < OLD.version
            OR NOT (NEW.name IS OLD.name OR NEW.name IS NULL)
        BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END""",
    """CREATE TRIGGER sessions_delete BEFORE DELETE ON sessions
        BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END""",
)

_SECOND = (
    # One build is live; another is made beside it and takes its place. `code`: the version of the
    # projection's rules that it was made with.
    """CREATE TABLE projection_builds (
        build INTEGER PRIMARY KEY AUTOINCREMENT,
        code INTEGER NOT NULL,
        live INTEGER NOT NULL CHECK (live IN (0, 1)),
        started_at INTEGER NOT NULL
    )""",
    # How far each session is projected. `state`: what goes on from there.
    """CREATE TABLE projected_sessions (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        build INTEGER NOT NULL REFERENCES projection_builds (build),
        session_key BLOB NOT NULL REFERENCES sessions (session_key),
        version INTEGER NOT NULL,
        turns INTEGER NOT NULL,
        shown INTEGER NOT NULL,
        state BLOB NOT NULL,
        UNIQUE (session_key, build)
    )""",
    # `id`: the session's number and the place, so that a session's turns lie together in order.
    # `place`: how many turns began before it. `generation`: the newest lease before it. `clean`: from
    # its first version on, no event names anything of the turns before. `shown`: the model sees it.
    """CREATE TABLE projected_turns (
        id INTEGER PRIMARY KEY,
        number INTEGER NOT NULL,
        place INTEGER NOT NULL,
        first_version INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        clean INTEGER NOT NULL,
        closed INTEGER NOT NULL,
        shown INTEGER NOT NULL,
        size INTEGER NOT NULL,
        rows BLOB NOT NULL,
        digest BLOB NOT NULL
    )""",
    "CREATE INDEX projected_turns_shown ON projected_turns (number, place) WHERE shown = 1",
    # Which turn first named something: `name` is a digest of it.
    """CREATE TABLE projected_names (
        number INTEGER NOT NULL REFERENCES projected_sessions (number),
        name INTEGER NOT NULL,
        place INTEGER NOT NULL,
        PRIMARY KEY (number, name)
    ) WITHOUT ROWID""",
    # What was sent in a turn, and what an audit finds in it; `id` is the turn's.
    "CREATE TABLE projected_deliveries (id INTEGER PRIMARY KEY, told BLOB NOT NULL)",
    "CREATE TABLE projected_findings (id INTEGER PRIMARY KEY, told BLOB NOT NULL)",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _SECOND)
"""Statements that take a log from schema n to schema n + 1; a new one runs all of them."""
SCHEMA_VERSION = len(MIGRATIONS)


def wrong_schema(where: str, found: int) -> SchemaVersionMismatch:
    """Return the error for a log of another schema, that says what to do."""
    if found > SCHEMA_VERSION:
        mend = "install the version that wrote it, or a newer one"
    elif found == 0:
        mend = "there is no log in it yet; open it for writing"
    else:
        mend = "stop the writers and run `onrecord migrate`"
    return SchemaVersionMismatch(
        f"{where} has schema {found}, this version of onrecord writes {SCHEMA_VERSION}; {mend}",
        found=found, supported=SCHEMA_VERSION,
    )  # fmt: skip
