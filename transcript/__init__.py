"""What happened: the events, the log that keeps them, and its evidence.

The names here are the API; they are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onrecord.transcript.append import ANY
    from onrecord.transcript.events import Event, Source, Target, ToolCall
    from onrecord.transcript.leases import Lease, LeaseState
    from onrecord.transcript.log import TranscriptLog
    from onrecord.transcript.recorded import Recorded
    from onrecord.transcript.storage.journal import SessionHead
    from onrecord.transcript.subscription import Subscription

__all__ = [
    "ANY",
    "Event",
    "Lease",
    "LeaseState",
    "Recorded",
    "SessionHead",
    "Source",
    "Subscription",
    "Target",
    "ToolCall",
    "TranscriptLog",
]

_HOME = {
    "ANY": "append",
    "Event": "events",
    "Lease": "leases",
    "LeaseState": "leases",
    "Recorded": "recorded",
    "SessionHead": "storage.journal",
    "Source": "events",
    "Subscription": "subscription",
    "Target": "events",
    "ToolCall": "events",
    "TranscriptLog": "log",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
