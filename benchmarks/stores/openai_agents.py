"""The OpenAI Agents SDK's sessions, three calls of add_items a turn, as its Runner makes them.

sqlite: SQLiteSession. sqlalchemy: SQLAlchemySession over aiosqlite.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from importlib import import_module  # a peer is installed in an environment of its own
from pathlib import Path
from typing import Any

from store import Store
from workload import SaidTurn

_agents = import_module("agents")
_engines = import_module("sqlalchemy.ext.asyncio")
# Each name there is loaded when it is first used, and importing is told apart from opening.
_SQLAlchemySession = import_module("agents.extensions.memory").SQLAlchemySession
KINDS = {"function_call": "assistant", "function_call_output": "tool"}


class OpenAIAgents(Store):
    def __init__(self, folder: Path, variant: str) -> None:
        super().__init__(folder, variant)
        self._loop = asyncio.new_event_loop()
        self._sessions: dict[str, Any] = {}
        self._engine: Any = None
        if variant == "sqlalchemy":
            self._engine = _engines.create_async_engine(f"sqlite+aiosqlite:///{folder}/agents.db")
            # Creates the tables, which two processes at once can't.
            self._loop.run_until_complete(self._session("").get_items(1))

    def close(self) -> None:
        for session in list(self._sessions):
            self.release(session)
        if self._engine is not None:
            self._loop.run_until_complete(self._engine.dispose())
        self._loop.close()

    def release(self, session: str) -> None:
        held = self._sessions.pop(session)
        if hasattr(held, "close"):
            held.close()

    def prepare(self, session: str) -> None:
        self._session(session)

    def append(self, session: str, turn: SaidTurn) -> None:
        self._loop.run_until_complete(self._add(session, _steps(turn)))

    def seed(self, session: str, turns: Iterable[SaidTurn]) -> None:
        items = [item for turn in turns for step in _steps(turn) for item in step]
        self._loop.run_until_complete(self._add(session, [items]))

    def stream(self, session: str, question: str, chunks: Iterable[str]) -> None:
        self._loop.run_until_complete(self._add(session, [[_user(question)]]))
        answer = _assistant("stream", "".join(chunks))
        self._loop.run_until_complete(self._add(session, [[answer]]))

    def load(self, session: str) -> list[Any]:
        return self.tail(session, 0)

    def tail(self, session: str, count: int) -> list[Any]:
        read = self._session(session).get_items(count or None)
        found: list[Any] = self._loop.run_until_complete(read)
        return found

    def role(self, message: Any) -> str:
        return KINDS.get(message.get("type")) or str(message["role"])

    async def _add(self, session: str, steps: Iterable[list[dict[str, Any]]]) -> None:
        for step in steps:
            await self._session(session).add_items(step)

    def _session(self, session: str) -> Any:
        if session not in self._sessions:
            if self._engine is None:
                made = _agents.SQLiteSession(session, self.folder / "agents.db")
            else:
                made = _SQLAlchemySession(session, engine=self._engine, create_tables=True)
            self._sessions[session] = made
        return self._sessions[session]


def open_store(folder: Path, variant: str) -> Store:
    return OpenAIAgents(folder, variant)


def _steps(turn: SaidTurn) -> list[list[dict[str, Any]]]:
    call = {
        "type": "function_call",
        "id": f"fc_{turn.name}",
        "call_id": turn.call,
        "name": turn.tool,
        "arguments": turn.arguments,
        "status": "completed",
    }
    output = {"type": "function_call_output", "call_id": turn.call, "output": turn.result}
    return [[_user(turn.question)], [call, output], [_assistant(turn.name, turn.answer)]]


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _assistant(name: str, text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "type": "message",
        "role": "assistant",
        "id": f"msg_{name}",
        "status": "completed",
        "content": content,
    }
