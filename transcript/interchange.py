"""JSON lines in and out: one object an event.

    {"session", "type", "id"?, "at"?, "writer"?, <fields>}

An export adds `version`, `position`, `recorded_at` and `digest` (the chain, hex). Two fields of
ModelCalled have the same names, `version` and `digest`: on its lines they are the event's. Bytes are
base64, times RFC 3339. An import keeps the original `recorded_at` and adds `imported_at`; everything
else that the log adds is given anew. A line without `id` gets it from its natural key, else from its
session, type, all fields and its ordinal among equal lines, so that importing twice adds nothing.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, NoReturn
from uuid import UUID, uuid5

import msgspec

from onrecord.transcript import codec
from onrecord.transcript.append import DRAFTS_AT_ONCE, Draft
from onrecord.transcript.errors import AppendRefused, BadEvent, ImportRefused
from onrecord.transcript.events import KNOWN, Event, StreamChunkDelivered
from onrecord.transcript.mending import storable
from onrecord.transcript.offsets import DeliveryOffsets
from onrecord.transcript.storage.journal import microseconds

if TYPE_CHECKING:
    from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded

LINE_LIMIT = 64 << 20
"""Bytes that a line may have."""
LINES_LIMIT = 5_000_000
"""Lines that a file may have."""
SPOOL = 8 << 20
"""Bytes of a file that are kept in memory while it is checked; the rest waits on the disk."""

_ADDED = ("version", "position", "recorded_at", "digest")
_DROPPED = frozenset((*_ADDED, "imported_at"))


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did: how many events it added, how many were known already, of which sessions."""

    added: int
    known: int
    sessions: tuple[str, ...]


def export_lines(log: TranscriptLog, session: str) -> Iterator[str]:
    """Iterate over a session's events as JSON lines, without line ends."""
    for record in log.read(session):
        yield export_line(record)


def export_line(record: Recorded) -> str:
    """Return a record as a JSON line, without line end."""
    fields = codec.fields(record)
    line: dict[str, Any] = {"session": record.session, "type": record.type, "id": record.id}
    for name in ("at", "writer"):
        if name in fields:
            line[name] = fields.pop(name)
    line.update(fields)
    own = _own_names(record.type)
    added = {
        "version": record.version,
        "position": record.position,
        "recorded_at": record.recorded_at,
        "digest": record.chain.hex(),
    }
    line.update((name, value) for name, value in added.items() if name not in own)
    return msgspec.json.encode(line).decode()


def import_lines(log: TranscriptLog, lines: Iterable[bytes | str], name: str) -> Imported:
    """Append the events of JSON lines; `name` is the file's, for messages.

    The whole file is checked first; then each session is one transaction. Raise ImportRefused with
    file, line and what was expected: nothing of that line's session is written.
    """
    with checked_lines(lines, name, log.text_limit) as write:
        return write(log)


@contextmanager
def checked_lines(
    lines: Iterable[bytes | str], name: str, text_limit: int = codec.TEXT_LIMIT
) -> Iterator[Callable[[TranscriptLog], Imported]]:
    """Give what imports the lines into a log, once all of them are checked; see import_lines."""
    with tempfile.SpooledTemporaryFile(max_size=SPOOL) as spool:
        sessions = _check(lines, name, spool, text_limit)

        def write(log: TranscriptLog) -> Imported:
            now = datetime.now(UTC)
            added = known = 0
            for session, at in sessions.items():
                new = _write(log, session, at, spool, name, now)
                added += new
                known += len(at.offsets) - new
            return Imported(added, known, tuple(sessions))

        yield write


@dataclass(slots=True)
class _Lines:
    """Where a session's lines stand: their offsets in the spool and their numbers in the file."""

    offsets: array[int] = field(default_factory=lambda: array("q"))
    numbers: array[int] = field(default_factory=lambda: array("q"))


def _check(
    lines: Iterable[bytes | str], name: str, spool: IO[bytes], text_limit: int
) -> dict[str, _Lines]:
    """Go through the whole file; raise at the first line that can't be taken."""
    sessions: dict[str, _Lines] = {}
    for number, line in enumerate(lines, 1):
        if number > LINES_LIMIT:
            _refuse(name, number, f"at most {LINES_LIMIT} lines", "split the file")
        data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        if number == 1:
            data = data.removeprefix(b"\xef\xbb\xbf")
        if not data.strip():
            continue
        session, event, _ = _parse(data, name, number)
        try:
            codec.prepare(event, text_limit)
        except BadEvent as error:
            _refuse(name, number, "an event that can be stored", str(error), error)
        at = sessions.setdefault(session, _Lines())
        if len(at.offsets) >= DRAFTS_AT_ONCE:
            _refuse(name, number, f"at most {DRAFTS_AT_ONCE} lines a session", "split the file")
        at.offsets.append(spool.tell())
        at.numbers.append(number)
        spool.write(data.rstrip(b"\r\n") + b"\n")
    return sessions


