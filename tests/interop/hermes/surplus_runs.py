"""Runs after which Hermes's transcript holds something twice, or something that nobody said."""

from __future__ import annotations

import subprocess
import sys

from bot import Bot
from ordinary_runs import compact
from runs import STREAMING, call, fault, run

TWICE = "duplicate-in-source"
SYNTHETIC = "synthetic-in-source"


@run(
    fault(
        TWICE, "the text beside the call, stored again as the answer", stored="It is on your list."
    )
)
def fallback_twice(bot: Bot) -> None:
    """Text beside a call of a household tool, then nothing: Hermes takes that text as the answer."""
    item = {"id": "1", "content": "buy milk", "status": "pending"}
    bot.script(
        {"to": "Remember", "text": "It is on your list.", "calls": [call("todo", todos=[item])]},
        {"to": "buy milk", "text": ""},
        {"to": "Thanks", "text": "You're welcome."},
    )
    bot.start()
    bot.turn("Remember the milk.", "It is on your list.")
    bot.turn("Thanks.", "welcome")
    bot.stop()


@run(
    fault(
        SYNTHETIC, "a prompt to continue, stored as the user's", stored="cut off by a network error"
    ),
    settings=STREAMING,
)
def cut_mid_stream(bot: Bot) -> None:
    """The model's connection is reset in the middle; Hermes has it go on with a prompt of its own."""
    bot.script(
        {
            "to": "Count",
            "text": "One, two, three, four, five, six.",
            "pause": 0.2,
            "cut": 16,
            "reset": True,
        },
        {"to": "cut off", "text": "four, five, six.", "pause": 0.2},
    )
    bot.start()
    bot.turn("Count to six.", "five, six.")
    bot.stop()


@run(fault(SYNTHETIC, "a prompt to continue, stored as the user's", stored="output length limit"))
def cut_at_the_length(bot: Bot) -> None:
    """The model stops at its limit of length; Hermes has it go on with a prompt of its own."""
    bot.script(
        {"to": "Count", "text": "One, two, three, ", "finish": "length"},
        {"to": "length limit", "text": "four, five, six."},
    )
    bot.start()
    bot.turn("Count to six.", "five, six.")
    bot.stop()


@run(
    fault(TWICE, "each row of the session that ends, its call of a tool too", stored="echo one"),
    settings={"compression": {"in_place": False}},
)
def compacted_into_a_new_session(bot: Bot) -> None:
    """Compaction ends the session and begins a child of it; all rows are stored again before that."""
    compact(bot)


PLANT = """
import sys
from hermes_state import SessionDB
database = SessionDB()
session = database.search_sessions()[0]["id"]
calls = [{"id": "call_filled", "type": "function",
          "function": {"name": "terminal", "arguments": "{}"}}]
database.append_message(session, "user", "Start the import.")
database.append_message(session, "assistant", "", tool_calls=calls, finish_reason="tool_calls")
database.append_message(session, "assistant", "It has begun.", tool_calls=calls, finish_reason="tool_calls")
database.close()
"""


@run(
    fault(TWICE, "a row with a call, and the same row again with a text", stored="call_filled"),
    planted="No run of 0.19.0 gets there: agent/turn_finalizer.py gives a last row that only calls tools "
    "the text of the answer and stores it again, but each way out of the loop with a text that we found has "
    "results of those calls behind that row. The rows were put in with Hermes's own "
    "SessionDB.append_message, as that code would.",
)
def tool_call_row_filled(bot: Bot) -> None:
    """A row that calls a tool is stored, gets a text, and is stored again."""
    bot.script({"to": "Hello", "text": "Hello, Ada."})
    bot.start()
    bot.turn("Hello.", "Hello, Ada.")
    bot.stop()
    subprocess.run([sys.executable, "-c", PLANT], env=bot.environment, check=True)
