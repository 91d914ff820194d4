"""A file of JSON lines a session, each line synced."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from store import Store
from workload import SaidTurn, messages


class JsonLines(Store):
    def __init__(self, folder: Path, variant: str) -> None:
        super().__init__(folder, variant)
        self._files: dict[str, int] = {}

    def close(self) -> None:
        for session in list(self._files):
            self.release(session)

    def release(self, session: str) -> None:
        os.close(self._files.pop(session))

    def append(self, session: str, turn: SaidTurn) -> None:
        for message in messages(turn):
            self._write(session, message)

    def seed(self, session: str, turns: Iterable[SaidTurn]) -> None:
        for turn in turns:
            for message in messages(turn):
                self._write(session, message, sync=False)

    def stream(self, session: str, question: str, chunks: Iterable[str]) -> None:
        self._write(session, {"role": "user", "content": question})
        said: list[str] = []
        for chunk in chunks:
            self._write(session, {"chunk": chunk})
            said.append(chunk)
        self._write(session, {"role": "assistant", "content": "".join(said)})

    def load(self, session: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        chunks: list[str] = []
        with self._path(session).open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # torn by a crash
                message = json.loads(line)
                if "chunk" in message:
                    chunks.append(message["chunk"])
                else:
                    found.append(message)
        if chunks and found[-1]["role"] != "assistant":
            found.append({"role": "assistant", "content": "".join(chunks)})
        return found

    def _path(self, session: str) -> Path:
        return self.folder / f"{session}.jsonl"

    def _write(self, session: str, message: dict[str, Any], *, sync: bool = True) -> None:
        file = self._files.get(session)
        if file is None:
            file = os.open(self._path(session), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
            self._files[session] = file
        os.write(file, json.dumps(message).encode() + b"\n")
        if sync:
            os.fsync(file)


def open_store(folder: Path, variant: str) -> Store:
    return JsonLines(folder, variant)
