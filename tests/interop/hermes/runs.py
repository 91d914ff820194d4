"""What a run is: one function that uses a bot; its docstring is what the manifest says.

A run gets a bot that is configured but not started. `faults` is what an import must find in what the
run leaves behind, see `fault`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bot import Bot

STREAMING = {"streaming": {"enabled": True, "transport": "edit", "edit_interval": 0.2}}


@dataclass(frozen=True)
class Run:
    """One run: what it does, how the bot is configured, and what must be found afterwards."""

    do: Callable[[Bot], None]
    settings: dict[str, Any]
    faults: list[dict[str, str]]
    disk_bytes: int | None = None
    planted: str = ""  # why the fault was put in by hand, where a run of this version can't have it

    @property
    def name(self) -> str:
        return self.do.__name__.replace("_", "-")

    @property
    def what(self) -> str:
        return " ".join((self.do.__doc__ or "").split())


RUNS: dict[str, Run] = {}


def run(
    *faults: dict[str, str],
    settings: dict[str, Any] | None = None,
    disk_bytes: int | None = None,
    planted: str = "",
) -> Callable[[Callable[[Bot], None]], Callable[[Bot], None]]:
    """Make a run of a function."""

    def enter(do: Callable[[Bot], None]) -> Callable[[Bot], None]:
        made = Run(do, settings or {}, list(faults), disk_bytes, planted)
        RUNS[made.name] = made
        return do

    return enter


def fault(
    code: str, what: str, *, shown: str = "", stored: str = "", known_from: str = ""
) -> dict[str, str]:
    """Say what must be found.

    `shown`: stands in the chat and in no row. `stored`: stands in rows (twice, for a duplicate).
    `known_from`: the file of Hermes that tells of it, where one does.
    """
    facts = {"code": code, "what": what, "shown": shown, "stored": stored, "known_from": known_from}
    return {name: value for name, value in facts.items() if value}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}
