"""Servers that a test may stop, start again, follow by a standby and promote."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from cutting_proxy import SOCKET
from postgres_server import Server

STANDBY = "standby"
WAIT_SECONDS = 60
STREAMS = f"FROM pg_stat_replication WHERE application_name = '{STANDBY}' AND state = 'streaming'"


def _run(server: Server, program: str, *words: str) -> None:
    subprocess.run(
        [str(server.programs / program), *words], user=server.user, check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=WAIT_SECONDS,
    )  # fmt: skip


def control(server: Server, *words: str) -> None:
    """Let pg_ctl do something to the server, and wait until it is done."""
    options = ("-o", f"-h '' -k {server.socket}", "-l", str(server.data / "log"))
    _run(server, "pg_ctl", "-w", "-D", str(server.data), *options, *words)


def kill(server: Server) -> None:
    """Stop the server at once, as a crash does. Idempotent."""
    if (server.data / "postmaster.pid").exists():
        control(server, "-m", "immediate", "stop")


@contextmanager
def copy_of(server: Server, *options: str) -> Iterator[Server]:
    """Give a server that begins with what another one holds, and go on without it afterwards.

    `options`: what pg_basebackup is told.
    """
    data = Path(tempfile.mkdtemp(prefix="onrecord-pg-"))
    try:
        if server.user is not None:
            shutil.chown(data, server.user)
        source = f"host={server.socket} user=postgres application_name={STANDBY}"
        copying = ("--checkpoint=fast", "--no-sync", "-D", str(data), "-d", source)
        _run(server, "pg_basebackup", *copying, *options)
        (data / f"{SOCKET}.lock").unlink(missing_ok=True)  # copied, for it may stand there
        copy = Server(data, data, server.programs, server.user)
        control(copy, "start")
        try:
            yield copy
        finally:
            kill(copy)
    finally:
        shutil.rmtree(data)


@contextmanager
def standby_of(primary: Server, how: Literal["synchronous", "asynchronous"]) -> Iterator[Server]:
    """Give a standby that follows the primary; commits wait for a synchronous one."""
    with copy_of(primary, "--write-recovery-conf") as standby:
        wait_for(primary, f"SELECT 1 {STREAMS}")
        if how == "synchronous":
            change(primary, synchronous_standby_names=STANDBY)
            wait_for(primary, f"SELECT 1 {STREAMS} AND sync_state = 'sync'")
        yield standby


def change(server: Server, **settings: str) -> None:
    """Change settings of a running server."""
    with server.connect() as connection:
        for name, value in settings.items():
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
        connection.execute("SELECT pg_reload_conf()")


def cut_off(standby: Server, primary: Server) -> None:
    """Let the standby hear no more from the primary."""
    change(standby, primary_conninfo="")
    wait_for(primary, f"SELECT 1 WHERE NOT EXISTS (SELECT 1 {STREAMS})")


def wait_for(server: Server, question: str) -> tuple[object, ...]:
    """Ask until there is an answer; return it."""
    deadline = time.monotonic() + WAIT_SECONDS
    with server.connect() as connection:
        while (found := connection.execute(question.encode()).fetchone()) is None:
            assert time.monotonic() < deadline, f"no row in {WAIT_SECONDS} s: {question}"
            time.sleep(0.01)
    return found
