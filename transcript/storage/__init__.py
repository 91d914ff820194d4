"""Where the log stands. `PERSISTENCE_MODULE=onrecord.transcript.storage` gives any application of
eventsourcing the same storage; the library looks for the one factory class here.
"""

from __future__ import annotations

from onrecord.transcript.storage.factory import Factory

__all__ = ["Factory"]
