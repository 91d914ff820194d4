"""LangChain's SQLChatMessageHistory: a turn is added at its end, as RunnableWithMessageHistory does."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from importlib import import_module  # a peer is installed in an environment of its own
from pathlib import Path
from typing import Any

from store import Store
from stores.langchain_chat import chat, messages, role, text
from workload import SaidTurn

with warnings.catch_warnings(action="ignore"):
    _histories = import_module("langchain_community.chat_message_histories")
_runnables = import_module("langchain_core.runnables")
_with_history = import_module("langchain_core.runnables.history")
_sqlalchemy = import_module("sqlalchemy")


class LangChain(Store):
    def __init__(self, folder: Path, variant: str) -> None:
        super().__init__(folder, variant)
        self._engine = _sqlalchemy.create_engine(f"sqlite:///{folder}/history.db")
        self._held: dict[str, Any] = {}

    def close(self) -> None:
        self._engine.dispose()

    def release(self, session: str) -> None:
        del self._held[session]

    def prepare(self, session: str) -> None:
        self._history(session)

    def append(self, session: str, turn: SaidTurn) -> None:
        self._history(session).add_messages(chat(turn))

    def seed(self, session: str, turns: Iterable[SaidTurn]) -> None:
        said = [message for turn in turns for message in chat(turn)]
        self._history(session).add_messages(said)

    def stream(self, session: str, question: str, chunks: Iterable[str]) -> None:
        def answer(asked: Iterator[Any]) -> Iterator[Any]:
            for _ in asked:
                pass
            for chunk in chunks:
                yield messages.AIMessageChunk(chunk)

        runnable = _with_history.RunnableWithMessageHistory(
            _runnables.RunnableGenerator(answer), self._by_id
        )
        config = {"configurable": {"session_id": session}}
        for _ in runnable.stream([messages.HumanMessage(question)], config=config):
            pass

    def load(self, session: str) -> list[Any]:
        return list(self._history(session).messages)

    def role(self, message: Any) -> str:
        return role(message)

    def text(self, message: Any) -> str:
        return text(message)

    def _by_id(self, session_id: str) -> Any:
        return self._history(session_id)

    def _history(self, session: str) -> Any:
        if session not in self._held:
            self._held[session] = _histories.SQLChatMessageHistory(
                session_id=session, connection=self._engine
            )
        return self._held[session]


def open_store(folder: Path, variant: str) -> Store:
    return LangChain(folder, variant)
