"""Runs after which Hermes's transcript lacks something that its user has read."""

from __future__ import annotations

from bot import WAIT, Bot
from runs import STREAMING, call, fault, run

LOST, UNKNOWN_TEXT = "delivered-not-in-source", "content-unrecoverable"
LEDGER, LOG = "delivery_obligations", "gateway.log"
ADVICE = (
    "Write the attempt down first. Then send it. Then write down what the platform said. "
    "A process that dies in between leaves a doubt and no lie."
)
STREAMED = "Write the attempt down first. Then send it."
WORD = "Your code word is heron."
CODE_WORD = (
    {"to": "Hello", "text": "Hello, Ada."},
    {"to": "code word", "text": WORD, "stall": [4, 3]},
    {"to": "again", "text": "I never told you one."},
)
SLOW_SECONDS = 30.0
KILLED = fault(
    UNKNOWN_TEXT,
    "text that streamed before the kill: a turn that began, and no word of how it went on",
    shown=STREAMED,
    known_from=LOG,
)

RESUMED = fault(
    "synthetic-in-source",
    "the prompt to resume, stored as an empty message of the user (its text: api_content)",
    stored="interrupted by a gateway",
)


@run(KILLED, settings=STREAMING)
def killed_mid_stream(bot: Bot) -> None:
    """kill -9 while an answer streams; nothing is started again, and the WAL stays as it was."""
    bot.script(
        {"to": "Hello", "text": "Hello, Ada."},
        {"to": "advice", "text": ADVICE, "pause": 0.4},
    )
    bot.start()
    bot.turn("Hello.", "Hello, Ada.")
    bot.says("Give me some advice.")
    bot.sees(STREAMED)
    bot.kill()


@run(KILLED, RESUMED, settings=STREAMING)
def killed_and_started_again(bot: Bot) -> None:
    """kill -9 while an answer streams; started again, Hermes resumes by itself, and the user asks on."""
    bot.script(
        {"to": "advice", "text": ADVICE, "pause": 0.4},
        {"to": "second", "text": "I don't know what you mean."},
        {"to": "interrupted by a gateway", "text": "I am back. What shall I do?", "times": 0},
    )
    bot.start()
    bot.says("Give me some advice.")
    bot.sees(STREAMED)
    bot.kill()
    bot.start()
    bot.sees("I am back.")
    bot.rests()
    bot.turn("And the second point?", "what you mean.")
    bot.stop()


@run(
    fault(UNKNOWN_TEXT, "an answer whose write failed: no room", shown=WORD, known_from=LOG),
    fault("alternation-broken-in-source", "two messages of the user, and no answer between them"),
    settings=STREAMING,
    disk_bytes=16 << 20,
)
def full_disk(bot: Bot) -> None:
    """The disk is full when the answer is to be stored: it was read, and is nowhere."""
    bot.script(*CODE_WORD)
    bot.start()
    bot.turn("Hello.", "Hello, Ada.")
    bot.asks_model("Give me a code word.")
    with bot.full_disk():
        bot.sees(WORD)
        bot.rests()
    bot.stop()
    bot.start()
    bot.turn("Say it again?", "never told")
    bot.stop()


def _locked(bot: Bot) -> None:
    bot.script(*CODE_WORD)
    bot.start()
    bot.turn("Hello.", "Hello, Ada.")
    bot.asks_model("Give me a code word.")
    with bot.locked():
        bot.until(lambda: "append_message failed" in bot.log("agent.log"), "the write fails")
    bot.sees(WORD)
    bot.rests()
    bot.stop()
    bot.start()
    bot.turn("Say it again?", "never told")
    bot.stop()


@run(fault(LOST, "an answer whose one write failed", shown=WORD, known_from=LEDGER))
def locked_database(bot: Bot) -> None:
    """Another process holds the lock of state.db until Hermes gives up storing the answer."""
    _locked(bot)


@run(
    fault(UNKNOWN_TEXT, "an answer whose one write failed", shown=WORD, known_from=LOG),
    settings=STREAMING,
)
def locked_database_while_streaming(bot: Bot) -> None:
    """The database is locked when a streamed answer is to be stored: the log alone knows its length."""
    _locked(bot)


