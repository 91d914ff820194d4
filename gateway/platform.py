"""What the gateway asks of a chat platform's adapter.

An adapter subclasses `Platform` (or `AsyncPlatform`), states its `abilities` and overrides `send`,
and `edit`, `lookup` and `render` where the platform has them. It makes one request a call, retries
nothing itself, and on failure raises what `onrecord.gateway.outcomes` names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from onrecord.transcript.events import Target

Op = Literal["send", "edit"]
Streaming = Literal["edit", "chunks", "whole"]


def utf16_units(text: str) -> int:
    """Return the length in UTF-16 units, as Telegram counts."""
    return len(text) + sum(c > "\uffff" for c in text)


@dataclass(frozen=True)
class Abilities:
    """What a platform can do.

    `limit`: the longest message, as `count` counts its content (code points unless said; Telegram
    counts `utf16_units`). `streaming`: how a reply shows while it is written: by edits of one
    message, as chunks that each go out, or whole at its end. `interval`: seconds between two parts of
    a stream. `formats`: markups to try in turn, None is plain text. `lookup`: a message can be asked
    for. `idempotent`: a send repeated under the same key shows once.
    """

    limit: int = 4096
    count: Callable[[str], int] = len
    streaming: Streaming = "whole"
    interval: float = 0.0
    formats: tuple[str | None, ...] = (None,)
    lookup: bool = False
    idempotent: bool = False


@dataclass(frozen=True)
class Request:
    """One message as it goes out.

    `text` is the content, `wire` what to send of it (markup applied). For an edit both are the whole
    message, and `platform_message` is the one to change. `key` is the same for every try of the same
    bytes: the transaction id, nonce or metadata of platforms that have one.
    """

    op: Op
    target: Target
    text: str
    wire: str
    key: str
    format: str | None = None
    platform_message: str | None = None


@dataclass(frozen=True)
class Found:
    """What a lookup says: taken (under which id), or surely not."""

    taken: bool
    platform_message: str | None = None


class Platform:
    """A chat platform, blocking."""

    abilities: Abilities = Abilities()

    def send(self, request: Request) -> str:
        """Post a message; return the platform's id for it, empty where it gives none."""
        raise NotImplementedError

    def edit(self, request: Request) -> None:
        """Change a message to read `request.wire`; one that reads so already is a success."""
        raise NotImplementedError

    def lookup(self, request: Request) -> Found | None:
        """Say whether the platform took a request; None where it can't be known."""
        raise NotImplementedError

    def render(self, text: str, format: str | None) -> str:  # noqa: A002 - the event's own word
        """Return `text` in the markup of `format`. Pure: equal arguments, equal result."""
        del format
        return text


class AsyncPlatform:
    """A chat platform, for an event loop. As `Platform`, method by method."""

    abilities: Abilities = Abilities()

    async def send(self, request: Request) -> str:
        """Post a message; return the platform's id for it, empty where it gives none."""
        raise NotImplementedError

    async def edit(self, request: Request) -> None:
        """Change a message to read `request.wire`; one that reads so already is a success."""
        raise NotImplementedError

    async def lookup(self, request: Request) -> Found | None:
        """Say whether the platform took a request; None where it can't be known."""
        raise NotImplementedError

    def render(self, text: str, format: str | None) -> str:  # noqa: A002 - the event's own word
        """Return `text` in the markup of `format`. Pure: equal arguments, equal result."""
        del format
        return text
