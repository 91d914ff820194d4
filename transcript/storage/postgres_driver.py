"""The one module that imports psycopg: connections to PostgreSQL as our statements use them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from onrecord.transcript.errors import StorageBusy, StorageError, StorageFailed, StorageFull
from onrecord.transcript.storage.dialect import Dialect
from onrecord.transcript.storage.schema_postgres import WRITERS

try:
    import psycopg
except ImportError as missing:
    raise StorageFailed(
        f"a log on PostgreSQL needs psycopg 3 ({missing}): pip install 'onrecord[postgresql]'",
        may_retry=False,
    ) from missing
from psycopg import errors, pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import Int8BinaryDumper
from sqlalchemy.engine import URL

Error: type[Exception] = psycopg.Error
IntegrityError: type[Exception] = psycopg.IntegrityError

CHANNEL = "onrecord"
"""What is notified of commits."""
OLDEST_SERVER = 130000
"""The first version with transaction ids of 64 bits."""
CONNECT_TIMEOUT = 5
"""Seconds that one try to connect takes at most."""
KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_COUNT = 5, 2, 3
"""Seconds of silence before the other end is asked, between two questions, and how many."""
UNANSWERED = 10_000
"""Milliseconds that what was sent may stay unacknowledged."""
LONGEST_READ = 60.0
"""Seconds that a statement of a reader may take."""
SHORTEST_IDLE = 1.0
"""Seconds that an open transaction may be left alone, at least."""

POSTGRES = Dialect(
    name="postgresql",
    clock="(extract(epoch from clock_timestamp()) * 1000000)::bigint",
    # Positions grow with the ids of transactions. Ids from the snapshot's end on are of another
    # cluster, where the log was restored from.
    settled=(
        "(r.transaction_id < (SELECT onrecord_settled_before(pg_current_snapshot())) "
        "OR r.transaction_id >= (SELECT pg_snapshot_xmax(pg_current_snapshot())))"
    ),
    blank_chain="decode(repeat('00', 32), 'hex')",
    snapshot="BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    in_turn=f"SELECT pg_advisory_xact_lock(hashtextextended(?, {WRITERS}))",
)


class NoServer(psycopg.OperationalError):
    """Nobody answers where the server should be."""


class _Cursor(psycopg.Cursor[Any]):
    lastrowid = None  # positions are reserved before


class PostgresConnection:
    """A connection in autocommit mode. `backend` tells the server's process from a later one."""

    dialect = POSTGRES

    def __init__(
        self, raw: psycopg.Connection[Any], backend: tuple[int, str] | None = None
    ) -> None:
        self.raw = raw
        self.backend = backend
        self._positions: Iterator[int] = iter(())

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Any:
        """Execute a statement with `?` for parameters; return its cursor."""
        cursor = _Cursor(self.raw)
        if not parameters:
            return cursor.execute(statement.encode(), binary=True)
        return cursor.execute(_said_here(statement), parameters, binary=True)

    def executemany(self, statement: str, parameters: Any, /) -> Any:
        """Execute a statement for each of the parameters, in one round trip."""
        cursor = _Cursor(self.raw)
        cursor.executemany(_said_here(statement), parameters)
        return cursor

    def several(self, statements: str) -> Any:
        """Execute statements without parameters in one round trip."""
        return psycopg.Cursor(self.raw).execute(statements.encode(), prepare=False)

    @property
    def in_transaction(self) -> bool:
        """Tell whether a transaction is open."""
        return self.raw.info.transaction_status != pq.TransactionStatus.IDLE

    def begin(self, sessions: Sequence[str], events: int, *, durable: bool) -> None:
        """Begin a transaction, keep other writers from the sessions and reserve positions."""
        begin = "BEGIN" if durable else "BEGIN; SET LOCAL synchronous_commit = off"
        self._positions = iter(())
        if not sessions:
            self.several(begin)
            return
        # In order, so that no two wait for each other. Numbers alone, so that all is one round trip.
        locks = sorted({zlib.crc32(name.encode()) - (1 << 31) for name in sessions})
        cursor = self.several(
            f"{begin}; SELECT onrecord_begin('{{{','.join(map(str, locks))}}}', {events})"
        )
        while cursor.nextset():
            pass
        first = cursor.fetchone()[0]
        self._positions = iter(range(first, first + events))

    def next_position(self) -> int:
        """Return the position that the next record gets."""
        # One taken later would break the order, so there is none.
        position = next(self._positions, None)
        assert position is not None, "more records than positions were reserved for"
        return position

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        self.raw.close()


