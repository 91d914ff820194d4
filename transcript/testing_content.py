"""The part of the contract that is about content: what was said comes back, whatever it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from onrecord.transcript import events as e
from onrecord.transcript.errors import EventTooLarge, OnRecordError
from onrecord.transcript.interchange import export_lines, import_lines
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.verify import verify

TEXTS = (
    "plain",
    "Grüße, Ελληνικά, кириллица, עברית, العربية, हिन्दी, ไทย, 中文, 日本語, 한국어",
    "👩‍👩‍👧‍👦 e\u0301 \u202eright to left\u202c",
    "NUL \x00 and \x01\x1b[31m\x7f\x85\u2028\ufeff\uffff",
    "\r\n\t ",
    "'); DROP TABLE records; --",
    "\U0010ffff",
    "x" * (1 << 20),
)
"""Texts that must come back as they were given."""


@contextmanager
def refused(kind: type[OnRecordError]) -> Iterator[list[OnRecordError]]:
    """Expect an error; give it in a list."""
    caught: list[OnRecordError] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
    assert caught, f"{kind.__name__} wasn't raised"


def said(message: str, text: str = "hi", **fields: Any) -> e.UserMessageReceived:
    """Return a user's message."""
    return e.UserMessageReceived(message=message, text=text, **fields)


def message_of(record: Recorded) -> str:
    """Return the id of a recorded user's message."""
    assert isinstance(record.event, e.UserMessageReceived)
    return record.event.message


class ContentContract:
    """What holds for any content. `url` names an empty log."""

    url: str

    def open(self, **options: Any) -> TranscriptLog:
        """Open the log."""
        return TranscriptLog.open(self.url, **options)

    def test_any_text_comes_back(self) -> None:
        with self.open() as log:
            for n, text in enumerate(TEXTS):
                log.append(f"s{n}", said("m", text), e.DeliveryAttempted(delivery="d", text=text))

                read = [r.event for r in log.read(f"s{n}")]
                assert [event.text for event in read] == [text, text]  # type: ignore[attr-defined]

    def test_a_lone_surrogate_is_replaced_and_kept(self) -> None:
        with self.open() as log:
            call = e.ToolCall(id="c", name="n", arguments='"\udc00"')
            given = e.AssistantMessageProduced(
                turn="t", message="m", text="a\ud800b", tool_calls=[call]
            )
            stored = log.append("s", given)[0]

            event = next(log.read("s")).event
            assert isinstance(event, e.AssistantMessageProduced)
            assert event == stored.event
            assert event.text == "a\ufffdb"
            assert event.tool_calls[0].arguments == '"\ufffd"'
            assert event.replaced["text"] == b"a\xed\xa0\x80b"
            assert log.append("s", given)[0].position == stored.position

    def test_too_large_is_refused_out_and_cut_in(self) -> None:
        with self.open(text_limit=100) as log:
            with refused(EventTooLarge):
                log.append("s", e.DeliveryAttempted(delivery="d", text="ü" * 51))
            event = log.append("s", said("m", "ü" * 60))[0].event

            assert isinstance(event, e.UserMessageReceived)
            assert event.text == "ü" * 50
            assert event.truncated["text"]["length"] == 60

    def test_what_is_unknown_survives(self) -> None:
        with self.open() as log:
            log.append("s", said("m", extra={"colour": "red"}), e.UnknownEvent(
                name="LeaseTaken", fields={"by": "me", "deep": {"n": [1, None, 2.5]}}
            ))  # fmt: skip

            known, unknown = (r.event for r in log.read("s"))
            assert known.extra == {"colour": "red"}
            assert isinstance(unknown, e.UnknownEvent)
            assert (unknown.type, unknown.fields["deep"]) == ("LeaseTaken", {"n": [1, None, 2.5]})

    def test_every_type_comes_back(self) -> None:
        with self.open() as log:
            for n, cls in enumerate(e.KNOWN.values()):
                names = [f.name for f in msgspec.structs.fields(cls) if f.required]
                fields: dict[str, Any] = dict.fromkeys(names, f"x{n}")
                if "through" in fields:
                    fields["through"] = 3
                if "target" in names:
                    fields["target"] = {"turn": "x"}
                stored = log.append(f"s{n}", cls(**fields))[0]

                assert next(log.read(f"s{n}")) == stored

    def test_export_and_import_are_inverse(self) -> None:
        with self.open() as log:
            log.append("s", said("m", "a\ud800"), e.SessionEnded(), e.ModelCalled(
                turn="m", call="c", version=3, digest="ab"
            ), e.UnknownEvent(name="Other", fields={"x": 1}))  # fmt: skip
            lines = list(export_lines(log, "s"))
            renamed = [line.replace('"session":"s"', '"session":"t"') for line in lines]

            with TranscriptLog.open("sqlite://") as other:
                assert import_lines(other, lines, "f").added == 4
                assert import_lines(other, lines, "f").added == 0
                back = list(export_lines(other, "s"))

            assert [_comparable(line) for line in back] == [_comparable(line) for line in lines]
            assert renamed != lines
            assert verify(log).faults == []


def _comparable(line: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(line)
    own = e.KNOWN.get(found["type"])
    names = ("position", "imported_at", "digest")
    for name in names:
        if own is None or name == "imported_at" or name not in own.__struct_fields__:
            found.pop(name, None)
    return found
