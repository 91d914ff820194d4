"""Values as LangGraph stores them, read as plain data.

Its files name Python modules, classes and methods, and LangGraph imports and calls what they name. Here a
name is only compared with those of LangChain's messages, whose fields are then read; any other value
stays closed (`Closed`), and nothing is imported, made or called. Pickles aren't opened at all.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

Form: TypeAlias = Literal["msgpack", "json"]

SNAPSHOT = 7
"""The extension of a DeltaChannel's whole value."""
_FIELDS = (2, 4, 5)
"""The extensions that hold module, class and fields."""
_EXTENSION_HEADS = frozenset((*range(0xC7, 0xCA), *range(0xD4, 0xD9)))
"""First bytes of an extension in msgpack."""
_NAME_CHARACTERS = 100

_CLASSES = {
    "HumanMessage": "human",
    "AIMessage": "ai",
    "ToolMessage": "tool",
    "SystemMessage": "system",
    "FunctionMessage": "function",
    "ChatMessage": "chat",
}
_ROLES = {"user": "human", "assistant": "ai", "developer": "system"}
KINDS = {
    ("langchain_core.messages.modifier", "RemoveMessage"): "remove",
    **{
        (f"langchain_core.messages.{kind}", name + chunk): kind
        for name, kind in _CLASSES.items()
        for chunk in ("", "Chunk")
    },
}
"""Module and class → kind of message. What isn't here is never opened."""


class Unreadable(Exception):
    """A value can't be read, or must not be; says why."""


class Lost(Unreadable):
    """A value is there, and nobody can read it without what isn't in the file."""


class Packed(NamedTuple):
    """A value that is still closed."""

    form: Form
    data: bytes


class Message(NamedTuple):
    """A message's kind and fields."""

    kind: str
    fields: dict[str, Any]

    @property
    def id(self) -> str:
        id = self.fields.get("id")
        return id if isinstance(id, str) else ""


class State(NamedTuple):
    """A checkpoint: when it was made, its channels, and the names of all channels that were ever written."""

    at: str
    channels: dict[str, Packed]
    written: frozenset[str]


class Closed:
    """A value of another class, which isn't opened."""

    def __init__(self, code: int, size: int) -> None:
        self._told = f"[a value of {size} bytes that wasn't loaded, extension {code}]"

    def __str__(self) -> str:
        return self._told


class _Checkpoint(msgspec.Struct):
    ts: Any = ""
    channel_values: dict[str, msgspec.Raw] = {}
    channel_versions: dict[str, Any] = {}


def _close(code: int, data: memoryview) -> Closed:
    return Closed(code, len(data))


_checkpoint = msgspec.msgpack.Decoder(_Checkpoint, ext_hook=_close)
_json_checkpoint = msgspec.json.Decoder(_Checkpoint)
_raws = msgspec.msgpack.Decoder(list[msgspec.Raw])
_json_raws = msgspec.json.Decoder(list[msgspec.Raw])
_fields = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
_plain = msgspec.msgpack.Decoder(ext_hook=_close)
_outside = msgspec.msgpack.Decoder()


def packed(type: str | None, data: bytes) -> Packed:
    """Return a stored value by its type. Raise Unreadable, Lost."""
    if type == "msgpack":
        return Packed("msgpack", data)
    if type == "json":
        return Packed("json", data)
    if type == "null" or type is None:
        return Packed("msgpack", b"\xc0")
    if type == "pickle":
        raise Unreadable("it is a pickle, which runs what is in it when it is loaded; it wasn't")
    if "+" in type:
        raise Lost(f"it is encrypted ({_shown(type)}); the key isn't in the file")
    raise Unreadable(f"it is of the type {_shown(type)}, which is unknown")


def state(value: Packed) -> State:
    """Read a checkpoint. Raise Unreadable."""
    decoder = _checkpoint if value.form == "msgpack" else _json_checkpoint
    try:
        found = decoder.decode(value.data)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise Unreadable(f"the checkpoint can't be decoded ({error})") from error
    channels = {name: Packed(value.form, bytes(raw)) for name, raw in found.channel_values.items()}
    at = found.ts if isinstance(found.ts, str) else ""
    return State(at, channels, frozenset(found.channel_versions))