def conninfo(url: URL) -> str:
    """Return what libpq connects with: the URL's own options win over ours."""
    _, given = url.set(drivername="postgresql+psycopg").get_dialect()().create_connect_args(url)
    ours = {
        "application_name": "onrecord",
        "connect_timeout": CONNECT_TIMEOUT,
        "keepalives_idle": KEEPALIVE_IDLE,
        "keepalives_interval": KEEPALIVE_INTERVAL,
        "keepalives_count": KEEPALIVE_COUNT,
        "tcp_user_timeout": UNANSWERED,
    }
    try:
        return make_conninfo(**{**ours, **given, "client_encoding": "UTF8"})
    except psycopg.Error as error:
        raise StorageFailed(f"{where(url)}: {told(error)}", may_retry=False) from error


def where(url: URL) -> str:
    """Return where a URL leads, without user, password and options."""
    given = url.query.get("host", "")
    host = url.host or (",".join(given) if isinstance(given, tuple) else given)
    name = f"/{url.database or ''}"
    if host.startswith("/"):
        return f"postgresql://{name}?host={host}"
    return f"postgresql://{host}{f':{url.port}' if url.port else ''}{name}"


def connect(info: str, busy_timeout: float, *, writing: bool) -> PostgresConnection:
    """Return a connection with our settings; raise the driver's errors."""
    try:
        raw = psycopg.connect(info, autocommit=True)
    except psycopg.OperationalError as error:
        if "FATAL:" in str(error):
            raise  # it answers, and doesn't want us
        raise NoServer(_not_reached(info, error)) from error
    try:
        raw.adapters.register_dumper(int, Int8BinaryDumper)
        raw.prepare_threshold = 1
        milliseconds = {
            "lock_timeout": busy_timeout,
            # Cutting a COMMIT that waits for its standby short would acknowledge it.
            "statement_timeout": 0 if writing else LONGEST_READ,
            # A stopped writer gives its sessions up before those who wait for them do.
            "idle_in_transaction_session_timeout": max(SHORTEST_IDLE, busy_timeout / 2),
        }
        settings = {name: str(int(seconds * 1000)) for name, seconds in milliseconds.items()}
        settings |= {"default_transaction_isolation": "read committed", "synchronous_commit": "on"}
        made = PostgresConnection(raw)
        set_all = ", ".join(f"set_config('{name}', ?, false)" for name in settings)
        found = made.execute(
            f"SELECT pid, backend_start::text, {set_all} FROM pg_stat_activity "
            "WHERE pid = pg_backend_pid()",
            tuple(settings.values()),
        ).fetchone()
        made.backend = (found[0], found[1])
    except BaseException:
        raw.close()
        raise
    if raw.info.server_version < OLDEST_SERVER:
        raw.close()
        raise StorageFailed(
            f"this is PostgreSQL {raw.info.server_version // 10_000}; use 13 or newer",
            may_retry=False,
        )
    return made


def _not_reached(info: str, error: Exception) -> str:
    given = conninfo_to_dict(info)
    why = str(error).partition("\n")[0].rpartition("failed: ")[2]
    address = f"{given.get('host') or 'localhost'}:{given.get('port') or 5432}"
    return f"no server answers at {address} ({why}); start it or check the URL"


@lru_cache(maxsize=512)
def _said_here(statement: str) -> bytes:
    return statement.replace("%", "%%").replace("?", "%s").encode()


def told(error: BaseException) -> str:
    """Return what an error says: the server's first line, for the others hold values of rows."""
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    if said:
        return said
    return " ".join(str(error).split())


def is_lost(error: BaseException) -> bool:
    """Tell whether the server went away, shuts down or starts up: another connection may do."""
    if not isinstance(error, psycopg.OperationalError):
        return False
    if isinstance(error, errors.QueryCanceled):
        return False
    return error.sqlstate is None or error.sqlstate[:2] in ("08", "57")


def is_race(error: BaseException) -> bool:
    """Tell whether two transactions met so that one of them must be done again."""
    return isinstance(
        error, (errors.UniqueViolation, errors.DeadlockDetected, errors.SerializationFailure)
    )


def is_there_already(error: BaseException) -> bool:
    """Tell whether something of the name was there when it was to be made."""
    return isinstance(
        error, (errors.DuplicateTable, errors.DuplicateFunction, errors.DuplicateObject)
    )


def translate(error: BaseException, doing: str, waited: float = 0.0) -> StorageError:
    """Return our error for one of the driver's, when nothing was stored. No text of an event in it."""
    if isinstance(error, errors.LockNotAvailable) or is_race(error):
        return StorageBusy(
            f"{doing}: another process held the lock for {waited:.1f} s; try again, with the same "
            "events, or open the log with a longer busy_timeout",
            waited=waited,
        )
    if isinstance(error, errors.DiskFull):
        return StorageFull(f"{doing}: no space is left on the server; make room, then try again")
    if isinstance(error, NoServer):
        return StorageFailed(f"{doing}: {error}")
    return StorageFailed(f"{doing}: {type(error).__name__}: {told(error)}")
