"""Events as bytes: MessagePack in the store, ids from natural keys, text made storable.

A payload is the MessagePack map of all fields but `id` and the type, which stand beside it in the record;
fields with their default value are left out, maps are sorted, so equal events have equal bytes. Fields that
this version doesn't know are kept (`Event.extra`), events of a type that it doesn't know are kept whole
(`UnknownEvent`).
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from onrecord.transcript.errors import BadEvent, EventTooLarge, RecordDamaged
from onrecord.transcript.events import (
    KNOWN,
    VOCABULARY_VERSION,
    Event,
    StreamChunkDelivered,
    UnknownEvent,
    UserMessageReceived,
)
from onrecord.transcript.mending import mend
from onrecord.transcript.recorded import Recorded

TEXT_LIMIT = 1 << 20
"""Bytes of UTF-8 that one text of an event may have."""
PAYLOAD_LIMIT = 16 << 20
"""Bytes that one stored event may have."""
ID_LIMIT = 4096
"""Bytes of UTF-8 that an id may have."""

NAMESPACE = UUID("6a0e2a52-5b0c-5d0f-9f0f-4f1d6f6e7265")
"""The namespace of ids derived from natural keys. It never changes."""

UPCASTERS: dict[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""(type, version) → the map of that version's fields as the next version has them."""

ENVELOPE = frozenset(
    (
        "id",
        "at",
        "writer",
        "conflicts_with",
        "replaced",
        "truncated",
        "imported_at",
        "imported_from",
    )
)
"""Fields that say nothing about what happened: they aren't compared when an id comes again."""
LOG_FIELDS = frozenset(("session", "type", "version", "position", "recorded_at", "digest"))
"""Keys that a line of the interchange form has for the log: no field of an event may have them."""
IDENTIFIERS = frozenset(
    ("turn", "message", "call", "tool_call", "delivery", "through_turn", "to_turn")
)

_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,199}")
_encoder = msgspec.msgpack.Encoder(order="deterministic")
_json_encoder = msgspec.json.Encoder(order="deterministic")
_NAMESPACE = NAMESPACE.bytes
_UUID_MASK = ~(0xC000 << 48 | 0xF000 << 64)
_UUID_5 = 0x8000 << 48 | 5 << 76


class _Decoders(dict[str, msgspec.msgpack.Decoder[Any] | None]):
    """Event type → its decoder, made when it is first used; None for a type that isn't known."""

    def __missing__(self, type: str) -> msgspec.msgpack.Decoder[Any] | None:
        cls = KNOWN.get(type)
        if cls is None:
            return None  # and not kept: such names come from files
        decoder = self[type] = msgspec.msgpack.Decoder(cls)
        return decoder


_decoders = _Decoders()
_fields = {cls: frozenset(cls.__struct_fields__) for cls in KNOWN.values()}
_SKIPPED = frozenset(("id", "extra"))
_OWN = LOG_FIELDS | ENVELOPE | {"id"}
_ALL: tuple[type[Event], ...] = (*KNOWN.values(), UnknownEvent)
_CHECKED: dict[type[Event], tuple[tuple[str, ...], tuple[str, ...]]] = {
    cls: (
        tuple(name for name in cls.__struct_fields__ if name in IDENTIFIERS),
        tuple(
            name for name in cls.__struct_fields__ if name in ("at", "not_before", "imported_at")
        ),
    )
    for cls in _ALL
}
"""Event type → its fields that are ids, and those that are times."""


