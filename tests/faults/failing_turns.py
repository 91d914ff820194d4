"""What a child does while its disk fails: turns, as an agent and its gateway write them.

Each append is said before it is tried and once it is acknowledged or refused; a text is said to be sent
only after its attempt was acknowledged. When an append fails the turn is given up; every other turn
tries it once more first, if the error says that it may.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec

from onrecord.transcript.errors import OnRecordError, StorageError
from onrecord.transcript.events import (
    AssistantMessageProduced,
    DeliveryAttempted,
    DeliveryConfirmed,
    Event,
    StreamChunkDelivered,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded

BUSY_SECONDS = 2.0
STREAMS = 3


@dataclass(frozen=True)
class Append:
    """One append, its number, and the text that is sent once it is durable."""

    number: int
    session: str
    events: tuple[Event, ...]
    durable: bool = True
    send: str = ""

    @property
    def ids(self) -> list[UUID]:
        """The ids of its events."""
        return [event.id for event in self.events if event.id is not None]


Turn = list[Append]
Say = Callable[[str], None]
Write = Callable[..., Awaitable[tuple[Recorded, ...]]]


def turn(name: str, session: str, text: str, first: int) -> Turn:
    """Return the appends of a turn that is answered in two parts, numbered from `first` on."""
    part, rest = text[: len(text) // 2], text[len(text) // 2 :]
    steps: list[tuple[tuple[Event, ...], bool, str]] = [
        ((UserMessageReceived(message=f"u-{name}", text="And now?", turn=name),), True, ""),
        (
            (
                AssistantMessageProduced(turn=name, message=f"m-{name}", text=text),
                DeliveryAttempted(delivery=f"d-{name}", message=f"m-{name}", text=part, turn=name),
            ),
            True,
            part,
        ),
        ((StreamChunkDelivered(delivery=f"d-{name}", through=len(part), attempt=1),), False, ""),
        ((DeliveryAttempted(delivery=f"d-{name}", text=rest, offset=len(part)),), True, rest),
        ((DeliveryConfirmed(delivery=f"d-{name}", attempt=1), TurnFinalized(turn=name)), True, ""),
    ]
    return [
        Append(first + n, session, _named(events, first + n), durable, send)
        for n, (events, durable, send) in enumerate(steps)
    ]


def _named(events: Sequence[Event], number: int) -> tuple[Event, ...]:
    """Give events ids that tell them from all others of the run."""
    return tuple(
        msgspec.structs.replace(event, id=UUID(int=number * 100 + place))
        for place, event in enumerate(events, 1)
    )


_TEXTS = ("The ferry leaves at nine.", "It is slippery, so walk slowly. " * 400, "Ask for Marta.")
STEPS = len(turn("", "", "", 0))
ONE_BY_ONE: list[Turn] = [
    turn(f"t{n}", "chat", text, n * STEPS) for n, text in enumerate(_TEXTS)
]  # fmt: skip
AT_ONCE: list[Turn] = [
    turn(f"t{n}", f"stream-{n}", "Then you are there; enjoy it.", (len(_TEXTS) + n) * STEPS)
    for n in range(STREAMS)
]
ALL: list[Append] = [append for turn in (*ONE_BY_ONE, *AT_ONCE) for append in turn]


def take_turns(url: str, say: Say) -> None:
    """Take turns one after another, then several at once, each kind on a log opened anew."""
    try:
        with TranscriptLog.open(url, busy_timeout=BUSY_SECONDS) as log:
            asyncio.run(_one_by_one(log, say))
        with TranscriptLog.open(url, busy_timeout=BUSY_SECONDS) as log:
            asyncio.run(_at_once(log, say))
    except StorageError as error:
        say(f"unopened {_told(error)}")


async def _one_by_one(log: TranscriptLog, say: Say) -> None:
    async def write(append: Append) -> tuple[Recorded, ...]:
        return log.append(append.session, *append.events, durable=append.durable)

    for turn in ONE_BY_ONE:
        await _take(turn, write, log, say)


async def _at_once(log: TranscriptLog, say: Say) -> None:
    async def write(append: Append) -> tuple[Recorded, ...]:
        return await log.aio.append(append.session, *append.events, durable=append.durable)

    await asyncio.gather(*(_take(turn, write, log, say) for turn in AT_ONCE))


async def _take(turn: Turn, write: Write, log: TranscriptLog, say: Say) -> None:
    patient = turn[0].number // STEPS % 2 == 1
    for append in turn:
        error = await _try(append, write, log, say)
        if error is not None and error.may_retry and patient:
            error = await _try(append, write, log, say)
        if error is not None:
            return
        if append.send:
            say(f"sent {append.number}")


async def _try(append: Append, write: Write, log: TranscriptLog, say: Say) -> OnRecordError | None:
    say(f"try {append.number}")
    try:
        records = await write(append)
    except OnRecordError as error:
        say(f"failed {append.number} {_told(error)}")
        _look(append.session, log, say)
        return error
    assert [record.id for record in records] == append.ids
    say(f"acked {append.number}")
    return None


def _look(session: str, log: TranscriptLog, say: Say) -> None:
    """Say what this process reads after a failure."""
    try:
        ids = [str(record.id.int) for record in log.read(session)]
    except StorageError as error:
        say(f"unread {_told(error)}")
    else:
        say(f"read {session} {' '.join(ids)}")


def _told(error: OnRecordError) -> str:
    return f"{type(error).__name__} {error.stored} {error.may_send} {error.may_retry}"


def sayer(descriptor: int) -> Say:
    """Return what writes a line at once, so that nothing that was said is lost with the process."""

    def say(line: str) -> None:
        os.write(descriptor, f"{line}\n".encode())

    return say
