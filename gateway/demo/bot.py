"""The demo's gateway process: messages in, a model's replies out, both writers at work.

It takes the session's lease, recovers what a crash left, then answers what the platform hands out. The
same turns are also given to an `EndOfTurnLedger`, so that both stores have lived through the same.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from onrecord.agent.turn import Agent, Turn
from onrecord.gateway.delivery import Delivery, Outbox, Stopped
from onrecord.gateway.demo.chat import Client, DemoPlatform
from onrecord.gateway.demo.completion import CompletionModel, Model, ModelBroke
from onrecord.gateway.demo.ledger import EndOfTurnLedger
from onrecord.gateway.demo.loopback import token_from_environment
from onrecord.gateway.inbox import Inbox
from onrecord.gateway.platform import Abilities, Streaming
from onrecord.gateway.recovery import Begin, Close, Plan, Recovery, Send, Settle
from onrecord.projections.profiles import render
from onrecord.projections.transcript import build
from onrecord.transcript import failpoints
from onrecord.transcript.events import Source, Target, ToolCall
from onrecord.transcript.log import TranscriptLog

PLATFORM = "demo"
BROKEN = "(The connection to the model broke; ask again and I go on.)"
ROUNDS_OF_TOOLS = 4
ROUNDS_OF_RECOVERY = 16
MESSAGES_AT_MOST = 1_000


class Setting(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a gateway process is told.

    `log`: URL; `ledger`, `bookings`: paths of what the end-of-turn store and the tool write.
    `streaming`, `limit`, `formats`, `interval` (seconds): see `Abilities`. `placeholder`: shown first
    and replaced by edits. `corrections`: words to replace in a reply once it stands, by an edit.
    `answer_timeout`: seconds to wait for the platform's answer. `linger`: seconds to wait for another
    message before the process ends.
    """

    log: str
    session: str
    chat: str
    platform_port: int
    model_port: int
    ledger: str
    bookings: str
    owner: str = "gateway"
    streaming: Streaming = "edit"
    limit: int = 4096
    interval: float = 0.0
    formats: tuple[str | None, ...] = (None,)
    lookup: bool = False
    placeholder: str | None = None
    corrections: dict[str, str] = {}
    answer_timeout: float = 10.0
    linger: float = 0.0


