"""What is done with Hermes, one function a run; its docstring is what the manifest says.

A run gets a bot that is configured but not started. `faults` is what an import must find in what the
run leaves behind, `{code, what, text?}`: `text` stands in the chat and in no row, or in two rows.
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
) -> Callable[[Callable[[Bot], None]], Callable[[Bot], None]]:
    """Make a run of a function."""

    def enter(do: Callable[[Bot], None]) -> Callable[[Bot], None]:
        made = Run(do, settings or {}, list(faults), disk_bytes)
        RUNS[made.name] = made
        return do

    return enter


def fault(code: str, what: str, text: str = "") -> dict[str, str]:
    return {"code": code, "what": what, **({"text": text} if text else {})}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


@run()
def normal(bot: Bot) -> None:
    """Two turns of text and one with a call of a tool, then an orderly end."""
    bot.script(
        {"to": "weather", "text": "It is sunny in Lisbon, 24 degrees."},
        {"to": "umbrella", "text": "No. Take sunglasses."},
        {
            "to": "Which files",
            "text": "Let me look.",
            "calls": [call("terminal", command="echo notes.txt")],
        },
        {"to": "notes.txt", "text": "There is one: notes.txt."},
    )
    bot.start()
    bot.turn("What is the weather?", "sunny")
    bot.turn("Do I need an umbrella?", "sunglasses")
    bot.turn("Which files are there?", "There is one")
    bot.stop()


@run(settings=STREAMING)
def streamed(bot: Bot) -> None:
    """The same with text that streams to the platform: sent, then edited; two calls in one message."""
    bot.script(
        {
            "to": "poem",
            "text": "Roses are red, violets are blue, the log is append-only, and so are you.",
            "pause": 0.15,
        },
        {
            "to": "Plan",
            "text": "I write it down first.",
            "pause": 0.15,
            "calls": [
                call("todo", todos=[{"id": "1", "content": "pack", "status": "pending"}]),
                call("terminal", command="echo booked"),
            ],
        },
        {"to": "booked", "text": "Your trip is booked and on the list.", "pause": 0.15},
    )
    bot.start()
    bot.turn("A poem, please.", "so are you.")
    bot.turn("Plan my trip.", "on the list.")
    bot.stop()
