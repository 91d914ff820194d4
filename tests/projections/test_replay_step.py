"""`replay --step` shows the next event when a key asks for it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EVENTS = 8
AGAIN_SECONDS = 0.2
"""A key that was pressed before the command listened is lost, so it is pressed again."""


@pytest.mark.parametrize(("key", "shown"), [("q", 1), ("Q", 1), (" ", EVENTS), ("\r", EVENTS)])
def test_a_key_goes_on_or_quits(
    scenario: Callable[[str], Any], tmp_path: Path, key: str, shown: int
) -> None:
    scenario("killed-mid-stream")

    code, page = _on_a_terminal(["replay", "killed-mid-stream", "--step"], tmp_path, key)

    assert code == 0
    assert "space or enter: the next event; q: quit" in page
    assert page.count("09:00:0") == shown
    assert f"{shown} event{'s' if shown > 1 else ''}\r\n" in page
    assert "\x1b[32m" in page


def _on_a_terminal(words: list[str], at: Path, key: str) -> tuple[int, str]:
    """Run the command on a terminal and press a key until it has ended."""
    ours, theirs = os.openpty()
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    env |= {"ONRECORD_DB": f"sqlite:///{at}/log.db", "TERM": "xterm-256color", "COLUMNS": "80"}
    command = [sys.executable, "-m", "onrecord.projections.cli", *words]
    page = b""
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as child:
        os.close(theirs)
        while child.poll() is None:
            if select.select([ours], [], [], AGAIN_SECONDS)[0]:
                page += _read(ours)
            elif b"quit" in page:
                os.write(ours, key.encode())
        while rest := _read(ours):
            page += rest
    os.close(ours)
    return child.returncode, page.decode()


def _read(terminal: int) -> bytes:
    """Read what is there, nothing once the other end is closed."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