class Bot:
    """Answers the messages of one chat."""

    def __init__(self, log: TranscriptLog, setting: Setting, model: Model, token: str) -> None:
        self._log = log
        self._setting = setting
        self._model = model
        self._client = Client(setting.platform_port, token, setting.answer_timeout)
        abilities = Abilities(
            limit=setting.limit, streaming=setting.streaming, interval=setting.interval,
            formats=setting.formats, lookup=setting.lookup,
        )  # fmt: skip
        self._outbox = Outbox(log, DemoPlatform(self._client, abilities))
        self._inbox = Inbox(log)
        self._ledger = EndOfTurnLedger(Path(setting.ledger))
        self._lease = log.leases.acquire(setting.session, setting.owner)
        self._agent = Agent(log, setting.session, lease=self._lease)
        self._target = Target(platform=PLATFORM, chat=setting.chat)
        self.stopping = False

    def stop(self) -> None:
        """Let the request that is under way be answered, and end. Safe in a signal handler."""
        self.stopping = True
        self._outbox.stop()

    def run(self) -> None:
        """Recover, then answer until no message came for `linger` seconds."""
        self.recover()
        for _ in range(MESSAGES_AT_MOST):
            if self.stopping:
                break
            wait = {"chat": self._setting.chat, "wait": self._setting.linger}
            updates = self._client.post("/updates", wait)["updates"]
            if not updates:
                break
            self._take(updates[0])
            self._lease = self._log.leases.renew(self._lease)
        self._log.leases.release(self._lease)

    def recover(self) -> None:
        """Decide what a crash left, until nothing is left to decide."""
        held = {self._setting.session: self._lease}
        recovery = Recovery(self._log, self._setting.owner, held=held)
        for _ in range(ROUNDS_OF_RECOVERY):
            plans = recovery.plans([self._setting.session])
            if not plans:
                return
            for plan in plans:
                self._decide(plan)
        raise RuntimeError(f"recovery has no end after {ROUNDS_OF_RECOVERY} rounds")

    def _decide(self, plan: Plan) -> None:
        if isinstance(plan, Begin):
            self._reply(plan.turn, "\n".join(plan.texts.values()))
        elif isinstance(plan, Send):
            if not self._outbox.resume(plan, self._lease).delivered:
                plan.drop()
        elif isinstance(plan, Settle):
            self._settle(plan)
        elif isinstance(plan, Close):
            plan.close()

    def _settle(self, plan: Settle) -> None:
        """Ask the platform; else an edit may be sent again, and a message is left in doubt."""
        found = self._outbox.ask(plan)
        if found is not None and found.taken:
            plan.confirm(*([found.platform_message] if found.platform_message else []))
        elif found is not None:
            plan.refute()
        elif not (plan.repeatable and self._outbox.resume(plan, self._lease).delivered):
            plan.leave()

    def _take(self, update: dict[str, Any]) -> None:
        source = Source(platform=PLATFORM, chat=update["chat"], message=update["message"])
        receipt = self._inbox.receive(
            self._setting.session, update["text"], source=source, sender=update["sender"]
        )
        self._client.post("/ack", {"chat": update["chat"], "message": update["message"]})
        failpoints.hit("acknowledged")
        if receipt.new:
            self._reply(receipt.turn, update["text"])

    def _reply(self, name: str, asked: str) -> None:
        """Run a turn; a model whose stream breaks ends it, and the chat goes on."""
        try:
            self._turn(name, asked)
        except ModelBroke:
            # What was shown is on record, and so is how it ended: leaving the turn has seen to it.
            self._outbox.notice(
                self._setting.session, self._target, BROKEN, turn=name, lease=self._lease
            )

    def _turn(self, name: str, asked: str) -> None:
        said = [("user", asked)]
        with self._agent.turn(name) as turn:
            for _ in range(ROUNDS_OF_TOOLS):
                text, calls = self._answer(turn)
                said.append(("assistant", text))
                if not calls:
                    turn.end(text=text or None)
                    break
                for call in calls:
                    result = self._book(call)
                    turn.tool_result(call.id, result)
                    said.append(("tool", result))
        # Where the whole turn is saved at its end, this is the line that saves it.
        self._ledger.save(said)

    def _answer(self, turn: Turn) -> tuple[str, list[ToolCall]]:
        """Ask the model once and show what it says; return the text that stands, and its calls."""
        messages = self._messages()
        turn.model_called("scripted", rendered=messages, profile="openai")
        message = turn.next_message()
        reply = self._outbox.begin(
            self._setting.session, self._target, turn=turn.name, message=message,
            lease=self._lease, placeholder=self._setting.placeholder,
        )  # fmt: skip
        with reply, turn.stream(message) as answer:
            for piece in self._model.stream(messages):
                if isinstance(piece, ToolCall):
                    answer.call(piece)
                else:
                    reply.write(answer.add(piece))
        return self._corrected(reply, answer.text), answer.tool_calls

    def _corrected(self, reply: Delivery, text: str) -> str:
        wanted = text
        for wrong, right in self._setting.corrections.items():
            wanted = wanted.replace(wrong, right)
        if wanted != text and reply.outcome.delivered:
            reply.replace(wanted)
            return wanted
        return text

    def _messages(self) -> list[dict[str, Any]]:
        failpoints.hit("projection-behind")
        rows = build(self._log, self._setting.session).rows
        messages: list[dict[str, Any]] = render(rows, "openai")["messages"]
        return messages

    def _book(self, call: ToolCall) -> str:
        """Run the one tool there is: book a table, which can't be undone."""
        with Path(self._setting.bookings).open("a", encoding="utf-8") as bookings:
            bookings.write(json.dumps({"call": call.id, "arguments": call.arguments}) + "\n")
            bookings.flush()
            os.fsync(bookings.fileno())
        return "booked"


def run(setting: Setting, model: Model, token: str) -> None:
    """Run a gateway until it has nothing more to do, or is told to stop by SIGTERM."""
    with TranscriptLog.open(setting.log) as log:
        bot = Bot(log, setting, model, token)
        signal.signal(signal.SIGTERM, _stopping(bot))
        try:
            bot.run()
        except Stopped as stopped:
            print(f"stopped: {stopped}", file=sys.stderr)


def _stopping(bot: Bot) -> Callable[[int, Any], None]:
    def stop(number: int, frame: Any) -> None:  # noqa: ARG001  as signal wants it
        bot.stop()

    return stop


def main() -> None:
    """Run the gateway that the JSON on the command line describes."""
    setting = msgspec.json.decode(sys.argv[1], type=Setting)
    token = token_from_environment()
    run(setting, CompletionModel(setting.model_port, token), token)


if __name__ == "__main__":
    main()