def _defaults(cls: type[Event]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(cls):
        if field.default is not msgspec.NODEFAULT:
            found[field.name] = field.default
        elif field.default_factory is not msgspec.NODEFAULT:
            found[field.name] = field.default_factory()
    return found


_MISSING = object()


@functools.cache
def _plan(cls: type[Event]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of an event type that a payload has, with their defaults."""
    defaults = _defaults(cls)
    skipped = _SKIPPED if cls is not UnknownEvent else _SKIPPED | {"fields", "name"}
    return tuple(
        (name, defaults.get(name, _MISSING))
        for name in cls.__struct_fields__
        if name not in skipped
    )


def to_map(event: Event) -> dict[str, Any]:
    """Return the fields of an event but `id` and type, without defaults, `extra` flattened in."""
    if isinstance(event, UnknownEvent):
        found = {**event.extra, **event.fields}
    else:
        found = dict(event.extra) if event.extra else {}
    for name, default in _plan(type(event)):
        value = getattr(event, name)
        if value is not default and value != default:
            found[name] = value
    return found


def encode(event: Event) -> bytes:
    """Return the payload of an event. Raise BadEvent if a field can't be stored."""
    try:
        return _encoder.encode(to_map(event))
    except UnicodeEncodeError as error:
        raise BadEvent(f"{event.type} holds a lone surrogate; prepare() it first") from error
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadEvent(
            f"{event.type} can't be stored: {error}; use text, numbers, lists and maps only"
        ) from error


def untyped(payload: bytes) -> dict[str, Any]:
    """Return the map of a payload, as stored."""
    if len(payload) > PAYLOAD_LIMIT:
        raise RecordDamaged(
            f"a record of {len(payload)} bytes is over the limit of {PAYLOAD_LIMIT}"
        )
    found: dict[str, Any] = msgspec.msgpack.decode(payload, type=dict[str, Any])
    return found


def decode(type: str, event_version: int, id: UUID | None, payload: bytes) -> Event:
    """Return the event of a payload.

    A type, or a version of it, that isn't known here gives an UnknownEvent. Raise RecordDamaged if
    the bytes are damaged.
    """
    if len(payload) > PAYLOAD_LIMIT:
        raise RecordDamaged(
            f"a record of {len(payload)} bytes is over the limit of {PAYLOAD_LIMIT}"
        )
    decoder = _decoders[type]
    try:
        if decoder is None or event_version > VOCABULARY_VERSION:
            return unknown(type, id, untyped(payload))
        if event_version < VOCABULARY_VERSION:
            return from_map(type, id, _upcast(type, event_version, untyped(payload)))
        try:
            event: Event = decoder.decode(payload)
        except msgspec.ValidationError:  # a field that isn't known, or one that is wrong here too
            return from_map(type, id, untyped(payload))
        force_setattr(event, "id", id)
        return event
    except msgspec.MsgspecError as error:
        raise RecordDamaged(f"{type} {id} can't be read: {error}; run `onrecord verify`") from error


def _upcast(type: str, version: int, found: dict[str, Any]) -> dict[str, Any]:
    for step in range(version, VOCABULARY_VERSION):
        found = UPCASTERS.get((type, step), dict)(found)
    return found


def from_map(type: str, id: UUID | None, found: Mapping[str, Any], *, strict: bool = True) -> Event:
    """Return the event of a map of fields; raise msgspec.ValidationError where one doesn't fit."""
    cls = KNOWN.get(type)
    if cls is None:
        return unknown(type, id, found)
    known = _fields[cls]
    extra = {key: value for key, value in found.items() if key not in known}
    fields = {key: value for key, value in found.items() if key in known and key not in _SKIPPED}
    if extra:
        fields["extra"] = extra
    event: Event = msgspec.convert(fields, type=cls, strict=strict)
    if id is not None:
        force_setattr(event, "id", id)
    return event


def unknown(type: str, id: UUID | None, found: Mapping[str, Any]) -> UnknownEvent:
    """Return an event of a type that isn't known here, with all its fields."""
    fields = {key: value for key, value in found.items() if key not in ENVELOPE}
    own = {key: value for key, value in found.items() if key in ENVELOPE and key != "id"}
    base = msgspec.convert({**own, "name": type}, type=UnknownEvent)
    return msgspec.structs.replace(base, id=id if id is not None else base.id, fields=fields)


def fields(recorded: Recorded) -> dict[str, Any]:
    """Return the stored fields of a record, unknown ones too; empty once erased."""
    return {} if recorded.payload is None else untyped(recorded.payload)


# --- ids ------------------------------------------------------------------------------------------


def canonical(value: Any) -> str:
    """Return JSON that is the same for the same value: sorted keys, no blank space, no escapes."""
    return _json_encoder.encode(value).decode()


def digest(rendered: Any) -> str:
    """Return the SHA-256 (hex) of rendered messages, independent of the order of keys."""
    return hashlib.sha256(_json_encoder.encode(rendered)).hexdigest()


def _named(value: Any) -> UUID:
    """Return the UUID (version 5) of a value: that of its canonical form in our namespace."""
    digest = hashlib.sha1(_NAMESPACE + _json_encoder.encode(value), usedforsecurity=False).digest()
    return UUID(int=int.from_bytes(digest[:16]) & _UUID_MASK | _UUID_5)


def derive_id(session: str, event: Event, turn_name: str | None = None) -> UUID:
    """Return the id that follows from session, type and natural key.

    `turn_name` is the turn that the event's `turn` names now (t1, t1+ …). A user message whose source
    is known has the source alone for a key, so that a redelivery is known in every session.
    """
    if event.natural_key is None:
        raise BadEvent(f"{event.type} has no natural key; give it an id")
    if isinstance(event, UserMessageReceived) and event.source is not None:
        source = event.source
        key: list[Any] = [
            event.type, source.platform, source.account, source.chat, source.message
        ]  # fmt: skip
        return _named(["source", *key])
    values = [
        turn_name if name == "turn" and turn_name is not None else getattr(event, name)
        for name in event.natural_key
    ]
    return _named([session, event.type, *values])


def with_attempt(session: str, event: StreamChunkDelivered, latest: int) -> StreamChunkDelivered:
    """Give the event its id; where it names no attempt, that of the `latest` one."""
    if event.id is not None:
        return event
    attempt = latest if event.attempt is None else event.attempt
    named = msgspec.structs.replace(event, attempt=attempt)
    return msgspec.structs.replace(event, id=derive_id(session, named))


def compared_content(event: Event) -> bytes:
    """Return the bytes that must be equal for two events of one id to be the same."""
    names = event.compared
    found = to_map(event)
    if names is None or isinstance(event, UnknownEvent):
        found = {key: value for key, value in found.items() if key not in ENVELOPE}
    else:
        found = {key: found[key] for key in names if key in found}
    return event.type.encode() + b"\0" + _encoder.encode(found)


def conflict_id(session: str, taken: UUID, event: Event) -> UUID:
    """Return the id of a fact whose own id is taken by other content: the same for the same content."""
    digest = hashlib.sha256(compared_content(event)).hexdigest()
    return _named(["conflict", session, str(taken), digest])


def prepare(event: Event, text_limit: int = TEXT_LIMIT) -> tuple[Event, bytes]:
    """Return the event as it will be stored, and its payload.

    Lone surrogates are replaced, too long incoming texts cut. Raise EventTooLarge for an outgoing
    text over the limit, BadEvent for what can't be stored.
    """
    _check(event)
    try:
        payload = _encoder.encode(to_map(event))
    except UnicodeEncodeError:
        payload = b""  # Mended below: a raise here would be a lost delivery.
    except (TypeError, ValueError, OverflowError, RecursionError):
        payload = encode(event)  # raises BadEvent
    if payload and len(payload) <= text_limit:
        _readable(event, payload)
        return event, payload
    event = mend(event, text_limit)
    payload = encode(event)
    if len(payload) > PAYLOAD_LIMIT:
        raise EventTooLarge(
            f"{event.type} has {len(payload)} bytes, over the limit of {PAYLOAD_LIMIT}; split it",
            field="event", size=len(payload), limit=PAYLOAD_LIMIT,
        )  # fmt: skip
    _readable(event, payload)
    return event, payload


def _readable(event: Event, payload: bytes) -> None:
    """Raise BadEvent if the payload couldn't be read back: structs don't check what they are given."""
    decoder = _decoders[event.type]
    if decoder is None:
        return
    try:
        if event.extra:
            from_map(event.type, None, untyped(payload))
        else:
            decoder.decode(payload)
    except msgspec.MsgspecError as error:
        raise BadEvent(f"{event.type} can't be stored: {error}") from error


def _check(event: Event) -> None:
    identifiers, times = _CHECKED[type(event)]
    for name in identifiers:
        value = getattr(event, name)
        if value is None:
            continue
        if not isinstance(value, str) or not value:
            raise BadEvent(f"{event.type}.{name} is {value!r}; give a non-empty string")
        if len(value) > ID_LIMIT:
            raise BadEvent(f"{event.type}.{name} has {len(value)} characters; {ID_LIMIT} at most")
    for name in times:
        value = getattr(event, name)
        if value is not None and value.tzinfo is None:
            raise BadEvent(f"{event.type}.{name} has no time zone; give one (datetime.now(UTC))")
    if event.id is not None and not isinstance(event.id, UUID):
        raise BadEvent(f"{event.type}.id is {event.id!r}; give a UUID")
    if isinstance(event, UnknownEvent):
        if event.name in KNOWN or not _TYPE.fullmatch(event.name):
            raise BadEvent(
                f"{event.name!r} is no name for another type; use letters, digits and _.:-"
            )
        taken = _OWN & event.fields.keys()
    elif event.extra:
        taken = (_OWN | set(event.__struct_fields__)) & event.extra.keys()
    else:
        return
    if taken:
        raise BadEvent(
            f"{event.type} holds {', '.join(sorted(taken))}, a name of the log's; rename it"
        )
