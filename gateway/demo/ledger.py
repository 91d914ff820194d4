"""What most programs do: keep a conversation in memory, and save a turn when it is over.

It is here to be compared with. A turn that doesn't come to its end leaves nothing in it, whatever the
user has read by then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path


class EndOfTurnLedger:
    """Writes a turn's messages to a JSON lines file, synced, once the turn is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def save(self, messages: Iterable[tuple[str, str]]) -> None:
        """Add the (role, text) of a turn's messages."""
        lines = [
            json.dumps({"role": role, "text": text}, ensure_ascii=False) + "\n"
            for role, text in messages
            if text
        ]
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            with os.fdopen(file, "wb", closefd=False) as out:
                out.write("".join(lines).encode("utf-8", "surrogatepass"))
            os.fsync(file)
        finally:
            os.close(file)


def read_ledger(path: Path) -> list[tuple[str, str]]:
    """Return the (role, text) of what a ledger holds; nothing where there is no file yet."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", errors="surrogatepass") as lines:
        entries = [json.loads(line) for line in lines if line.endswith("\n")]
    return [(entry["role"], entry["text"]) for entry in entries]
