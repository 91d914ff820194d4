"""onrecord: an event-sourced conversation log for AI agents. If it was delivered, it's on record.

The names below load the module that they stand in when they are first used, so that a writer never
pays for a viewer, and `import onrecord` costs next to nothing:

    TranscriptLog               open, append, read, subscribe
    events                      the vocabulary (onrecord.transcript.events)
    Recorded, Lease             an event as the log says it; the right to write intents
    OnRecordError, errors       the root of all errors, and the tree
    Agent, Gateway              the two writers
    project, build              the rows that follow from records; the same with the promise checked
    verify                      whether the log's evidence still holds
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onrecord.agent import Agent as Agent
    from onrecord.gateway import Gateway as Gateway
    from onrecord.projections.conversation import project as project
    from onrecord.projections.transcript import build as build
    from onrecord.transcript import errors as errors
    from onrecord.transcript import events as events
    from onrecord.transcript.errors import OnRecordError as OnRecordError
    from onrecord.transcript.leases import Lease as Lease
    from onrecord.transcript.log import TranscriptLog as TranscriptLog
    from onrecord.transcript.recorded import Recorded as Recorded
    from onrecord.transcript.verify import verify as verify

__version__ = "0.1.0"

# Name -> where it stands: "module:attribute", or the module itself.
_PUBLIC = {
    "Agent": "onrecord.agent:Agent",
    "Gateway": "onrecord.gateway:Gateway",
    "Lease": "onrecord.transcript.leases:Lease",
    "OnRecordError": "onrecord.transcript.errors:OnRecordError",
    "Recorded": "onrecord.transcript.recorded:Recorded",
    "TranscriptLog": "onrecord.transcript.log:TranscriptLog",
    "build": "onrecord.projections.transcript:build",
    "errors": "onrecord.transcript.errors",
    "events": "onrecord.transcript.events",
    "project": "onrecord.projections.conversation:project",
    "verify": "onrecord.transcript.verify:verify",
}

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "Agent",
    "Gateway",
    "Lease",
    "OnRecordError",
    "Recorded",
    "TranscriptLog",
    "__version__",
    "build",
    "errors",
    "events",
    "project",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use (PEP 562) and keep it."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _PUBLIC[name].partition(":")
    found: Any = import_module(module)
    if attribute:
        found = getattr(found, attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
