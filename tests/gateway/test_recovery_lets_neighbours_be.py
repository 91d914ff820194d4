"""Recovery acts only where nobody else does, and a plan is void once another has the session."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onrecord.gateway.recovery import Recovery
from onrecord.projections.rows import Row
from onrecord.transcript.errors import LeaseLost
from onrecord.transcript.events import (
    AssistantMessageProduced,
    DeliveryAttempted,
    DeliveryConfirmed,
    ModelCalled,
    Source,
    Target,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

Rows = Callable[[str], list[Row]]
Make = Callable[..., Any]

CHAT = Target(platform="local", chat="c1")
USER = UserMessageReceived(
    message="u1", turn="t1", text="Hi", source=Source(platform="local", chat="c1", message="1")
)
TEXT = "First part. Second part."
PRODUCED = AssistantMessageProduced(turn="t1", message="m1", text=TEXT)


def attempt(text: str, offset: int = 0, number: int = 1, **about: Any) -> DeliveryAttempted:
    return DeliveryAttempted(
        delivery="m1/out", turn="t1", message="m1", text=text, offset=offset, attempt=number,
        target=Target(platform="local", chat="c1"), op="send", **about,
    )  # fmt: skip


def test_a_living_neighbours_turn_is_let_be(log: TranscriptLog, path: Path) -> None:
    log.append("s", USER, PRODUCED, attempt(TEXT))
    with TranscriptLog.open(path) as other:
        neighbour = other.leases.acquire("s", "neighbour", 0.3)

        assert Recovery(log, "new").plans() == []

        other.leases.renew(neighbour, 0.1)
    time.sleep(0.2)
    assert len(Recovery(log, "new").plans()) == 1


def test_a_plan_is_void_once_another_has_the_session(log: TranscriptLog) -> None:
    log.append("s", USER, ModelCalled(turn="t1", call="c1"))
    (plan,) = Recovery(log, "one", ttl=0.05).plans()
    time.sleep(0.1)
    log.leases.acquire("s", "two", 30)

    with pytest.raises(LeaseLost):
        plan.close()

    assert log.version("s") == 2


def test_a_session_that_this_process_holds(log: TranscriptLog) -> None:
    log.append("s", USER, ModelCalled(turn="t1", call="c1"))
    lease = log.leases.acquire("s", "one", 30)

    (plan,) = Recovery(log, "one", held={"s": lease}).plans()

    plan.close()
    assert plan.lease == lease


def test_sessions_with_nothing_to_decide_are_not_taken(log: TranscriptLog) -> None:
    log.append("s", USER, PRODUCED, attempt(TEXT), DeliveryConfirmed(delivery="m1/out"))
    log.append("s", TurnFinalized(turn="t1"))
    recovery = Recovery(log, "new")

    assert recovery.plans() == []
    assert recovery.leases == {}
