"""Another process, that does one thing to a log and says so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOLD = """
import sys
from onrecord.transcript.storage import dbapi
connection = dbapi.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE flushes SET count = count + 1")
print("held", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
connection.close()
print("released", flush=True)
"""
"""Holds the write lock of a log, with a page changed, until standard input is closed."""

LIMIT_SECONDS = 60


def _command(code: str, arguments: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def environment() -> dict[str, str]:
    """Return this process's environment, in which children find what it finds."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def run(code: str, *arguments: str, prefix: tuple[str, ...] = ()) -> str:
    """Run code to its end; return what it printed."""
    done = subprocess.run(
        [*prefix, *_command(code, arguments)],
        env=environment(), capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Give a process that holds the write lock of a log; it is killed in the end."""
    process = subprocess.Popen(
        _command(HOLD, (str(path),)),
        env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=LIMIT_SECONDS)
