"""onrecord: an event-sourced conversation log for AI agents. If it was delivered, it's on record.

The names below load the module that they stand in when they are first used, so that a writer never
pays for a viewer, and `import onrecord` costs next to nothing:

    TranscriptLog               open, append, read, subscribe
    events                      the vocabulary (onrecord.transcript.events)
    Recorded, Lease             an event as the log says it; the right to write intents
    OnRecordError, errors       the root of all errors, and the tree
    Agent, Turn                 what the agent loop writes with (AsyncAgent: the same, awaited)
    Inbox, Outbox, Recovery     receive once, send and know, go on after a crash (AsyncInbox, …)
    project, build              the rows that follow from records; the same with the promise checked
    StoredProjections           the same from tables that go on from where they stood
    verify                      whether the log's evidence still holds
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onrecord.agent.async_turn import AsyncAgent as AsyncAgent
    from onrecord.agent.turn import Agent as Agent
    from onrecord.agent.turn import Turn as Turn
    from onrecord.gateway.async_delivery import AsyncOutbox as AsyncOutbox
    from onrecord.gateway.delivery import Outbox as Outbox
    from onrecord.gateway.inbox import AsyncInbox as AsyncInbox
    from onrecord.gateway.inbox import Inbox as Inbox
    from onrecord.gateway.recovery import Recovery as Recovery
    from onrecord.projections.conversation import project as project
    from onrecord.projections.stored.projections import StoredProjections as StoredProjections
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
    "Agent": "onrecord.agent.turn:Agent",
    "AsyncAgent": "onrecord.agent.async_turn:AsyncAgent",
    "AsyncInbox": "onrecord.gateway.inbox:AsyncInbox",
    "AsyncOutbox": "onrecord.gateway.async_delivery:AsyncOutbox",
    "Inbox": "onrecord.gateway.inbox:Inbox",
    "Lease": "onrecord.transcript.leases:Lease",
    "OnRecordError": "onrecord.transcript.errors:OnRecordError",
    "Outbox": "onrecord.gateway.delivery:Outbox",
    "Recorded": "onrecord.transcript.recorded:Recorded",
    "Recovery": "onrecord.gateway.recovery:Recovery",
    "StoredProjections": "onrecord.projections.stored.projections:StoredProjections",
    "TranscriptLog": "onrecord.transcript.log:TranscriptLog",
    "Turn": "onrecord.agent.turn:Turn",
    "build": "onrecord.projections.transcript:build",
    "errors": "onrecord.transcript.errors",
    "events": "onrecord.transcript.events",
    "project": "onrecord.projections.conversation:project",
    "verify": "onrecord.transcript.verify:verify",
}

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "Agent",
    "AsyncAgent",
    "AsyncInbox",
    "AsyncOutbox",
    "Inbox",
    "Lease",
    "OnRecordError",
    "Outbox",
    "Recorded",
    "Recovery",
    "StoredProjections",
    "TranscriptLog",
    "Turn",
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