def _write(
    log: TranscriptLog,
    session: str,
    at: _Lines,
    spool: IO[bytes],
    name: str,
    now: datetime,
) -> int:
    """Append the lines of one session in one transaction; return how many are new."""
    ordinals: Counter[bytes] = Counter()
    offsets = DeliveryOffsets()

    def drafts() -> Iterator[Draft]:
        for offset, number in zip(at.offsets, at.numbers, strict=True):
            spool.seek(offset)
            _, event, recorded_at = _parse(spool.readline(), name, number)
            offsets.evolve(event)
            if event.id is None and event.natural_key is None:
                event = _named(session, event, ordinals)
            elif isinstance(event, StreamChunkDelivered) and event.delivery in offsets:
                # Of the attempt that is the latest here, also when the file is read again later.
                event = codec.with_attempt(session, event, offsets.attempt(event.delivery))
            event = msgspec.structs.replace(event, imported_at=now)
            prepared, payload = codec.prepare(event, log.text_limit)
            yield Draft(prepared, payload, recorded_at, line=number)

    try:
        return log.append_drafts(session, drafts()).new
    except (AppendRefused, BadEvent) as error:
        number = int(error.facts.get("line", 0))
        _refuse(name, number, "an event that fits what the log holds", str(error), error)


def _named(session: str, event: Event, ordinals: Counter[bytes]) -> Event:
    """Give an event without a natural key the id that follows from its content and ordinal."""
    # Whole, whatever this log's limit: the id is the same in every log.
    _, payload = codec.prepare(event, codec.PAYLOAD_LIMIT)
    digest = hashlib.sha256(event.type.encode() + b"\0" + payload).digest()
    ordinals[digest] += 1
    key = ["line", session, event.type, digest.hex(), ordinals[digest]]
    return msgspec.structs.replace(event, id=uuid5(codec.NAMESPACE, codec.canonical(key)))


def _parse(data: bytes, name: str, number: int) -> tuple[str, Event, int | None]:
    """Return session, event and recorded time (µs) of a line."""
    if len(data) > LINE_LIMIT:
        _refuse(name, number, f"at most {LINE_LIMIT} bytes", f"{len(data)} bytes")
    try:
        text = data.rstrip(b"\r\n").decode("utf-8", "surrogatepass")
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        _refuse(name, number, "a JSON object in UTF-8", str(error), error)
    if not isinstance(found, dict):
        _refuse(name, number, "a JSON object", f"a {type(found).__name__}")
    session, type_ = found.pop("session", None), found.pop("type", None)
    for key, value in (("session", session), ("type", type_)):
        if not isinstance(value, str) or not value:
            _refuse(name, number, f'"{key}": a non-empty string', repr(value))
    own = _own_names(type_)
    recorded_at = found.get("recorded_at")
    try:
        at = None
        if recorded_at is not None and "recorded_at" not in own:
            at = microseconds(_moment(recorded_at))
        given = found.pop("id", None)
        id = None if given is None else _uuid(given)
        fields = {k: v for k, v in found.items() if k not in _DROPPED or k in own}
        event = codec.from_map(storable(type_), id, fields)
    except (msgspec.ValidationError, ValueError, TypeError, AttributeError) as error:
        _refuse(name, number, f"the fields of {type_}", str(error), error)
    if id is None and event.natural_key is None:
        msgspec.structs.force_setattr(event, "id", None)
    return storable(session), event, at


def _own_names(type: str) -> frozenset[str]:
    """Return the names that are the event's on a line of this type, though the log uses them too."""
    cls = KNOWN.get(type)
    return frozenset() if cls is None else frozenset(cls.__struct_fields__).intersection(_ADDED)


def _uuid(given: object) -> UUID:
    """Return the id of a line."""
    try:
        return UUID(given) if isinstance(given, str) else UUID("")
    except ValueError as error:
        raise ValueError(f"the id {given!r} is no UUID; leave it out, or give one") from error


def _moment(text: str) -> datetime:
    moment = msgspec.convert(text, type=datetime)
    if moment.tzinfo is None:
        raise ValueError(f"recorded_at {text!r} has no time zone")
    return moment


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _refuse(
    name: str, number: int, expected: str, found: str, cause: BaseException | None = None
) -> NoReturn:
    raise ImportRefused(
        f"{name}, line {number}: expected {expected}; found: {found}",
        file=name, line=number, expected=expected,
    ) from cause  # fmt: skip
