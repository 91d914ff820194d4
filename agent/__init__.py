"""What an agent loop calls: turns, streams, tools, on record.

The names here are the API; they are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onrecord.agent.async_turn import AsyncAgent, AsyncStream, AsyncTurn
    from onrecord.agent.turn import Agent, Stream, Turn

__all__ = [
    "Agent",
    "AsyncAgent",
    "AsyncStream",
    "AsyncTurn",
    "Stream",
    "Turn",
]

_HOME = {
    "Agent": "turn",
    "AsyncAgent": "async_turn",
    "AsyncStream": "async_turn",
    "AsyncTurn": "async_turn",
    "Stream": "turn",
    "Turn": "turn",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
