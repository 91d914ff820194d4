"""A network that is cut, or that goes silent, at any place of an append: it is written once, or told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cutting_proxy import Proxy, proxy_before, proxy_over_tcp
from postgres_server import Server

from onrecord.transcript.errors import StorageFailed
from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.verify import verify

PLACES = {"as it begins": b"onrecord_begin", "as it inserts": b"INSERT INTO records"}
SHORT = "tcp_user_timeout=500&keepalives_idle=1&keepalives_interval=1&keepalives_count=1"
"""How soon silence is noticed: a second or two here, 10 s if the URL says nothing."""

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="drops packets with a socket filter")


def said(message: str) -> UserMessageReceived:
    return UserMessageReceived(message=message, text=f"text of {message}")


def messages(log: TranscriptLog) -> list[str]:
    return [getattr(record.event, "message", "") for record in log.read("s")]


@pytest.fixture
def cutting(
    postgres_server: Server, postgres_url: str, tmp_path: Path
) -> Iterator[tuple[Proxy, TranscriptLog]]:
    with (
        proxy_before(postgres_server, postgres_url, tmp_path) as (proxy, url),
        TranscriptLog.open(url, busy_timeout=2) as log,
    ):
        yield proxy, log


@pytest.fixture
def silencing(postgres_server: Server, postgres_url: str) -> Iterator[tuple[Proxy, TranscriptLog]]:
    with (
        proxy_over_tcp(postgres_server, postgres_url) as (proxy, url),
        TranscriptLog.open(f"{url}?{SHORT}", busy_timeout=6) as log,
    ):
        proxy.silent = True
        yield proxy, log


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("place", PLACES)
def test_before_the_commit_it_is_written_again(
    cutting: tuple[Proxy, TranscriptLog], place: str, when: str
) -> None:
    proxy, log = cutting
    proxy.at, proxy.cut = PLACES[place], when

    told = log.append("s", said("a"), said("b"))

    assert proxy.cuts == 1
    assert [record.version for record in told] == [1, 2]
    assert messages(log) == ["a", "b"]
    assert verify(log).faults == []


@pytest.mark.parametrize("place", PLACES)
def test_a_network_that_stays_away_before_the_commit_has_stored_nothing(
    cutting: tuple[Proxy, TranscriptLog], place: str
) -> None:
    proxy, log = cutting
    proxy.at, proxy.cut = PLACES[place], "before"
    proxy.block()

    with pytest.raises(StorageFailed) as caught:
        log.append("s", said("a"))
    proxy.unblock()

    assert (caught.value.stored, caught.value.may_send, caught.value.may_retry) == (
        "no",
        False,
        True,
    )
    assert messages(log) == []
    assert log.append("s", said("a"))[0].version == 1
    assert messages(log) == ["a"]


@on_linux
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("place", PLACES)
def test_silence_before_the_commit_is_noticed_and_it_is_written_again(
    silencing: tuple[Proxy, TranscriptLog], place: str, when: str
) -> None:
    """The server still waits for the first transaction, which holds the session, and gives it up."""
    proxy, log = silencing
    proxy.at, proxy.cut = PLACES[place], when

    log.append("s", said("a"), said("b"))

    assert proxy.cuts == 1
    assert messages(log) == ["a", "b"]
    assert verify(log).faults == []


@on_linux
def test_silence_after_the_commit_is_noticed_and_it_is_found(
    silencing: tuple[Proxy, TranscriptLog],
) -> None:
    proxy, log = silencing
    proxy.cut = "after"

    told = log.append("s", said("a"), said("b"))

    assert proxy.cuts == 1
    assert list(log.read("s")) == list(told)
    assert log.append("s", said("a"))[0].version == 1
    assert messages(log) == ["a", "b"]


@on_linux
def test_silence_before_the_commit_arrived_is_told(silencing: tuple[Proxy, TranscriptLog]) -> None:
    proxy, log = silencing
    proxy.cut = "before"

    with pytest.raises(StorageFailed) as caught:
        log.append("s", said("a"))

    assert (proxy.cuts, caught.value.stored) == (1, "no")
    assert log.append("s", said("a"))[0].version == 1
    assert messages(log) == ["a"]
