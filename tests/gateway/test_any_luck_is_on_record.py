"""Whatever the platform does, in whatever order: its messages and the transcript say the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.gateway.delivery import Delivery, Outbox
from onrecord.gateway.effects import Effect
from onrecord.gateway.outcomes import NotSent, RateLimited, SendInDoubt, SendRefused
from onrecord.gateway.platform import Abilities, Found, Platform, Request
from onrecord.gateway.recovery import Begin, Close, Recovery, Send, Settle
from onrecord.projections.conversation import project
from onrecord.projections.promise import check
from onrecord.projections.rows import Row
from onrecord.transcript.events import AssistantMessageProduced, Source, Target, UserMessageReceived
from onrecord.transcript.leases import Lease
from onrecord.transcript.log import TranscriptLog

CHAT = Target(platform="local", chat="c1")
FROM = Source(platform="local", chat="c1", message="1")
LUCK = st.sampled_from(
    ["take", "take", "take", "lost", "cut", "refuse", "forbid", "later", "unsent"]
)
ABILITIES = st.builds(
    Abilities,
    limit=st.integers(6, 30),
    streaming=st.sampled_from(["edit", "chunks", "whole"]),
    formats=st.sampled_from([(None,), ("bold", None)]),
    lookup=st.booleans(),
    idempotent=st.booleans(),
)
ROUNDS = 40


@pytest.fixture(autouse=True, scope="module")
def _no_pauses() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onrecord.gateway.sending.FIRST_PAUSE", 0.0)
        yield


class Fickle(Platform):
    """Holds messages in memory, and treats each request as its luck says."""

    def __init__(self, abilities: Abilities, luck: list[str]) -> None:
        self.abilities = abilities
        self.luck = luck
        self.messages: dict[str, str] = {}
        self.keys: dict[str, str] = {}

    def send(self, request: Request) -> str:
        return self._treat(request, self.keys.get(request.key) or f"p{len(self.messages) + 1}")

    def edit(self, request: Request) -> None:
        assert request.platform_message in self.messages
        self._treat(request, request.platform_message)

    def lookup(self, request: Request) -> Found:
        name = self.keys.get(request.key)
        return Found(name is not None, name)

    def _treat(self, request: Request, name: str) -> str:
        luck = self.luck.pop(0) if self.luck else "take"
        if luck == "unsent":
            raise NotSent("nobody listens")
        if luck == "later":
            raise RateLimited("later", retry_after=0.0)
        if luck in ("refuse", "forbid"):
            raise SendRefused("no", markup=luck == "refuse")
        if luck == "lost":
            raise SendInDoubt("timed out")
        if not self.abilities.idempotent and request.op == "send":
            name = f"p{len(self.messages) + 1}"
        self.messages[name], self.keys[request.key] = request.text, name
        if luck == "cut":
            raise SendInDoubt("reset")
        return name

    @property
    def shown(self) -> str:
        return squeeze("".join(self.messages.values()))


class Dead(BaseException):
    """The process is killed."""


class Mortal(Outbox):
    """Dies at its n-th step, before or after the step is done, and does nothing ever after."""

    def __init__(self, log: TranscriptLog, platform: Platform, steps: int, *, after: bool) -> None:
        super().__init__(log, platform)
        self.left = steps
        self.after = after

    def perform(self, effect: Effect, session: str, lease: Lease | None) -> object:
        self.left -= 1
        if self.left < 0 or (self.left == 0 and not self.after):
            raise Dead
        result = super().perform(effect, session, lease)
        if self.left == 0:
            raise Dead
        return result


def squeeze(text: str) -> str:
    return "".join(text.split())


def rows(log: TranscriptLog) -> list[Row]:
    records, found = list(log.read("s")), list[Row]()
    for end in range(1, len(records) + 1):
        found = project(records[:end], full=True)
        check("s", records[:end], found, full=True)
    return [row for row in found if row.role == "assistant" and row.origin != "synthetic"]


def stands(platform: Fickle, found: list[Row]) -> bool:
    said = [squeeze(row.text) for row in found if row.delivery != "undelivered"]
    return all(any(squeeze(m) in text for text in said) for m in platform.messages.values())


def recover(log: TranscriptLog, platform: Fickle) -> None:
    """Decide by what the platform holds, as an operator would who can look."""
    outbox = Outbox(log, platform)
    for _ in range(ROUNDS):
        plans = Recovery(log, "new").plans()
        if not plans:
            return
        for plan in plans:
            assert not isinstance(plan, Begin)
            if isinstance(plan, Settle):
                if platform.shown.startswith(squeeze(plan.taken + plan.text)):
                    plan.confirm(list(platform.messages)[-1])
                else:
                    plan.refute()
            elif isinstance(plan, Send):
                outbox.resume(plan)
            elif isinstance(plan, Close):
                plan.close("completed")
    raise AssertionError("recovery has no end")


CHUNKS = st.lists(
    st.sampled_from(["one ", "two", " ", "three. ", "four\n\n", "five"]), min_size=1, max_size=12
).filter(lambda chunks: bool("".join(chunks).strip()))


def begin(log: TranscriptLog, outbox: Outbox, chunks: list[str]) -> Delivery:
    log.append("s", UserMessageReceived(message="u1", turn="t1", text="Hi", source=FROM))
    with outbox.begin("s", CHAT, turn="t1", message="m1") as reply:
        for chunk in chunks:
            reply.write(chunk)
    return reply


def produce(log: TranscriptLog, text: str) -> None:
    log.append("s", AssistantMessageProduced(turn="t1", message="m1", text=text))


def settle_all(log: TranscriptLog, platform: Fickle, text: str, *, refused: bool = False) -> None:
    """Recover with a platform that takes everything; then all is sent, once, and stays so."""
    platform.luck = []
    recover(log, platform)

    found = rows(log)
    assert stands(platform, found)
    if not refused:
        assert platform.shown == squeeze(text)
        assert [(squeeze(r.text), r.delivery) for r in found] == [(squeeze(text), "delivered")]
    version = log.version("s")
    recover(log, platform)
    assert log.version("s") == version


@given(CHUNKS, ABILITIES, st.lists(LUCK, max_size=12))
@settings(max_examples=60)
def test_a_reply_and_its_recovery(chunks: list[str], abilities: Abilities, luck: list[str]) -> None:
    text, platform = "".join(chunks), Fickle(abilities, luck)
    with TranscriptLog.open("sqlite://") as log:
        reply = begin(log, Outbox(log, platform), chunks)
        produce(log, text)

        outcome, found = reply.outcome, rows(log)
        assert stands(platform, found)
        assert squeeze(outcome.text + outcome.rest) == squeeze(text)
        if outcome.delivered:
            assert squeeze(text) == platform.shown
            assert [(squeeze(r.text), r.delivery) for r in found] == [(squeeze(text), "delivered")]
        settle_all(log, platform, text, refused=outcome.state == "refused")


@given(CHUNKS, ABILITIES, st.lists(LUCK, max_size=6), st.integers(1, 40), st.booleans())
@settings(max_examples=80)
def test_a_reply_that_dies_at_any_step(
    chunks: list[str], abilities: Abilities, luck: list[str], steps: int, after: bool
) -> None:
    text, platform = "".join(chunks), Fickle(abilities, [do for do in luck if do != "forbid"])
    with TranscriptLog.open("sqlite://") as log:
        with suppress(Dead):
            begin(log, Mortal(log, platform, steps, after=after), chunks)
        assert stands(platform, rows(log))
        produce(log, text)

        refused = any(getattr(r.event, "evidence", "") == "refused" for r in log.read("s"))
        settle_all(log, platform, text, refused=refused)


@given(CHUNKS, CHUNKS, st.integers(6, 30), st.lists(LUCK, max_size=4), st.integers(1, 30))
@settings(max_examples=80)
def test_an_edit_that_dies_at_any_step(
    before: list[str], after: list[str], limit: int, luck: list[str], steps: int
) -> None:
    platform = Fickle(Abilities(limit=limit, streaming="edit"), [])
    with TranscriptLog.open("sqlite://") as log:
        outbox = Mortal(log, platform, 1_000, after=False)
        reply = begin(log, outbox, before)
        platform.luck, outbox.left = luck, steps
        with suppress(Dead, ValueError):
            reply.replace("".join(after))

        assert stands(platform, rows(log))