@run(
    fault(
        LOST,
        "the footer that says that no file was changed",
        shown="File-mutation verifier: 1 file(s) were NOT modified",
        known_from=LEDGER,
    )
)
def missing_footer(bot: Bot) -> None:
    """A patch fails, the model claims success, and Hermes adds a footer after the answer was stored."""
    bot.script(
        {
            "to": "Correct",
            "calls": [call("patch", path="notes.txt", old_string="teh", new_string="the")],
        },
        {"to": "Failed to read", "text": "I corrected notes.txt."},
    )
    bot.start()
    bot.turn("Correct notes.txt.", "I corrected notes.txt.")
    bot.stop()


@run(
    fault(
        LOST,
        "the explanation of an empty answer; the row says (empty)",
        shown="No reply: the model returned empty content",
        known_from=LEDGER,
    )
)
def missing_explanation(bot: Bot) -> None:
    """The model says nothing, however often it is asked; the user gets an explanation of it."""
    bot.script(
        {"to": "Hello", "text": "Hello, Ada."},
        {"to": "weather", "text": "", "times": 0},
    )
    bot.start()
    bot.turn("Hello.", "Hello, Ada.")
    bot.turn("What is the weather?", "No reply")
    bot.stop()


@run(
    fault(
        LOST,
        "what the user was told of the model's error",
        shown="The model provider failed after retries.",
        known_from=LEDGER,
    )
)
def missing_error(bot: Bot) -> None:
    """The model's server answers with an error that is not tried again; the user is told so."""
    bot.script(
        {"to": "Hello", "text": "Hello, Ada."},
        {"to": "weather", "status": 400, "text": "Bad request: the model is on strike", "times": 0},
    )
    bot.start()
    bot.turn("Hello.", "Hello, Ada.")
    bot.turn("What is the weather?", "failed after retries")
    bot.stop()


@run(
    fault("delivery-in-doubt", "whether the answer arrived: a send was begun, and no more is known")
)
def killed_in_a_send(bot: Bot) -> None:
    """kill -9 between the platform's taking an answer and its saying so: the ledger is left attempting."""
    bot.script(*CODE_WORD)
    bot.start()
    bot.turn("Hello.", "Hello, Ada.")
    bot.platform.answer_seconds = SLOW_SECONDS
    bot.says("Give me a code word.")
    bot.sees(WORD)
    bot.kill()


@run()
def killed_in_a_send_and_started_again(bot: Bot) -> None:
    """kill -9 within a send of the answer; started again, Hermes sends it once more, as recovered."""
    killed_in_a_send(bot)
    bot.platform.answer_seconds = 0
    bot.start()
    bot.sees(f"duplicate:\n\n{WORD}")
    bot.rests()
    bot.stop()


@run()
def refused_and_recovered(bot: Bot) -> None:
    """The platform refuses an answer; after a restart the ledger's sweep sends it, marked as recovered."""
    bot.script(
        {"to": "Hello", "text": "Hello, Ada."}, {"to": "news", "text": "No news is good news."}
    )
    bot.start()
    bot.turn("Hello.", "Hello, Ada.")
    bot.platform.refuse(20)
    bot.says("Any news?")
    bot.until(lambda: bot.log().count("response ready") == 2, "the turn ends")
    bot.rests()
    bot.kill()
    bot.platform.refuse(0)
    bot.start()
    bot.sees("No news is good news.")
    bot.rests()
    bot.stop()


@run(
    fault("unanswered-tool-call", "the result of a tool that ran when the kill came"),
    RESUMED,
)
def killed_in_a_tool(bot: Bot) -> None:
    """kill -9 while a tool runs whose call is stored; started again, Hermes resumes by itself."""
    bot.script(
        {"to": "Wait", "text": "I wait.", "calls": [call("terminal", command=WAIT)]},
        {"to": "there", "text": "Here I am."},
        {"to": "interrupted by a gateway", "text": "I am back. What shall I do?", "times": 0},
    )
    bot.start()
    bot.says("Wait a while.")
    bot.runs_a_tool()
    bot.kill()
    bot.start()
    bot.sees("I am back.")
    bot.rests()
    bot.turn("Are you there?", "Here I am.")
    bot.stop()
