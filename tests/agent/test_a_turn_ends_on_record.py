"""A turn's records, and how it ends: completed, failed, interrupted, with what was streamed kept."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent.async_turn import AsyncAgent
from onrecord.agent.turn import Agent
from onrecord.projections.rows import Row
from onrecord.transcript.codec import digest
from onrecord.transcript.errors import LeaseLost, StorageBusy
from onrecord.transcript.events import (
    AssistantMessageProduced,
    ModelCalled,
    RecoveryApplied,
    StreamBroken,
    ToolCall,
    TurnFinalized,
)
from onrecord.transcript.log import TranscriptLog

Rows = Callable[[str], list[Row]]


def of(log: TranscriptLog, kind: type) -> list[Any]:
    return [r.event for r in log.read("s") if isinstance(r.event, kind)]


def ends(log: TranscriptLog) -> list[str]:
    return [event.outcome for event in of(log, TurnFinalized)]


def test_a_turn_with_tools(log: TranscriptLog, rows: Rows) -> None:
    agent = Agent(log, "s")
    with agent.turn(agent.receive("Weather?")) as turn:
        turn.model_called("small", rendered=[{"role": "user", "content": "Weather?"}])
        turn.produced("Let me look.", [ToolCall("k1", "weather", '{"at": "here"}')])
        assert log.version("s") == 3
        turn.tool_result("k1", "sunny")
        turn.produced("It is sunny.", finish_reason="stop")

    assert ends(log) == ["completed"]
    assert [(r.role, r.text) for r in rows("s")] == [
        ("user", "Weather?"), ("assistant", "Let me look."), ("tool", "sunny"),
        ("assistant", "It is sunny."),
    ]  # fmt: skip
    (called,) = of(log, ModelCalled)
    assert called.version == 1
    assert called.digest == digest([{"content": "Weather?", "role": "user"}])


def test_a_stream(log: TranscriptLog, rows: Rows) -> None:
    agent = Agent(log, "s")
    with agent.turn(agent.receive("Hi", message="u1")) as turn:
        with turn.stream() as answer:
            for chunk in ("Hel", "lo"):
                answer.add(chunk)
            answer.call(ToolCall("k1", "wave"))
            answer.finish_reason = "stop"
        turn.tool_result("k1", "no hands", is_error=True)
        turn.end(text=answer.text)

    (produced,) = of(log, AssistantMessageProduced)
    assert (produced.text, produced.message) == ("Hello", answer.message)
    assert of(log, TurnFinalized)[0].text == "Hello"


def test_what_was_streamed_is_kept_when_the_model_breaks(log: TranscriptLog, rows: Rows) -> None:
    agent = Agent(log, "s")

    with (  # noqa: PT012
        pytest.raises(ConnectionError),
        agent.turn(agent.receive("Hi")) as turn,
        turn.stream() as answer,
    ):
        answer.add("Half an ans")
        raise ConnectionError("gone")

    assert ends(log) == ["failed"]
    assert [e.reason for e in of(log, StreamBroken)] == ["ConnectionError: gone"]
    assert [(e.kind, e.text) for e in of(log, RecoveryApplied)] == [
        ("partial_stream", "Half an ans")
    ]
    assert [(r.role, r.text) for r in rows("s")][-1] == ("assistant", "Half an ans")


def test_a_broken_stream_may_be_recovered_from(log: TranscriptLog, rows: Rows) -> None:
    agent = Agent(log, "s")
    with agent.turn(agent.receive("Hi")) as turn:
        with pytest.raises(ConnectionError), turn.stream():
            raise ConnectionError
        turn.broken("again")
        turn.recovered("retry", prompt="Go on.")
        turn.produced("Hello")

    assert ends(log) == ["completed"]
    assert [r.text for r in rows("s")] == ["Hi", "Hello"]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (RuntimeError, "failed"),
        (KeyboardInterrupt, "interrupted"),
        (SystemExit, "interrupted"),
        (asyncio.CancelledError, "interrupted"),
    ],
)
def test_what_passes_through_a_turn(
    log: TranscriptLog, error: type[BaseException], outcome: str
) -> None:
    agent = Agent(log, "s")

    with pytest.raises(error), agent.turn(agent.receive("Hi")):
        raise error

    assert ends(log) == [outcome]


def test_a_generator_that_is_given_up_is_interrupted(log: TranscriptLog) -> None:
    agent = Agent(log, "s")

    def answers() -> Generator[str, None, None]:
        with agent.turn(agent.receive("Hi")) as turn, turn.stream() as answer:
            yield answer.add("one")
            yield answer.add("two")

    given_up = answers()
    next(given_up)
    given_up.close()

    assert ends(log) == ["interrupted"]
    assert [e.text for e in of(log, RecoveryApplied)] == ["one"]


def test_a_turn_is_closed_once(log: TranscriptLog) -> None:
    agent = Agent(log, "s")

    with pytest.raises(RuntimeError), agent.turn(agent.receive("Hi")) as turn:  # noqa: PT012
        turn.end("completed", "Hello")
        raise RuntimeError("after the end")

    assert ends(log) == ["completed"]


def test_a_turn_that_is_run_again_says_new_things(log: TranscriptLog) -> None:
    agent = Agent(log, "s")
    name = agent.receive("Hi")

    ids = {agent.turn(name).next_message() for _ in range(100)}

    assert len(ids) == 100


HOLD_WRITE_LOCK = """
import sys
from onrecord.transcript.log import TranscriptLog

