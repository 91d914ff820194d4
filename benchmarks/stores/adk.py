"""Google ADK's DatabaseSessionService over aiosqlite, an event a message, on a session that is held."""

from __future__ import annotations

import asyncio
import json
import logging
import warnings
from collections.abc import AsyncIterator, Iterable, Iterator
from importlib import import_module  # a peer is installed in an environment of its own
from pathlib import Path
from typing import Any

from store import Store
from workload import SaidTurn

_types = import_module("google.genai.types")
_Event = import_module("google.adk.events.event").Event
_services = import_module("google.adk.sessions.database_session_service")
_BaseAgent: Any = import_module("google.adk.agents").BaseAgent
_Runner = import_module("google.adk.runners").Runner
APP, USER = "app", "user"


class Adk(Store):
    def __init__(self, folder: Path, variant: str) -> None:
        super().__init__(folder, variant)
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        self._service = _services.DatabaseSessionService(f"sqlite+aiosqlite:///{folder}/adk.db")
        self._loop = asyncio.new_event_loop()
        self._held: dict[str, Any] = {}

    def close(self) -> None:
        self._loop.run_until_complete(self._service.close())
        self._loop.close()

    def release(self, session: str) -> None:
        del self._held[session]

    def refresh(self, session: str) -> None:
        self._held[session] = self._get(session)  # the Runner does so before each turn

    def prepare(self, session: str) -> None:
        if session not in self._held:
            self._held[session] = self._get(session) or self._create(session)

    def append(self, session: str, turn: SaidTurn) -> None:
        self.prepare(session)

        async def add() -> None:
            for event in self._events(turn):
                await self._service.append_event(self._held[session], event)

        self._loop.run_until_complete(add())

    def stream(self, session: str, question: str, chunks: Iterable[str]) -> None:
        content = self._content

        class Speaker(_BaseAgent):  # type: ignore[misc]
            async def _run_async_impl(self, context: Any) -> AsyncIterator[Any]:
                about = {"author": self.name, "invocation_id": context.invocation_id}
                said = []
                for chunk in chunks:
                    said.append(chunk)
                    yield _Event(partial=True, content=content("model", text=chunk), **about)
                yield _Event(content=content("model", text="".join(said)), **about)

        self.prepare(session)
        runner = _Runner(app_name=APP, agent=Speaker(name="agent"), session_service=self._service)

        async def run() -> None:
            asked = self._content("user", text=question)
            async for _ in runner.run_async(user_id=USER, session_id=session, new_message=asked):
                pass

        self._loop.run_until_complete(run())

    def load(self, session: str) -> list[Any]:
        return [event.content for event in self._get(session).events]

    def role(self, message: Any) -> str:
        if message.parts[0].function_response:
            return "tool"
        return "assistant" if message.role == "model" else str(message.role)

    def text(self, message: Any) -> str:
        return str(message.model_dump_json())

    def _get(self, session: str) -> Any:
        found = self._service.get_session(app_name=APP, user_id=USER, session_id=session)
        return self._loop.run_until_complete(found)

    def _create(self, session: str) -> Any:
        made = self._service.create_session(app_name=APP, user_id=USER, session_id=session)
        return self._loop.run_until_complete(made)

    def _content(self, role: str, **part: Any) -> Any:
        return _types.Content(role=role, parts=[_types.Part(**part)])

    def _events(self, turn: SaidTurn) -> Iterator[Any]:
        call = _types.FunctionCall(id=turn.call, name=turn.tool, args=json.loads(turn.arguments))
        result = _types.FunctionResponse(
            id=turn.call, name=turn.tool, response={"result": turn.result}
        )
        said = (
            ("user", self._content("user", text=turn.question)),
            ("agent", self._content("model", function_call=call)),
            ("agent", self._content("user", function_response=result)),
            ("agent", self._content("model", text=turn.answer)),
        )
        for author, content in said:
            yield _Event(author=author, invocation_id=turn.name, content=content)


def open_store(folder: Path, variant: str) -> Store:
    return Adk(folder, variant)
