"""An application of the eventsourcing library on its SQLite: an aggregate a session, saved a message.

The aggregate is held in memory, which is the fast way; getting it for each command is linear.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from eventsourcing.application import AggregateNotFoundError, Application
from eventsourcing.domain import Aggregate, event

from store import Store
from workload import SaidTurn, messages


class Conversation(Aggregate):
    @event("Started")
    def __init__(self, session: str) -> None:
        self.session = session
        self.messages: list[dict[str, Any]] = []
        self.chunks: list[str] = []

    @classmethod
    def create_id(cls, session: str) -> UUID:
        return uuid5(NAMESPACE_URL, session)

    @event("Said")
    def say(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self.chunks = []

    @event("ChunkShown")
    def show(self, chunk: str) -> None:
        self.chunks.append(chunk)


class EventSourcing(Store):
    def __init__(self, folder: Path, variant: str) -> None:
        super().__init__(folder, variant)
        where = {
            "PERSISTENCE_MODULE": "eventsourcing.sqlite",
            "SQLITE_DBNAME": str(folder / "events.db"),
        }
        self._application: Application[UUID] = Application(env=where)
        self._held: dict[str, Conversation] = {}

    def close(self) -> None:
        self._application.close()

    def release(self, session: str) -> None:
        del self._held[session]

    def refresh(self, session: str) -> None:
        if session in self._held:
            self._held[session] = self._get(session)

    def prepare(self, session: str) -> None:
        self._hold(session)

    def append(self, session: str, turn: SaidTurn) -> None:
        conversation = self._hold(session)
        for message in messages(turn):
            conversation.say(message)
            self._application.save(conversation)

    def seed(self, session: str, turns: Iterable[SaidTurn]) -> None:
        conversation = self._hold(session)
        for turn in turns:
            for message in messages(turn):
                conversation.say(message)
        self._application.save(conversation)

    def stream(self, session: str, question: str, chunks: Iterable[str]) -> None:
        conversation = self._hold(session)
        conversation.say({"role": "user", "content": question})
        self._application.save(conversation)
        for chunk in chunks:
            conversation.show(chunk)
            self._application.save(conversation)
        conversation.say({"role": "assistant", "content": "".join(conversation.chunks)})
        self._application.save(conversation)

    def load(self, session: str) -> list[dict[str, Any]]:
        conversation = self._get(session)
        if conversation.chunks:
            partial = {"role": "assistant", "content": "".join(conversation.chunks)}
            return [*conversation.messages, partial]
        return conversation.messages

    def _get(self, session: str) -> Conversation:
        found: Conversation = self._application.repository.get(Conversation.create_id(session))
        return found

    def _hold(self, session: str) -> Conversation:
        if session not in self._held:
            try:
                self._held[session] = self._get(session)
            except AggregateNotFoundError:
                self._held[session] = Conversation(session)
                self._application.save(self._held[session])
        return self._held[session]


def open_store(folder: Path, variant: str) -> Store:
    return EventSourcing(folder, variant)