with TranscriptLog.open(sys.argv[1]) as log, log.database.write(doing="holding the lock"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_failing_append_does_not_mask_what_went_wrong(log: TranscriptLog, path: Path) -> None:
    Agent(log, "s").receive("Hi", message="u1")
    held = subprocess.Popen(
        [sys.executable, "-c", HOLD_WRITE_LOCK, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with held, TranscriptLog.open(path, busy_timeout=0.1) as busy:
        assert held.stdout is not None
        assert held.stdout.readline() == b"held\n"
        with pytest.raises(RuntimeError, match="the first") as caught:  # noqa: PT012, SIM117
            with Agent(busy, "s").turn("u1") as turn, turn.stream() as answer:
                answer.add("Half")
                raise RuntimeError("the first")
        with pytest.raises(StorageBusy), Agent(busy, "s").turn("u1"):
            pass
        held.communicate(b"")

    notes = caught.value.__notes__
    assert [("streamed" in n, "the end of turn" in n) for n in notes] == [
        (True, False),
        (False, True),
    ]


def test_a_turn_whose_session_another_has_is_left_open(log: TranscriptLog) -> None:
    lease = log.leases.acquire("s", "one", 30)
    agent = Agent(log, "s", lease=lease)
    name = agent.receive("Hi")

    def fenced(error: Exception | None) -> None:
        with agent.turn(name) as turn:
            log.leases.acquire("s", "one", 30)
            if error is not None:
                raise error
            turn.model_called("small")

    with pytest.raises(LeaseLost) as caught:
        fenced(None)
    with pytest.raises(RuntimeError) as other:
        fenced(RuntimeError("something else"))

    assert ends(log) == []
    assert "another process has the session" in caught.value.__notes__[0]
    assert "another process has the session" in other.value.__notes__[0]


# --- on an event loop -----------------------------------------------------------------------------


async def chunks(*texts: str, error: Exception | None = None) -> AsyncIterator[str]:
    for text in texts:
        await asyncio.sleep(0)
        yield text
    if error is not None:
        raise error


def test_awaited(log: TranscriptLog, rows: Rows) -> None:
    async def main() -> None:
        agent = AsyncAgent(log, "s")
        async with agent.turn(await agent.receive("Hi")) as turn:
            await turn.model_called("small", rendered=[])
            await turn.produced("", [ToolCall("k1", "look")])
            await turn.tool_result("k1", "seen")
            with pytest.raises(ConnectionError):  # noqa: PT012
                async with turn.stream() as broken:
                    async for chunk in chunks("Ha", error=ConnectionError()):
                        broken.add(chunk)
            await turn.broken("again")
            await turn.recovered("retry")
            async with turn.stream() as answer:
                async for chunk in chunks("Hel", "lo"):
                    answer.add(chunk)
            await turn.end(text=answer.text)

    asyncio.run(main())

    assert ends(log) == ["completed"]
    assert rows("s")[-1].text == "Hello"


def test_a_cancelled_turn_is_interrupted_with_what_was_streamed(log: TranscriptLog) -> None:
    async def answer(begun: asyncio.Event) -> None:
        agent = AsyncAgent(log, "s")
        async with agent.turn(await agent.receive("Hi")) as turn, turn.stream() as stream:
            stream.add("Half")
            begun.set()
            await asyncio.sleep(10)

    async def main() -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(answer(begun))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert ends(log) == ["interrupted"]
    assert [e.text for e in of(log, RecoveryApplied)] == ["Half"]


def test_an_awaited_turn_whose_session_another_has_is_left_open(log: TranscriptLog) -> None:
    async def main() -> None:
        lease = await log.aio.leases.acquire("s", "one", 30)
        agent = AsyncAgent(log, "s", lease=lease)
        async with agent.turn(await agent.receive("Hi")):
            await log.aio.leases.acquire("s", "one", 30)
            raise RuntimeError("something else")

    with pytest.raises(RuntimeError):
        asyncio.run(main())

    assert ends(log) == []
