"""Projections that are kept in tables, and go on from where they stood.

stored = StoredProjections(log)
stored.transcript("chat-1")          # caught up with all that was appended
stored.transcript("chat-1", last=50) # whatever the session's length
"""

from onrecord.projections.stored.check import Fault
from onrecord.projections.stored.projections import StoredProjections
from onrecord.projections.stored.runner import Runner
from onrecord.projections.stored.waiting import AsyncStoredProjections

__all__ = ["AsyncStoredProjections", "Fault", "Runner", "StoredProjections"]
