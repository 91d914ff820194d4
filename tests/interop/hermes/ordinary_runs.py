"""What Hermes does on a good day: text, tools, streams, a stop, a new message meanwhile, compaction, undo."""

from __future__ import annotations

from typing import Any

from bot import WAIT, Bot
from runs import STREAMING, call, run

STORY = "Once there was a log. It only ever grew. Every evening it was read aloud. Nobody changed a word."


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
    """Text that streams to the platform, sent and then edited, and two calls in one message."""
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


@run(settings=STREAMING)
def new_message_meanwhile(bot: Bot) -> None:
    """The user writes again while an answer streams: Hermes breaks off, and answers the second."""
    bot.script(
        {"to": "story", "text": STORY, "pause": 0.4},
        {"to": "Shorter", "text": "A log grew, and nobody changed it."},
    )
    bot.start()
    bot.says("Tell me a story.")
    bot.sees("only ever")
    bot.turn("Shorter, please.", "A log grew, and nobody changed it.")
    bot.stop()


def _stop(bot: Bot) -> None:
    bot.says("/stop")
    bot.until(lambda: "Turn ended: reason=interrupted" in bot.log("agent.log"), "the turn ends")
    bot.rests()


@run(settings=STREAMING)
def stopped(bot: Bot) -> None:
    """The user says /stop while an answer streams, and later asks for the rest."""
    bot.script(
        {"to": "story", "text": STORY, "pause": 0.4},
        {"to": "Go on", "text": "Every evening it was read aloud."},
    )
    bot.start()
    bot.says("Tell me a story.")
    bot.sees("only ever")
    _stop(bot)
    bot.turn("Go on.", "read aloud.")
    bot.stop()


@run(settings=STREAMING)
def stopped_in_a_tool(bot: Bot) -> None:
    """The user says /stop while a tool runs."""
    bot.script(
        {
            "to": "Wait",
            "text": "I wait.",
            "calls": [call("terminal", command=WAIT)],
        },
        {"to": "there", "text": "Here I am."},
    )
    bot.start()
    bot.says("Wait a while.")
    bot.runs_a_tool()
    _stop(bot)
    bot.turn("Are you there?", "Here I am.")
    bot.stop()


@run()
def undone(bot: Bot) -> None:
    """The user takes back a turn with /undo and asks something else."""
    bot.script(
        {"to": "capital of Australia", "text": "Sydney."},
        {"to": "capital of France", "text": "Paris."},
        {"to": "capital of Portugal", "text": "Lisbon."},
    )
    bot.start()
    bot.turn("What is the capital of France?", "Paris.")
    bot.turn("What is the capital of Australia?", "Sydney.")
    bot.turn("/undo", "Confirm /undo")
    bot.turn("/approve", "Undid")
    bot.turn("What is the capital of Portugal?", "Lisbon.")
    bot.stop()


FULL_WINDOW = [
    120_000,
    10,
]  # tokens of prompt and answer, as the model says; the window has 128,000
SUMMARY = {
    "anywhere": "summar",
    "text": "The user had numbers said, one after another.",
    "times": 0,
}


def numbers(count: int) -> list[dict[str, Any]]:
    """Give replies to `count` turns, the first one with a call of a tool."""
    first = {"to": "number 1.", "calls": [call("terminal", command="echo one")]}
    second = {"to": "one", "text": "This is number 1."}
    others = [
        {"to": f"number {number}.", "text": f"This is number {number}."}
        for number in range(2, count + 1)
    ]
    return [first, second, *others]


def compact(bot: Bot) -> None:
    """Have so many turns that there is something to compact, compact it, and ask on."""
    bot.script(*numbers(12), {"to": "How many", "text": "Twelve."}, SUMMARY)
    bot.start()
    for number in range(1, 13):
        bot.turn(f"Say number {number}.", f"This is number {number}.")
    bot.turn("/compress", "Compressed:")
    bot.turn("How many were it?", "Twelve.")
    bot.stop()


@run()
def compacted(bot: Bot) -> None:
    """Twelve turns, then /compress: the rows are archived in place, and a summary and some rows follow."""
    compact(bot)


@run()
def compacted_by_itself(bot: Bot) -> None:
    """The window is nearly full after ten turns: Hermes compacts before it answers the next message."""
    *said, last = numbers(10)
    bot.script(*said, {**last, "tokens": FULL_WINDOW}, {"to": "How many", "text": "Ten."}, SUMMARY)
    bot.start()
    for number in range(1, 11):
        bot.turn(f"Say number {number}.", f"This is number {number}.")
    bot.turn("How many were it?", "Ten.")
    bot.stop()
