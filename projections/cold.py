"""A session folded from its records alone, whatever is stored of it.

For whoever goes through many sessions once: it reads no more of a record than a fold needs, and leaves
out a record that can't be read or folded in, instead of stopping there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from onrecord.projections.stored.catching_up import Poisoned
from onrecord.projections.stored.places import Place
from onrecord.transcript.errors import OnRecordError, RecordDamaged, StorageFailed
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Step
from onrecord.transcript.storage import journal

BATCH = 2_000
"""Records that are read at once."""
SET_ASIDE = 100
"""Records of a session that may fail to be folded in before it is given up."""


class Fold(Protocol):
    """What takes a session's records in, one after another."""

    def take(self, recorded: Step, /) -> None:
        """Take the next record in."""
        ...


F = TypeVar("F", bound=Fold)


def fold(log: TranscriptLog, place: Place, begin: Callable[[], F]) -> tuple[F, dict[int, str]]:
    """Return a fold of all records that can be taken in, and why others can't, by version.

    `begin` makes the fold; it begins anew where a record failed in its middle. Raise StorageError.
    """
    aside: dict[int, str] = {}
    for _ in range(SET_ASIDE):
        folding = begin()
        try:
            for batch in _batches(log, place, aside):
                _take_all(folding.take, batch)
        except Poisoned as poisoned:
            aside[poisoned.version] = poisoned.reason
            continue
        return folding, aside
    raise StorageFailed(
        f"session {place.name!r}: {SET_ASIDE} records can't be projected; run `onrecord verify`"
    )


def _take_all(take: Callable[[Step], None], steps: Sequence[Step]) -> None:
    version = 0
    try:
        for step in steps:
            version = step.version
            take(step)
    except OnRecordError:
        raise
    except Exception as error:
        raise Poisoned(version, error) from error


def _batches(log: TranscriptLog, place: Place, aside: dict[int, str]) -> Iterator[Sequence[Step]]:
    """Give the records in order, without those aside; note there those that can't be read."""
    after, limit = 0, BATCH
    while True:
        try:
            batch = log.database.read(
                f"reading session {place.name!r}",
                lambda connection: journal.steps(connection, place.key, after, limit),  # noqa: B023
            )
        except RecordDamaged as error:
            if limit == 1:
                after += 1
                aside[after] = Poisoned(after, error).reason
            limit = 1  # one by one, to find out which it is
            continue
        yield [step for step in batch if step.version not in aside] if aside else batch
        if len(batch) < limit:
            return
        after = batch[-1].version
        limit = min(2 * limit, BATCH)
