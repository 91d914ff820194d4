"""Which database a URL means."""

from __future__ import annotations

import os
import re

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from onrecord.transcript.errors import NotALog
from onrecord.transcript.storage.database import BUSY_TIMEOUT, Database


def open_database(
    url: str | os.PathLike[str],
    *,
    create: bool = True,
    busy_timeout: float = BUSY_TIMEOUT,
    migrate: bool = False,
) -> Database:
    """Open the database at a URL or a path of a file.

    `create`: make a log where there is none. `migrate`: bring one of an older schema up to date, which
    is refused without it. Raise NotALog, SchemaVersionMismatch, StorageBusy, StorageFailed.
    """
    parsed = _parsed(url)
    if isinstance(parsed, URL) and parsed.get_backend_name() == "postgresql":
        from onrecord.transcript.storage.postgres import PostgresDatabase  # an extra

        return PostgresDatabase(parsed, create=create, busy_timeout=busy_timeout, migrate=migrate)
    from onrecord.transcript.storage.sqlite import SQLiteDatabase

    return SQLiteDatabase(path_of(url), create=create, busy_timeout=busy_timeout, migrate=migrate)


def path_of(url: str | os.PathLike[str]) -> str | None:
    """Return the file of a SQLite URL (or of a plain path), None for a log in memory.

    Raise NotALog for another kind of URL, and for one with a host (a slash too few) or options.
    """
    parsed = _parsed(url)
    if not isinstance(parsed, URL):
        return None if parsed in ("", ":memory:") else parsed
    where = _shown(parsed.render_as_string(hide_password=True))
    if parsed.get_backend_name() == "sqlite" and parsed.query:
        names = ", ".join(parsed.query)
        raise NotALog(f"{where} takes no options ({names}); leave out what follows ?", where=where)
    if parsed.get_backend_name() != "sqlite" or parsed.host:
        raise NotALog(
            f"{where} isn't supported; use sqlite:///path or postgresql://host/database",
            where=where,
        )
    return None if parsed.database in (None, "", ":memory:") else parsed.database


def is_in_memory(url: str | os.PathLike[str]) -> bool:
    """Tell whether the log at a URL is gone with the process."""
    parsed = _parsed(url)
    backend = parsed.get_backend_name() if isinstance(parsed, URL) else "sqlite"
    return backend == "sqlite" and path_of(url) is None


def _parsed(url: str | os.PathLike[str]) -> URL | str:
    text = os.fspath(url)
    if "://" not in text:
        return text
    try:
        parsed = make_url(text)
    except (ArgumentError, ValueError) as error:
        where = _shown(text)
        raise NotALog(
            f"{where!r} isn't a URL; use sqlite:///path or postgresql://host/database", where=where
        ) from error
    if "@" in (parsed.host or ""):
        where = _shown(text)
        raise NotALog(f"{where}: write @ in the password as %40", where=where)
    return parsed


def _shown(url: str) -> str:
    """Return a URL as messages may show it: without user, password and options."""
    return re.sub(r"://.*@", "://", url).partition("?")[0]
