"""Our own path through a gateway and an agent, with a platform that takes everything at once.

Beside the four messages a turn has its receipt, two calls of the model, an attempt to deliver the
answer, its outcome and the end. A streamed reply goes out as edits of one message.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from onrecord.agent.turn import Agent, Turn
from onrecord.gateway.delivery import Outbox
from onrecord.gateway.inbox import Inbox
from onrecord.gateway.platform import Abilities, Platform, Request
from onrecord.transcript.events import Source, Target, ToolCall
from store import Store
from stores.onrecord_log import OnRecord
from workload import SaidTurn

MODEL = "model"
PLATFORM = "here"


class TakesAll(Platform):
    abilities = Abilities(limit=8_192, streaming="edit")

    def send(self, request: Request) -> str:
        return request.key

    def edit(self, request: Request) -> None:
        del request


class Gateway(OnRecord):
    def __init__(self, folder: Path, variant: str) -> None:
        super().__init__(folder, variant)
        self._inbox = Inbox(self.log)
        self._outbox = Outbox(self.log, TakesAll())

    def append(self, session: str, turn: SaidTurn) -> None:
        with self._receive(session, turn.name, turn.question) as under_way:
            under_way.model_called(MODEL)
            call = ToolCall(id=turn.call, name=turn.tool, arguments=turn.arguments)
            under_way.produced("", [call])
            under_way.tool_result(turn.call, turn.result)
            under_way.model_called(MODEL)
            message = under_way.produced(turn.answer)
            target = Target(platform=PLATFORM, chat=session)
            self._outbox.send(session, target, turn.answer, turn=under_way.name, message=message)
            under_way.end()
        self.stored.catch_up(session)

    def stream(self, session: str, question: str, chunks: Iterable[str]) -> None:
        with self._receive(session, "stream", question) as under_way:
            under_way.model_called(MODEL)
            answer = under_way.stream()
            target = Target(platform=PLATFORM, chat=session)
            reply = self._outbox.begin(session, target, turn=under_way.name, message=answer.message)
            with reply, answer:
                for chunk in chunks:
                    reply.write(answer.add(chunk))
            under_way.end()
        self.stored.catch_up(session)

    def _receive(self, session: str, name: str, question: str) -> Turn:
        source = Source(platform=PLATFORM, chat=session, message=name)
        receipt = self._inbox.receive(session, question, source=source)
        return Agent(self.log, session).turn(receipt.turn)


def open_store(folder: Path, variant: str) -> Store:
    return Gateway(folder, variant)
