"""Whether the log is as it was written: everything is recomputed from the stored bytes.

What this can't see: a tail that was cut off together with its session's head, and a chain that was
recomputed from some record on, show only against a head (version and chain) that was kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from onrecord.transcript import evidence
from onrecord.transcript.storage import audit

if TYPE_CHECKING:
    from onrecord.transcript.log import TranscriptLog

LIMITS = (
    "a tail that was cut off together with the session's head, or a chain that was recomputed, shows "
    "only against a head kept elsewhere"
)
DATABASE = "(the database)"
"""What stands for a session where a fault is of none."""
_HEAD_TYPES = (bytes, bytes | None, int, bytes)
PLACES_TRIED = 10_000
"""Versions that are tried to tell a moved record from an edited one."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The first record of a session that isn't as it was written.

    `kind`: edited, payload (changed), removed, inserted, moved, cut (the end is missing), head (the
    session's head, or one kept elsewhere, says otherwise) or storage (the database itself is damaged).
    """

    session: str
    version: int
    position: int
    kind: str
    detail: str
    id: UUID | None = None


@dataclass(slots=True)
class Verification:
    """What was recomputed. `heads`: session → (version, chain), to be kept elsewhere."""

    records: int = 0
    sessions: int = 0
    faults: list[Fault] = field(default_factory=list)
    heads: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    limits: str = LIMITS

    @property
    def first_fault(self) -> Fault | None:
        """The first fault by position, None if there is none."""
        return min(self.faults, key=lambda fault: fault.position, default=None)


class _Row(NamedTuple):
    position: int
    version: int
    id: bytes
    type: str
    event_version: int
    recorded_at: int
    generation: int
    commitment: bytes
    leaf: bytes
    chain: bytes
    salt: bytes | None
    payload: bytes | None
    erased: int | None

    def fits(self) -> bool:
        """Tell whether each column is of its type, which SQLite doesn't see to."""
        return _fits(self, _ROW_TYPES)

    def digest(self, key: bytes, version: int) -> bytes:
        return evidence.leaf(
            key, version, self.id, self.type, self.event_version, self.recorded_at,
            self.generation, self.commitment,
        )  # fmt: skip


_ROW_TYPES = (
    int, int, bytes, str, int, int, int, bytes, bytes, bytes, bytes | None, bytes | None, int | None,
)  # fmt: skip


def _fits(values: Sequence[object], types: Sequence[Any]) -> bool:
    return all(isinstance(value, type_) for value, type_ in zip(values, types, strict=True))


def verify(
    log: TranscriptLog,
    session: str | None = None,
    *,
    heads: Iterable[tuple[str, int, bytes]] = (),
) -> Verification:
    """Recompute the evidence of a session, or of all; name each session's first fault.

    `heads`: (session, version, chain) that were kept elsewhere. Raise StorageError if the log can't
    be read.
    """
    kept: dict[str, list[tuple[int, bytes]]] = {}
    for name, version, chain in heads:
        kept.setdefault(name, []).append((version, chain))
    result = Verification()
    if session is None:
        result.faults += [
            Fault(DATABASE, 0, 0, "storage", f"storage: {damage}")
            for damage in log.database.damage()
        ]
    seen: set[str] = set()
    for key, stored, version, chain in log.database.read("verifying", audit.sessions):
        if not _fits((key, stored, version, chain), _HEAD_TYPES):
            detail = f"the head of a session isn't what was written: {key!r}, {stored!r}"
            result.faults.append(Fault(DATABASE, 0, 0, "head", detail))
            continue
        label = f"(erased {key.hex()})" if stored is None else stored.decode("utf-8", "replace")
        if session is not None and session != label:
            continue
        seen.add(label)
        result.sessions += 1
        fault = _session(log, label, key, version, chain, kept.get(label, ()), result)
        if fault is not None:
            result.faults.append(fault)
    for name in kept.keys() - seen:
        if session in (None, name):
            what = "the log has no such session, though a head of it was kept"
            result.faults.append(Fault(name, 0, 0, "cut", what))
    return result


def _session(
    log: TranscriptLog,
    label: str,
    key: bytes,
    version: int,
    chain: bytes,
    kept: Sequence[tuple[int, bytes]],
    result: Verification,
) -> Fault | None:
    before, expected, position = evidence.START, 1, 0
    wanted = dict(kept)
    rows = _rows(log, key)
    for row in rows:
        result.records += 1
        fault = _record(label, key, row, expected, before, position)
        if fault is not None:
            result.records += sum(1 for _ in rows)
            return fault
        if wanted.get(row.version, row.chain) != row.chain:
            detail = "the chain differs from the head that was kept elsewhere: it was recomputed"
            return _fault(label, row, "head", detail)
        before, position, expected = row.chain, row.position, expected + 1
    last = expected - 1
    newest = max((at for at, _ in kept), default=0)
    if max(version, newest) > last:
        detail = f"the records after version {last} are missing, up to {max(version, newest)}"
        return Fault(label, last + 1, position, "cut", detail)
    if (version, chain) != (last, before):
        detail = f"the session's head says version {version} and another chain"
        return Fault(label, last, position, "head", detail)
    if last:
        result.heads[label] = (last, before)
    return None


def _record(
    label: str, key: bytes, row: _Row, expected: int, before: bytes, position: int
) -> Fault | None:
    if not row.fits():
        return _fault(label, row, "edited", "one of its columns isn't of its type")
    sound = row.digest(key, row.version) == row.leaf
    if row.version != expected and sound:
        return _fault(label, row, "removed", f"version {expected} is missing before this record")
    if row.position <= position:
        return _fault(label, row, "moved", f"it stands before position {position}, in the log")
    if not sound:
        return _fault(label, row, *_why(key, row, expected))
    if evidence.link(before, row.leaf) != row.chain:
        return _fault(
            label, row, "inserted", "it doesn't follow on the record before it: it was inserted, or "
            "the record before it was replaced",
        )  # fmt: skip
    if row.payload is None or row.salt is None:
        if row.erased is None:
            return _fault(label, row, "payload", "the content is gone and no erasure says why")
    elif evidence.commit(row.salt, row.payload) != row.commitment:
        return _fault(label, row, "payload", "the content isn't what was committed to")
    return None


def _why(key: bytes, row: _Row, expected: int) -> tuple[str, str]:
    """Tell a record that stands in another's place from one that was edited."""
    around = range(max(1, expected - PLACES_TRIED), expected + PLACES_TRIED)
    for version in sorted(around, key=lambda at: abs(at - expected)):
        if version != row.version and row.digest(key, version) == row.leaf:
            return "moved", f"it was written as version {version}"
    return "edited", "one of its columns isn't what was written"


def _fault(label: str, row: _Row, kind: str, detail: str) -> Fault:
    id = UUID(bytes=row.id) if isinstance(row.id, bytes) and len(row.id) == 16 else None
    told = f"{kind}: version {row.version}, position {row.position} ({row.type}): {detail}"
    return Fault(label, row.version, row.position, kind, told, id)


def _rows(log: TranscriptLog, key: bytes) -> Iterator[_Row]:
    after = 0
    while True:
        batch: list[Any] = log.database.read(
            "verifying",
            lambda connection: audit.records(connection, key, after),  # noqa: B023
        )
        for row in batch:
            yield _Row(*row)
        if not batch:
            return
        after = batch[-1][1]
