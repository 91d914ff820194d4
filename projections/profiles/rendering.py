"""The profiles by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from onrecord.projections.profiles import (
    anthropic,
    converse,
    gemini,
    mistral,
    openai,
    responses,
)
from onrecord.projections.rows import Row
from onrecord.transcript.bulk import uncollected


class Renderer(Protocol):
    """What each profile's module offers."""

    def __call__(self, rows: Sequence[Row], *, annotate: bool = False) -> dict[str, Any]:
        """Return the fields of the provider's request."""
        ...


PROFILES: Mapping[str, Renderer] = MappingProxyType(
    {
        "openai": openai.render,
        "responses": responses.render,
        "anthropic": anthropic.render,
        "gemini": gemini.render,
        "mistral": mistral.render,
        "converse": converse.render,
    }
)


def render(rows: Sequence[Row], profile: str, *, annotate: bool = False) -> dict[str, Any]:
    """Return the fields of a provider's request that hold the conversation.

    `annotate` says in brackets what the user has not, or perhaps not, seen. Raises ValueError for a
    profile that there is none of.
    """
    renderer = PROFILES.get(profile)
    if renderer is None:
        raise ValueError(f"no profile {profile!r}: use one of {', '.join(PROFILES)}")
    with uncollected():
        return renderer(rows, annotate=annotate)
