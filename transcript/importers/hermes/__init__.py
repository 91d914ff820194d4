"""Hermes's state.db, and the gateway's log beside it."""

from onrecord.transcript.importers.hermes.source import FORMAT, looks_right, open_source

__all__ = ["FORMAT", "looks_right", "open_source"]
