"""While another process holds the write lock, an append waits, and after the deadline it says so."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from other_process import holder

from onrecord.transcript.errors import StorageBusy
from onrecord.transcript.events import DeliveryAttempted, UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.verify import verify

DEADLINE = 0.3
ATTEMPT = DeliveryAttempted(delivery="d", text="The gate is open.")

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no SIGSTOP on this system"),
]

Append = Callable[[TranscriptLog], tuple[Recorded, ...]]


def plainly(log: TranscriptLog) -> tuple[Recorded, ...]:
    return log.append("s", ATTEMPT)


def in_a_loop(log: TranscriptLog) -> tuple[Recorded, ...]:
    async def append() -> tuple[Recorded, ...]:
        return await log.aio.append("s", ATTEMPT)

    return asyncio.run(append())


def go_on(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGCONT)
    process.communicate()


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


@pytest.mark.parametrize("append", [plainly, in_a_loop])
@pytest.mark.parametrize("end", [go_on, kill])
@pytest.mark.parametrize("stopped", [False, True])
def test_it_is_busy_after_the_deadline_and_free_once_the_holder_is_gone(
    tmp_path: Path, stopped: bool, end: Callable[[subprocess.Popen[str]], None], append: Append
) -> None:
    path = tmp_path / "log.db"
    with TranscriptLog.open(path, busy_timeout=DEADLINE) as log:
        log.append("s", UserMessageReceived(message="m", text="May I?"))
        with holder(path) as other:
            if stopped:
                other.send_signal(signal.SIGSTOP)

            with pytest.raises(StorageBusy) as caught:
                append(log)

            assert caught.value.waited >= DEADLINE
            assert (caught.value.stored, caught.value.may_send) == ("no", False)
            assert caught.value.may_retry
            # Who reads isn't in the way of who writes.
            assert [record.version for record in log.read("s")] == [1]
            end(other)
            assert [record.version for record in append(log)] == [2]
        assert [record.version for record in append(log)] == [2]
        assert verify(log).faults == []


def test_an_append_that_waits_is_made_once_the_lock_is_free(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with TranscriptLog.open(path, busy_timeout=60) as log, holder(path) as other:
        other.send_signal(signal.SIGSTOP)
        done: list[tuple[Recorded, ...]] = []

        def append(message: str) -> None:
            done.append(log.append("s", UserMessageReceived(message=message, text="hi")))

        writers = [threading.Thread(target=append, args=(f"m{n}",)) for n in range(3)]
        for writer in writers:
            writer.start()
        assert log.version("s") == 0

        go_on(other)
        for writer in writers:
            writer.join()

        assert sorted(record.version for records in done for record in records) == [1, 2, 3]
        assert verify(log).faults == []
