"""Our events for eventsourcing: originator = session, topic = the event's stable type name.

`TranscriptMapper` makes stored events of ours and back, for any recorder of the library;
`LogRecorder` is the log itself as such a recorder, so that the library's stores, notification logs
and projections work on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    Mapper,
    MapperDeserialisationError,
    Notification,
    OperationalError,
    StoredEvent,
    Subscription,
)

from onrecord.transcript import codec
from onrecord.transcript.append import ANY, Draft
from onrecord.transcript.errors import AppendRefused, OnRecordError
from onrecord.transcript.events import VOCABULARY_VERSION, Event
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.storage import journal
from onrecord.transcript.storage.database import Database
from onrecord.transcript.storage.recorders import SQLSubscription


@dataclass(frozen=True, slots=True)
class Said:
    """An event in its place, as eventsourcing wants it: session and version beside it."""

    originator_id: str
    originator_version: int
    event: Event


class _State(msgspec.Struct, array_like=True, frozen=True):
    event_version: int
    id: bytes
    payload: bytes


class TranscriptMapper(Mapper[str]):
    """Makes a StoredEvent of a Said and back, compressed and encrypted as the library is told."""

    def to_stored_event(self, domain_event: Any) -> StoredEvent:
        """Return the stored event. One without an id gets it from its natural key."""
        event: Event = domain_event.event
        if event.id is None:
            id = codec.derive_id(domain_event.originator_id, event, getattr(event, "turn", None))
            event = msgspec.structs.replace(event, id=id)
        assert event.id is not None
        event, payload = codec.prepare(event)
        assert event.id is not None
        state = msgspec.msgpack.encode(_State(VOCABULARY_VERSION, event.id.bytes, payload))
        if self.compressor:
            state = self.compressor.compress(state)
        if self.cipher:
            state = self.cipher.encrypt(state)
        return StoredEvent(
            domain_event.originator_id, domain_event.originator_version, event.type, state
        )

    def to_domain_event(self, stored_event: StoredEvent) -> Said:
        """Return the Said of a stored event; raise MapperDeserialisationError if it is damaged."""
        state = stored_event.state
        place = f"{stored_event.originator_id!r}, version {stored_event.originator_version}"
        try:
            if self.cipher:
                state = self.cipher.decrypt(state)
            if self.compressor:
                state = self.compressor.decompress(state)
            found = msgspec.msgpack.decode(state, type=_State)
            id = UUID(bytes=found.id)
            event = codec.decode(stored_event.topic, found.event_version, id, found.payload)
        except Exception as error:
            raise MapperDeserialisationError(f"{stored_event.topic} of {place}: {error}") from error
        return Said(str(stored_event.originator_id), stored_event.originator_version, event)


class LogRecorder(ApplicationRecorder):
    """The log as a recorder of eventsourcing; use it with an unencrypted TranscriptMapper.

    With `originator_version` 0 the log gives the version; else it is what the writer expects.
    """

    def __init__(self, log: TranscriptLog) -> None:
        super().__init__()
        self._log = log

    def insert_events(self, stored_events: Sequence[StoredEvent], **_: Any) -> Sequence[int] | None:
        """Append events of one session; raise IntegrityError if the log speaks against them."""
        sessions = {str(stored.originator_id) for stored in stored_events}
        if not sessions:
            return []
        if len(sessions) > 1:
            raise OperationalError("an append is of one session; append to each by itself")
        first = stored_events[0].originator_version
        expected = first - 1 if first else ANY
        try:
            drafts = [self._draft(stored) for stored in stored_events]
            outcome = self._log.append_drafts(sessions.pop(), drafts, expected_version=expected)
        except AppendRefused as error:
            raise IntegrityError(str(error)) from error
        except OnRecordError as error:
            raise OperationalError(str(error)) from error
        return [record.position for record in outcome.records]

    def _draft(self, stored: StoredEvent) -> Draft:
        state = msgspec.msgpack.decode(stored.state, type=_State)
        id = UUID(bytes=state.id)
        event = codec.decode(stored.topic, state.event_version, id, state.payload)
        return Draft(*codec.prepare(event, self._log.text_limit))

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return the events of a session, by version."""
        found = [
            _stored(record)
            for record in self._records(str(originator_id), gt or 0)
            if lte is None or record.version <= lte
        ]
        ordered = found[::-1] if desc else found
        return ordered if limit is None else ordered[:limit]

    def _records(self, session: str, after: int) -> Sequence[Recorded]:
        try:
            return list(self._log.read(session, after=after))
        except OnRecordError as error:
            raise OperationalError(str(error)) from error

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return notifications from position `start` on."""
        after = 0 if start is None else start - 1 if inclusive_of_start else start
        found: list[Notification] = []
        try:
            for record in self._log.read_all(after=after):
                if len(found) >= limit or (stop is not None and record.position > stop):
                    break
                if not topics or record.type in topics:
                    found.append(_notification(record))
        except OnRecordError as error:
            raise OperationalError(str(error)) from error
        return found

    def max_notification_id(self) -> int | None:
        """Return the newest position, None if the log is empty."""
        return self._log.last_position() or None

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Follow the log after position `gt`."""
        return _LogSubscription(self, self._log, gt, topics)


class PlaceRecorder(LogRecorder):
    """The log as a recorder that tells where records stand and not what they say.

    So nothing that is damaged stops who follows it: notifications have no state.
    """

    @property
    def database(self) -> Database:
        """The database that is followed."""
        return self._log.database

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return session, version and type of the records from position `start` on."""
        after = 0 if start is None else start - 1 if inclusive_of_start else start
        try:
            rows = self.database.read(
                "following the log", lambda connection: journal.places(connection, after, limit)
            )
        except OnRecordError as error:
            raise OperationalError(str(error)) from error
        return [
            Notification(name, version, type_, b"", position)
            for position, name, version, type_ in rows
            if (stop is None or position <= stop) and (not topics or type_ in topics)
        ]

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Follow the places after position `gt`."""
        return SQLSubscription(self, self.database, gt=gt, topics=topics)


class _LogSubscription(Subscription[LogRecorder]):
    def __init__(
        self, recorder: LogRecorder, log: TranscriptLog, gt: int | None, topics: Sequence[str]
    ) -> None:
        super().__init__(recorder, gt=gt, topics=topics)
        self._following = log.subscribe(after=gt or 0)

    def stop(self) -> None:
        """Stop the subscription."""
        super().stop()
        self._following.close()

    def __next__(self) -> Notification:
        try:
            for record in self._following:
                if not self._topics or record.type in self._topics:
                    return _notification(record)
        except OnRecordError as error:
            raise OperationalError(str(error)) from error
        raise StopIteration


def _state(record: Recorded) -> bytes:
    if record.payload is None:
        payload = codec.encode(record.event)  # erased: a type and nothing else
    else:
        payload = record.payload
    return msgspec.msgpack.encode(_State(record.event_version, record.id.bytes, payload))


def _stored(record: Recorded) -> StoredEvent:
    return StoredEvent(record.session, record.version, record.type, _state(record))


def _notification(record: Recorded) -> Notification:
    return Notification(
        record.session, record.version, record.type, _state(record), record.position
    )
