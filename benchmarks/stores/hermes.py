"""hermes-agent's SessionDB, a row a message, as its loop flushes them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module  # a peer is installed in an environment of its own
from pathlib import Path
from typing import Any

from store import Store
from workload import SaidTurn

_SessionDB = import_module("hermes_state").SessionDB


class Hermes(Store):
    def __init__(self, folder: Path, variant: str) -> None:
        super().__init__(folder, variant)
        self._db = _SessionDB(folder / "state.db")
        self._known: set[str] = set()

    def close(self) -> None:
        self._db.close()

    def prepare(self, session: str) -> None:
        if session not in self._known:
            self._db.create_session(session, "cli")
            self._known.add(session)

    def append(self, session: str, turn: SaidTurn) -> None:
        self.prepare(session)
        for message in _messages(turn):
            self._db.append_message(session, **message)

    def seed(self, session: str, turns: Iterable[SaidTurn]) -> None:
        self.prepare(session)
        said = [message for turn in turns for message in _messages(turn)]
        self._db.replace_messages(session, said)

    def stream(self, session: str, question: str, chunks: Iterable[str]) -> None:
        self.prepare(session)
        self._db.append_message(session, role="user", content=question)
        said = "".join(chunks)
        self._db.append_message(session, role="assistant", content=said, finish_reason="stop")

    def load(self, session: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._db.get_messages_as_conversation(session)
        return found


def open_store(folder: Path, variant: str) -> Store:
    return Hermes(folder, variant)


def _messages(turn: SaidTurn) -> tuple[dict[str, Any], ...]:
    function = {"name": turn.tool, "arguments": turn.arguments}
    calls = [{"id": turn.call, "type": "function", "function": function}]
    return (
        {"role": "user", "content": turn.question},
        {"role": "assistant", "content": "", "tool_calls": calls, "finish_reason": "tool_calls"},
        {
            "role": "tool",
            "content": turn.result,
            "tool_name": turn.tool,
            "tool_call_id": turn.call,
        },
        {"role": "assistant", "content": turn.answer, "finish_reason": "stop"},
    )
