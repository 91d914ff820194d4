"""What every store does in the benchmarks; `stores/` holds one adapter a module, through public API."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workload import SaidTurn


class Store(ABC):
    """A store that is open. Its settings are its defaults: what a user gets who reads its tutorial."""

    def __init__(self, folder: Path, variant: str) -> None:
        self.folder = folder
        self.variant = variant

    @abstractmethod
    def append(self, session: str, turn: SaidTurn) -> None:
        """Store a turn, committed as the store's own runner commits it."""

    @abstractmethod
    def load(self, session: str) -> list[Any]:
        """Return a session's messages, as they would go to a model."""

    @abstractmethod
    def stream(self, session: str, question: str, chunks: Iterable[str]) -> None:
        """Store a turn whose answer comes in chunks; a chunk is shown when the next one is taken."""

    def seed(self, session: str, turns: Iterable[SaidTurn]) -> None:
        """Store many turns, as fast as the store can."""
        for turn in turns:
            self.append(session, turn)

    def tail(self, session: str, count: int) -> list[Any]:
        """Return the last messages; stores that can't ask for them load all."""
        return self.load(session)[-count:]

    def prepare(self, session: str) -> None:  # noqa: B027  most stores need nothing
        """Make a session, where a store wants it made before its first message."""

    def refresh(self, session: str) -> None:  # noqa: B027
        """Learn what another process wrote, where the store's runner does so before a turn."""

    def release(self, session: str) -> None:  # noqa: B027
        """Let go of what is held for a session."""

    @abstractmethod
    def close(self) -> None:
        """Close the store."""

    def role(self, message: Any) -> str:
        """Return user, assistant or tool."""
        return str(message["role"])

    def text(self, message: Any) -> str:
        """Return all of a message as one text."""
        return json.dumps(message, default=str)
