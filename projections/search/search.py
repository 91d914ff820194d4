"""Searching a log: by its index where that can be kept, else row by row."""

from __future__ import annotations

import logging

from onrecord.projections.search.hits import Hit
from onrecord.projections.search.index import Progress, WordIndex
from onrecord.projections.search.query import Query
from onrecord.projections.search.scan import Tell, scan
from onrecord.transcript.errors import StorageBusy, StorageError, StorageFull
from onrecord.transcript.log import TranscriptLog

logger = logging.getLogger("onrecord.projections")


def search(
    log: TranscriptLog, query: Query, *, tell: Tell | None = None, progress: Progress | None = None
) -> list[Hit]:
    """Return the newest rows of the log that have all words, those out of the model's view too.

    All that was appended before the call is searched. `tell` hears what a person should know: an index
    that was damaged and made anew, one that can't be kept, records that can't be read. Raise
    StorageError if the log itself can't be read.
    """
    told, shown = tell or _untold, progress or _unshown
    index = WordIndex(log, told)
    try:
        return _indexed(index, query, shown)
    except (StorageBusy, StorageFull) as error:
        why: StorageError = error
    except StorageError as damaged:
        try:
            index.drop()
            hits = _indexed(index, query, shown)
            logger.info("the search index was damaged: %s", damaged)
            told("the search index was damaged and is made anew")
            return hits
        except StorageError as error:
            why = error
    told(f"no search index can be kept ({why}); each session is read instead, which takes longer")
    return scan(log, query, told)


def rebuild(
    log: TranscriptLog, *, tell: Tell | None = None, progress: Progress | None = None
) -> None:
    """Drop the index and make it anew. Raise StorageError."""
    index = WordIndex(log, tell or _untold)
    index.drop()
    index.catch_up(None, progress or _unshown)


def _indexed(index: WordIndex, query: Query, progress: Progress) -> list[Hit]:
    index.catch_up(query.session, progress)
    return index.find(query)


def _untold(_: str) -> None:
    """Keep it to oneself."""


def _unshown(done: int, total: int) -> None:
    """Show no progress."""
