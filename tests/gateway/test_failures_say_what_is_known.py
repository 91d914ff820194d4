"""Each way a send can fail: what is recorded, whether the same text goes again."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.error import URLError

import httpx
import pytest

from onrecord.gateway import outcomes
from onrecord.gateway.delivery import Outbox
from onrecord.gateway.platform import Found, Request
from onrecord.projections.rows import Row
from onrecord.transcript.events import DeliveryAttempted, DeliveryConfirmed, DeliveryFailed, Target
from onrecord.transcript.log import TranscriptLog

Rows = Callable[[str], list[Row]]
Make = Callable[..., Any]


def of(log: TranscriptLog, kind: type) -> list[Any]:
    return [r.event for r in log.read("s") if isinstance(r.event, kind)]


def tries(log: TranscriptLog) -> list[tuple[int, int, str | None]]:
    return [(a.attempt, a.offset, a.format) for a in of(log, DeliveryAttempted)]


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onrecord.gateway.sending.FIRST_PAUSE", 0.01)


def test_refused_markup_falls_back_to_plain_text_in_the_same_delivery(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    book.script.append("400")

    outcome = Outbox(log, platform(formats=("html", None))).send("s", chat, "Hello", turn="t1")

    assert outcome.delivered
    assert tries(log) == [(1, 0, "html"), (2, 0, None)]
    assert [r["text"] for r in book.requests] == ["<html>Hello</html>", "Hello"]
    assert len({a.delivery for a in of(log, DeliveryAttempted)}) == 1
    assert len({a.wire for a in of(log, DeliveryAttempted)}) == 2
    assert [(r.text, r.delivery) for r in rows("s")] == [("Hello", "delivered")]


def test_refused_for_good(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    book.script.append("403")

    outcome = Outbox(log, platform(formats=("html", None))).send("s", chat, "Hello", turn="t1")

    assert outcome.state == "refused"
    with pytest.raises(outcomes.SendRefused):
        outcome.raise_unless_delivered()
    (failed,) = of(log, DeliveryFailed)
    assert (failed.definite, failed.evidence) == (True, "refused")
    assert book.texts == []
    assert rows("s") == []


def test_the_time_of_a_rate_limit_is_durable_before_the_sleep(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    book.script.append("429")
    sender = threading.Thread(
        target=Outbox(log, platform()).send, args=("s", chat, "Hello"), kwargs={"turn": "t1"}
    )

    sender.start()
    end = time.monotonic() + 5
    while not of(log, DeliveryFailed) and time.monotonic() < end:
        time.sleep(0.005)
    asleep = [r.type for r in log.read("s")], list(book.texts)
    sender.join()

    assert asleep == (["DeliveryAttempted", "DeliveryFailed"], [])
    (failed,) = of(log, DeliveryFailed)
    again = next(r for r in log.read("s") if getattr(r.event, "attempt", None) == 2)
    assert again.event.at >= failed.not_before
    assert book.texts == ["Hello"]
    assert [(r.text, r.delivery) for r in rows("s")] == [("Hello", "delivered")]


def test_a_long_rate_limit_is_handed_to_the_caller(
    log: TranscriptLog, platform: Make, book: Any, chat: Target
) -> None:
    book.script.append("429")
    reply = Outbox(log, platform()).begin("s", chat)
    reply._course.longest_wait = 0.1
    reply.write("Hello")

    outcome = reply.finish()

    assert outcome.state == "waiting"
    assert outcome.not_before is not None
    assert outcome.not_before > datetime.now(UTC)
    assert outcome.rest == "Hello"


@pytest.mark.parametrize("how", ["500", "408", "cut", "silent"])
def test_what_may_have_been_taken_is_in_doubt_and_not_sent_again(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows, how: str
) -> None:
    book.script.append(how)
    http_platform = platform()
    http_platform.timeout = 0.3

    outcome = Outbox(log, http_platform).send("s", chat, "Hello", turn="t1")

    assert outcome.state == "in_doubt"
    assert len(book.requests) == 1
    (failed,) = of(log, DeliveryFailed)
    assert not failed.definite
    assert [(r.text, r.delivery) for r in rows("s")] == [("Hello", "in_doubt")]


def test_a_lookup_settles_a_doubt_as_taken(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    book.script.append("cut")

    outcome = Outbox(log, platform(lookup=True)).send("s", chat, "Hello", turn="t1")

    assert outcome.delivered
    assert outcome.platform_messages == ("p1",)
    (confirmed,) = of(log, DeliveryConfirmed)
    assert confirmed.evidence == "lookup"
    assert book.texts == ["Hello"]
    assert [(r.text, r.delivery) for r in rows("s")] == [("Hello", "delivered")]


def test_a_lookup_settles_a_doubt_as_not_taken(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    book.script.append("500")

    outcome = Outbox(log, platform(lookup=True)).send("s", chat, "Hello", turn="t1")

    assert outcome.delivered
    assert [f.definite for f in of(log, DeliveryFailed)] == [False, True]
    assert tries(log) == [(1, 0, None), (2, 0, None)]
    assert book.texts == ["Hello"]
    assert [(r.text, r.delivery) for r in rows("s")] == [("Hello", "delivered")]


def test_an_idempotent_platform_is_sent_the_same_bytes_under_the_same_key(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    book.script.append("cut")

    outcome = Outbox(log, platform(idempotent=True)).send("s", chat, "Hello", turn="t1")

    assert outcome.delivered
    assert book.texts == ["Hello"]
    assert book.requests[0] == book.requests[1]
    assert [(r.text, r.delivery) for r in rows("s")] == [("Hello", "delivered")]


def test_an_edit_in_doubt_is_repeated(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    with Outbox(log, platform(streaming="edit")).begin("s", chat, turn="t1") as reply:
        reply.write("One ")
        book.script.append("500")
        reply.write("two ")
        reply.write("three")

    assert reply.outcome.delivered
    assert book.texts == ["One two three"]
    assert [(r.text, r.delivery) for r in rows("s")] == [("One two three", "delivered")]


def test_a_part_in_doubt_ends_the_stream(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    with Outbox(log, platform(streaming="chunks")).begin("s", chat, turn="t1") as reply:
        reply.write("One ")
        book.script.append("cut")
        reply.write("two ")
        reply.write("three")

    assert reply.outcome.state == "in_doubt"
    assert "three" not in "".join(book.texts)
    assert reply.outcome.rest.endswith("three")
    assert [r.delivery for r in rows("s")] == ["in_doubt"]


def test_the_second_part_of_a_split_refused(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    book.script.extend(["take", "403"])

    outcome = Outbox(log, platform(limit=12)).send("s", chat, "First part. Second part.", turn="t1")

    assert (outcome.state, outcome.text, outcome.rest) == (
        "refused",
        "First part. ",
        "Second part.",
    )
    assert [r.text.strip() for r in rows("s")] == ["First part."]


def test_an_edit_refused_leaves_the_former(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    with Outbox(log, platform()).begin("s", chat, turn="t1") as reply:
        reply.write("Hello wrld")
    book.script.append("403")

    outcome = reply.replace("Hello world")

    assert (outcome.state, outcome.text) == ("refused", "Hello wrld")
    assert book.texts == ["Hello wrld"]
    assert [r.text for r in rows("s")] == ["Hello wrld"]


def test_a_fault_of_the_adapter_is_on_record_and_raised(
    log: TranscriptLog, platform: Make, chat: Target, rows: Rows
) -> None:
    class Faulty(type(platform())):  # type: ignore[misc]
        def send(self, request: Request) -> str:
            raise TypeError("a fault of our own")

    with pytest.raises(TypeError, match="of our own"):
        Outbox(log, Faulty(None)).send("s", chat, "Hello", turn="t1")

    (failed,) = of(log, DeliveryFailed)
    assert not failed.definite
    assert [r.delivery for r in rows("s")] == ["in_doubt"]


def test_a_stop_while_the_platform_answers_is_in_doubt(
    log: TranscriptLog, platform: Make, chat: Target, rows: Rows
) -> None:
    class Interrupted(type(platform())):  # type: ignore[misc]
        def send(self, request: Request) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Outbox(log, Interrupted(None)).send("s", chat, "Hello", turn="t1")

    assert [r.delivery for r in rows("s")] == ["in_doubt"]


def test_a_lookup_that_fails_leaves_the_doubt(
    log: TranscriptLog, platform: Make, book: Any, chat: Target
) -> None:
    class Deaf(type(platform())):  # type: ignore[misc]
        def lookup(self, request: Request) -> Found | None:
            raise TimeoutError

    book.script.append("cut")

    outcome = Outbox(log, Deaf(book, lookup=True)).send("s", chat, "Hello")

    assert outcome.state == "in_doubt"


@pytest.mark.parametrize(
    ("status", "kind", "definite"),
    [
        (400, outcomes.SendRefused, True),
        (404, outcomes.SendRefused, True),
        (408, outcomes.SendInDoubt, False),
        (429, outcomes.RateLimited, True),
        (500, outcomes.SendInDoubt, False),
        (503, outcomes.SendInDoubt, False),
    ],
)
def test_statuses(status: int, kind: type, definite: bool) -> None:
    error = outcomes.from_status(status, "so", 7.0)

    assert type(error) is kind
    assert error.definite is definite
    assert getattr(error, "retry_after", 7.0) == 7.0


def _httpx_error(url: str, timeout: float) -> Exception:
    with pytest.raises(httpx.HTTPError) as caught:
        httpx.get(url, timeout=timeout)
    return caught.value


def test_clients_errors(book: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        refused = _httpx_error(f"http://127.0.0.1:{free.getsockname()[1]}", 1.0)
        free.listen(1)
        silent = _httpx_error(f"http://127.0.0.1:{free.getsockname()[1]}", 0.1)

    assert isinstance(outcomes.classify(refused), outcomes.NotSent)
    assert isinstance(outcomes.classify(silent), outcomes.SendInDoubt)
    assert isinstance(outcomes.classify(ConnectionRefusedError()), outcomes.NotSent)
    assert isinstance(outcomes.classify(socket.gaierror()), outcomes.NotSent)
    assert isinstance(outcomes.classify(ssl.SSLCertVerificationError()), outcomes.NotSent)
    assert isinstance(outcomes.classify(URLError(ConnectionRefusedError())), outcomes.NotSent)
    assert isinstance(outcomes.classify(URLError(TimeoutError())), outcomes.SendInDoubt)
    assert isinstance(outcomes.classify(ConnectionResetError()), outcomes.SendInDoubt)
    assert isinstance(
        outcomes.classify(http.client.RemoteDisconnected("gone")), outcomes.SendInDoubt
    )
    assert outcomes.classify(KeyError()) is None
