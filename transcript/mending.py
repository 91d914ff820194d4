"""Text that can be stored: lone surrogates replaced, what comes in too long cut."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from onrecord.transcript.errors import EventTooLarge
from onrecord.transcript.events import Event


def storable(text: str) -> str:
    """Return the text with U+FFFD for each lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    return text


def mend(event: Event, limit: int) -> Event:
    """Return the event with its texts storable, and incoming ones no longer than `limit` (bytes).

    What was replaced and cut is said in the event. Raise EventTooLarge for an outgoing text.
    """
    replaced: dict[str, bytes] = dict(event.replaced)
    truncated: dict[str, dict[str, Any]] = dict(event.truncated)

    def walk(value: Any, path: str) -> Any:
        if isinstance(value, str):
            return kept(value, path)
        if isinstance(value, list | tuple):
            return [walk(item, f"{path}.{n}") for n, item in enumerate(value)]
        if isinstance(value, dict):
            return {
                storable(k) if isinstance(k, str) else k: walk(v, f"{path}.{k}")
                for k, v in value.items()
            }
        if isinstance(value, msgspec.Struct):
            return msgspec.structs.replace(
                value,
                **{n: walk(getattr(value, n), f"{path}.{n}") for n in value.__struct_fields__},
            )
        return value

    def kept(text: str, path: str) -> str:
        try:
            data = text.encode()
        except UnicodeEncodeError:
            replaced[storable(path)] = text.encode("utf-8", "surrogatepass")
            text = storable(text)
            data = text.encode()
        if len(data) <= limit:
            return text
        if path.partition(".")[0] in event.outgoing:
            raise EventTooLarge(
                f"{event.type}.{path} has {len(data)} bytes, over the limit of {limit}; send it in "
                "several deliveries or parts",
                field=path, size=len(data), limit=limit,
            )  # fmt: skip
        truncated[storable(path)] = {
            "length": len(text),
            "digest": hashlib.sha256(data).hexdigest(),
        }
        # What is cut off isn't kept in another form either: the limit is there for the storage.
        beginning = data[:limit].decode("utf-8", "ignore")
        if storable(path) in replaced:
            replaced[storable(path)] = replaced[storable(path)][:limit]
        return beginning

    skipped = ("id", "at", "conflicts_with", "replaced", "truncated", "imported_at")
    changes = {
        name: walk(getattr(event, name), name)
        for name in event.__struct_fields__
        if name not in skipped
    }
    return msgspec.structs.replace(event, **changes, replaced=replaced, truncated=truncated)
