"""What is stored can be read, by this version and after an upcast; what can't be is refused first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.transcript import codec
from onrecord.transcript import events as e
from onrecord.transcript.errors import BadEvent, EventTooLarge, StorageFailed
from onrecord.transcript.mending import storable

ID = UUID(int=7)


@pytest.mark.parametrize(
    "event",
    [
        e.UserMessageReceived(message="m", text=5),  # type: ignore[arg-type]
        e.UserMessageReceived(message="", text="x"),
        e.UserMessageReceived(message=7, text="x"),  # type: ignore[arg-type]
        e.UserMessageReceived(message="m" * 5000, text="x"),
        e.UserMessageReceived(message="m", text="x", parts=[object()]),
        e.UserMessageReceived(message="m", text="x", at=datetime(2026, 1, 1)),  # noqa: DTZ001
        e.UserMessageReceived(message="m", text="x", extra={"version": 1}),
        e.UserMessageReceived(message="m", text="x", extra={"text": "y"}),
        e.UserMessageReceived(message="m", text="x", extra={"big": 1 << 70}),
        e.UserMessageReceived(message="m", text="x", id="nope"),  # type: ignore[arg-type]
        e.DeliveryAttempted(delivery="d", text="x", offset="0"),  # type: ignore[arg-type]
        e.UnknownEvent(name=""),
        e.UnknownEvent(name="Nul\0"),
        e.UnknownEvent(name="TurnFinalized"),
        e.UnknownEvent(name="Other", fields={"position": 1}),
    ],
)
def test_what_could_not_be_read_is_refused(event: e.Event) -> None:
    with pytest.raises(BadEvent) as caught:
        codec.prepare(event)

    assert caught.value.stored == "no"


def test_nothing_at_all_is_kept_of_too_much() -> None:
    parts = ["x" * (1 << 20)] * 17

    with pytest.raises(EventTooLarge):
        codec.prepare(e.UserMessageReceived(message="m", text="x", parts=parts))


def test_equal_events_have_equal_bytes() -> None:
    one = e.AssistantMessageProduced(turn="t", message="m", usage={"b": 1, "a": {"d": 2, "c": 3}})
    other = e.AssistantMessageProduced(turn="t", message="m", usage={"a": {"c": 3, "d": 2}, "b": 1})

    assert codec.encode(one) == codec.encode(other)


def test_times_are_kept_as_moments() -> None:
    at = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    event = codec.decode("SessionEnded", 1, ID, codec.encode(e.SessionEnded(at=at)))

    assert event.at == at
    assert event.at is not None
    assert event.at.tzinfo == UTC


def test_an_older_version_is_upcast(monkeypatch: pytest.MonkeyPatch) -> None:
    def renamed(found: dict[str, Any]) -> dict[str, Any]:
        return {"reason": found["why"]}

    monkeypatch.setitem(codec.UPCASTERS, ("SessionEnded", 0), renamed)
    payload = msgspec.msgpack.encode({"why": "old"})

    assert codec.decode("SessionEnded", 0, ID, payload) == e.SessionEnded(id=ID, reason="old")


def test_a_newer_version_is_kept_whole() -> None:
    event = codec.decode("SessionEnded", 2, ID, msgspec.msgpack.encode({"reason": {"code": 1}}))

    assert isinstance(event, e.UnknownEvent)
    assert (event.type, event.fields) == ("SessionEnded", {"reason": {"code": 1}})


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x81", b"\x91\x01", b"\x81\xa4text\x05"])
def test_damage_is_an_error(payload: bytes) -> None:
    with pytest.raises(StorageFailed):
        codec.decode("UserMessageReceived", 1, ID, payload)


def test_a_bomb_is_not_opened() -> None:
    with pytest.raises(StorageFailed, match="over the limit"):
        codec.decode("Other", 1, ID, b"\xdd\xff\xff\xff\xff" + b"\x90" * codec.PAYLOAD_LIMIT)


anything = st.text(st.characters(exclude_categories=()), max_size=40)


@given(anything, anything, st.dictionaries(anything, anything, max_size=3), anything)
def test_any_text_is_storable(text: str, reasoning: str, usage: dict[str, str], name: str) -> None:
    call = e.ToolCall(id=name, name=name, arguments=text)
    given_ = e.AssistantMessageProduced(
        turn="t", message=name or "m", text=text, reasoning=reasoning, tool_calls=[call],
        usage=dict(usage), id=uuid4(),
    )  # fmt: skip

    event, payload = codec.prepare(given_)
    back = codec.decode(event.type, 1, event.id or ID, payload)

    assert isinstance(back, e.AssistantMessageProduced)
    assert back == event
    assert len(back.text) == len(text)
    assert back.text.encode() == storable(text).encode()
    kept = back.replaced.get("text")
    assert (kept or back.text.encode()).decode("utf-8", "surrogatepass") == text
    assert codec.prepare(event) == (event, payload)
