"""An error of the log, a lost lease or a stopped outbox: nothing is sent, and the log says so."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onrecord.gateway.delivery import Outbox, Stopped
from onrecord.gateway.holding import Hold
from onrecord.projections.rows import Row
from onrecord.transcript.errors import EventTooLarge, LeaseHeld, LeaseLost, StorageBusy
from onrecord.transcript.events import (
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    StreamChunkDelivered,
    Target,
)
from onrecord.transcript.log import TranscriptLog

Rows = Callable[[str], list[Row]]
Make = Callable[..., Any]


def of(log: TranscriptLog, kind: type, session: str = "s") -> list[Any]:
    return [r.event for r in log.read(session) if isinstance(r.event, kind)]


HOLD_WRITE_LOCK = """
import sys
from onrecord.transcript.log import TranscriptLog

with TranscriptLog.open(sys.argv[1]) as log, log.database.write(doing="holding the lock"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_nothing_is_sent_while_the_log_is_busy(
    log: TranscriptLog, path: Path, platform: Make, book: Any, chat: Target
) -> None:
    del log
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_WRITE_LOCK, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with TranscriptLog.open(path, busy_timeout=0.2) as busy, pytest.raises(StorageBusy):
            Outbox(busy, platform()).send("s", chat, "Hello")
        other.communicate(b"")

    assert book.requests == []


SEND_ON_A_FULL_DISK = """
import resource, signal, sys
from onrecord.gateway import Outbox, Platform
from onrecord.transcript.errors import StorageError
from onrecord.transcript.events import Target
from onrecord.transcript.log import TranscriptLog

class Printing(Platform):
    def send(self, request):
        print("sent", flush=True)
        return "p1"

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = TranscriptLog.open(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    for _ in range(500):
        Outbox(log, Printing()).send("s", Target(platform="p", chat="c"), "x" * 4000)
        print("recorded", flush=True)
except StorageError as error:
    print(type(error).__name__, error.stored, error.may_send)
"""


def test_nothing_is_sent_when_the_disk_is_full(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SEND_ON_A_FULL_DISK, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    *said, error = done.stdout.splitlines()
    with TranscriptLog.open(path) as log:
        attempted = [r for r in log.read("s") if r.type == "DeliveryAttempted"]

    assert error.split()[0] in ("StorageFull", "StorageFailed", "AppendInDoubt")
    assert error.endswith("False")
    assert said.count("sent") >= 1
    assert len(attempted) >= said.count("sent")


def test_nothing_is_sent_that_is_too_large_to_store(
    path: Path, platform: Make, book: Any, chat: Target
) -> None:
    with TranscriptLog.open(path, text_limit=1000) as log, pytest.raises(EventTooLarge):
        Outbox(log, platform(limit=10_000)).send("s", chat, "x" * 2000)

    assert book.requests == []


def test_nothing_is_sent_under_a_lost_lease(
    log: TranscriptLog, platform: Make, book: Any, chat: Target
) -> None:
    old = log.leases.acquire("s", "one", 30)
    log.leases.acquire("s", "one", 30)

    with pytest.raises(LeaseLost):
        Outbox(log, platform()).send("s", chat, "Hello", lease=old)

    assert book.requests == []
    assert log.version("s") == 0


def test_a_lease_lost_between_attempt_and_socket_leaves_a_definite_failure(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    first = log.leases.acquire("s", "one", 30)

    class Late(Outbox):
        def perform(self, effect: Any, session: str, lease: Any) -> object:
            result = super().perform(effect, session, lease)
            if type(effect).__name__ == "Append" and effect.events[0].intent:
                log.leases.acquire("s", "one", 30)
            return result

    with pytest.raises(LeaseLost):
        Late(log, platform()).send("s", chat, "Hello", turn="t1", lease=first)

    assert book.requests == []
    (failed,) = of(log, DeliveryFailed)
    assert failed.definite
    assert [r.text for r in rows("s")] == []


def test_a_late_outcome_is_stored_under_its_old_generation(
    log: TranscriptLog, platform: Make, book: Any, chat: Target
) -> None:
    lease = log.leases.acquire("s", "one", 30)
    book.script.append("silent")
    outbox = Outbox(log, platform())
    sender = threading.Thread(
        target=outbox.send, args=("s", chat, "Hello"), kwargs={"lease": lease}
    )
    sender.start()
    assert book.arrived.wait(5)

    newer = log.leases.acquire("s", "one", 30)
    book.go_on.set()
    sender.join()

    last = list(log.read("s"))[-1]
    assert last.type == "DeliveryConfirmed"
    assert last.generation == lease.generation < newer.generation


def test_a_held_session_is_renewed_and_given_back(
    log: TranscriptLog, platform: Make, book: Any, chat: Target
) -> None:
    with Hold(log, "s", "one", ttl=0.3) as lease:
        time.sleep(0.5)
        with pytest.raises(LeaseHeld):
            log.leases.acquire("s", "two", 30)
        assert Outbox(log, platform()).send("s", chat, "Hello", lease=lease).delivered

    assert log.leases.is_free("s")


def test_a_stopped_outbox_begins_nothing_new(
    log: TranscriptLog, platform: Make, book: Any, chat: Target
) -> None:
    book.script.append("silent")
    outbox = Outbox(log, platform())
    sender = threading.Thread(target=outbox.send, args=("s", chat, "Hello"))
    sender.start()
    assert book.arrived.wait(5)

    early = outbox.drain(0.05)
    book.go_on.set()
    late = outbox.drain(5)
    sender.join()
    with pytest.raises(Stopped):
        outbox.send("s", chat, "More")

    assert (early, late) == (False, True)
    assert len(of(log, StreamChunkDelivered) + of(log, DeliveryConfirmed)) == 1
    assert book.texts == ["Hello"]


def test_a_port_where_nobody_listens_is_definite(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onrecord.gateway.sending.FIRST_PAUSE", 0.01)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        book.port = free.getsockname()[1]
    outbox = Outbox(log, platform(), tries=3)

    outcome = outbox.send("s", chat, "Hello", turn="t1")

    assert outcome.state == "not_sent"
    assert [(a.attempt, a.offset) for a in of(log, DeliveryAttempted)] == [(1, 0), (2, 0), (3, 0)]
    assert all(f.definite for f in of(log, DeliveryFailed))
