"""Many sessions stream at once in one event loop, and each chunk is durable before it is sent."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from measure import Figures, Task, peak_memory
from onrecord.transcript.aio import AsyncTranscriptLog
from onrecord.transcript.events import DeliveryAttempted, UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from scenarios.turns import quantile
from workload import CHUNK, chunks

BEAT = 0.001
"""Seconds between two looks at how late the loop is."""


def run(task: Task) -> Figures:
    """Stream `chunks` chunks in each of `sessions` sessions, `pace` a second each (0: no pause)."""
    return asyncio.run(_run(task))


async def _run(task: Task) -> Figures:
    log = TranscriptLog.open(Path(task.folder, "log.db")).aio
    sessions = [f"s{number}" for number in range(task.options["sessions"])]
    for session in sessions:
        await log.append(session, UserMessageReceived(message="u", text="q"))
    texts = chunks(task.options["chunks"])
    pace = task.options["pace"]
    late: list[float] = []
    beating = asyncio.create_task(_beat(late))
    computed, began = time.process_time(), time.perf_counter()
    # Users don't begin in step: each session starts at its own point of a chunk's time.
    step = 1 / pace / len(sessions) if pace else 0.0
    streams = [
        _stream(log, session, texts, pace, began + number * step)
        for number, session in enumerate(sessions)
    ]
    told = await asyncio.gather(*streams)
    elapsed, computed = time.perf_counter() - began, time.process_time() - computed
    beating.cancel()
    await log.close()
    took = [seconds for waits, _ in told for seconds in waits]
    rates = [len(texts) / seconds for _, seconds in told]
    return {
        "chunks_per_second": sum(rates) if pace else len(took) / elapsed,
        "p50_ms": quantile(took, 0.5) * 1e3,
        "p99_ms": quantile(took, 0.99) * 1e3,
        "longest_ms": max(took) * 1e3,
        "blocked_ms": max(late) * 1e3,
        "blocked_p99_ms": quantile(late, 0.99) * 1e3,
        "cpu_share": computed / elapsed,
        "memory_mb": peak_memory(),
    }


async def _stream(
    log: AsyncTranscriptLog, session: str, texts: list[str], pace: float, start: float
) -> tuple[list[float], float]:
    """Return how long each append took, and the time from the first to the end of the last."""
    took: list[float] = []
    for number, text in enumerate(texts):
        due = start + number / pace if pace else 0.0
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        begun = time.perf_counter()
        await log.append(
            session,
            DeliveryAttempted(
                delivery="d", turn="u", message="a", text=text, offset=number * CHUNK
            ),
        )
        took.append(time.perf_counter() - begun)
    return took, time.perf_counter() - start


async def _beat(late: list[float]) -> None:
    while True:
        due = time.perf_counter() + BEAT
        await asyncio.sleep(BEAT)
        late.append(time.perf_counter() - due)
