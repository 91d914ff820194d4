"""Projections that are kept in tables, and go on from where they stood.

    stored = StoredProjections(log)
    stored.transcript("chat-1")          # caught up with all that was appended
    stored.transcript("chat-1", last=50) # whatever the session's length

The names here are the API; they are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onrecord.projections.stored.check import Fault
    from onrecord.projections.stored.projections import RecordsSetAside, StoredProjections
    from onrecord.projections.stored.runner import Runner
    from onrecord.projections.stored.waiting import AsyncStoredProjections

__all__ = [
    "AsyncStoredProjections",
    "Fault",
    "RecordsSetAside",
    "Runner",
    "StoredProjections",
]

_HOME = {
    "AsyncStoredProjections": "waiting",
    "Fault": "check",
    "RecordsSetAside": "projections",
    "Runner": "runner",
    "StoredProjections": "projections",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