def elements(value: Packed) -> list[Packed] | None:
    """Return what a list holds, None for a value that is no list. Raise Unreadable."""
    form, data = value
    try:
        if form == "json":
            return (
                [Packed(form, bytes(raw)) for raw in _json_raws.decode(data)]
                if data[:1] == b"["
                else None
            )
        if data[:1] and data[0] in _EXTENSION_HEADS:
            outer = _outside.decode(data)
            if not isinstance(outer, msgspec.msgpack.Ext) or outer.code != SNAPSHOT:
                return None
            data = bytes(outer.data)
        if not data or not (0x90 <= data[0] <= 0x9F or data[0] in (0xDC, 0xDD)):
            return None
        return [Packed(form, bytes(raw)) for raw in _raws.decode(data)]
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise Unreadable(f"the list can't be decoded ({error})") from error


def plain(value: Packed) -> Any:
    """Return a value as plain data, with what is of a class left closed. Raise Unreadable."""
    try:
        return _plain.decode(value.data) if value.form == "msgpack" else json.loads(value.data)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise Unreadable(f"the value can't be decoded ({error})") from error


def message(value: Packed) -> Message:
    """Read one message. Raise Unreadable for anything else."""
    if value.form == "msgpack" and value.data[:1] and value.data[0] in _EXTENSION_HEADS:
        return _of_class(value)
    found = plain(value)
    if isinstance(found, dict):
        if found.get("type") == "constructor" and isinstance(found.get("id"), list):
            return _of_constructor(found)
        kind = found.get("role") or found.get("type")
        if isinstance(kind, str):
            return Message(_ROLES.get(kind, kind), found)
    raise Unreadable(f"a {type(found).__name__} stands where a message belongs")


def is_message(value: Packed) -> bool:
    """Tell whether a value is a message of LangChain's, without saying what is wrong with it."""
    try:
        return message(value).kind in _CLASSES.values()
    except Unreadable:
        return False


def is_removal(value: Packed) -> bool:
    """Tell whether a value says that a message is to be removed."""
    try:
        return message(value).kind == "remove"
    except Unreadable:
        return False


def overwrite(value: Packed) -> Packed | None:
    """Return what an Overwrite puts in the place of a channel's value, None for any other value."""
    if value.form != "msgpack" or not value.data or value.data[0] not in _EXTENSION_HEADS:
        return None
    try:
        outer = _outside.decode(value.data)
        assert isinstance(outer, msgspec.msgpack.Ext), "the first byte says so"
        module, name, fields, *_ = _raws.decode(outer.data)
        if (_plain.decode(module), _plain.decode(name)) != ("langgraph.types", "Overwrite"):
            return None
        return Packed("msgpack", bytes(_fields.decode(fields)["value"]))
    except (msgspec.MsgspecError, RecursionError, ValueError, KeyError):
        return None  # whatever it is, it's none that can be read


def _of_class(value: Packed) -> Message:
    """Read an extension whose module and class are those of a message."""
    try:
        outer = _outside.decode(value.data)
        assert isinstance(outer, msgspec.msgpack.Ext), "the first byte says so"
        inner = _plain.decode(bytes(outer.data)) if outer.code in range(6) else None
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise Unreadable(f"the message can't be decoded ({error})") from error
    if not isinstance(inner, list) or len(inner) < 3:
        raise Unreadable(f"a value of extension {outer.code} stands where a message belongs")
    module, name, fields = inner[:3]
    kind = KINDS.get((module, name)) if isinstance(module, str) and isinstance(name, str) else None
    if kind is None or outer.code not in _FIELDS or not isinstance(fields, dict):
        called = [part for part in (module, name, *inner[3:4]) if isinstance(part, str)]
        raise Unreadable(
            f"it names {_shown('.'.join(called))}, which is no message of LangChain; nothing was loaded"
        )
    return Message(kind, fields)


def _of_constructor(found: dict[str, Any]) -> Message:
    """Read a message as older versions stored it: the path of a class and its fields, in JSON."""
    path = [part for part in found["id"] if isinstance(part, str)]
    fields = found.get("kwargs")
    if (
        path[:1] in (["langchain"], ["langchain_core"])
        and "messages" in path
        and isinstance(fields, dict)
    ):
        kind = (
            "remove"
            if path[-1] == "RemoveMessage"
            else _CLASSES.get(path[-1].removesuffix("Chunk"))
        )
        if kind is not None:
            return Message(kind, fields)
    raise Unreadable(
        f"it names {_shown('.'.join(path))}, which is no message of LangChain; nothing was loaded"
    )


def _shown(name: str) -> str:
    return name if len(name) <= _NAME_CHARACTERS else name[:_NAME_CHARACTERS] + "…"
