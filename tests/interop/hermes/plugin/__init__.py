"""A platform adapter for Hermes, by its own plugin API: it talks to the chat platform of the tests.

Hermes loads it from `plugins/loopback` of its home. It never runs in our environment, where `gateway`
means another package, so what it builds on is imported by name.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from typing import Any

httpx: Any = importlib.import_module("httpx")
base: Any = importlib.import_module("gateway.platforms.base")
config: Any = importlib.import_module("gateway.config")

NAME = "loopback"
POLL_SECONDS = 30.0
RETRY_SECONDS = 0.2
MESSAGE_CHARACTERS = 4_000


class Loopback(base.BasePlatformAdapter):  # type: ignore[misc]  # its class is Any here, see above
    """Send, edit and receive by HTTP, as a bot of a real platform does."""

    authorization_is_upstream = True
    MAX_MESSAGE_LENGTH = MESSAGE_CHARACTERS

    def __init__(self, settings: Any) -> None:
        super().__init__(settings, config.Platform(NAME))
        self.client = httpx.AsyncClient(base_url=os.environ["LOOPBACK_URL"], trust_env=False)
        self.listening: asyncio.Task[None] | None = None

    async def connect(self, *, is_reconnect: bool = False) -> bool:
        self.listening = asyncio.create_task(self._listen())
        self._mark_connected()
        return True

    async def disconnect(self) -> None:
        if self.listening is not None:
            self.listening.cancel()
        self._mark_disconnected()
        await self.client.aclose()

    async def _listen(self) -> None:
        while True:
            try:
                answer = await self.client.get("/updates", timeout=POLL_SECONDS)
            except httpx.TransportError:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            for update in answer.json():
                source = self.build_source(
                    chat_id=update["chat"], chat_name="Ada", user_id="ada", user_name="Ada"
                )
                event = base.MessageEvent(
                    text=update["text"], source=source, message_id=update["message"]
                )
                await self.handle_message(event)

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        try:
            answer = await self.client.post(path, json=body, timeout=POLL_SECONDS)
        except httpx.TransportError as error:
            return base.SendResult(success=False, error=str(error))
        said = answer.json()
        if answer.status_code != httpx.codes.OK:
            return base.SendResult(success=False, error=said["error"])
        return base.SendResult(success=True, message_id=said["message"])

    async def send(
        self,
        chat_id: str,
        content: str,
        reply_to: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Any:
        return await self._post("/send", {"chat": chat_id, "text": content, "reply_to": reply_to})

    async def edit_message(
        self, chat_id: str, message_id: str, content: str, *, finalize: bool = False, **_: Any
    ) -> Any:
        return await self._post(
            "/edit", {"chat": chat_id, "message": message_id, "text": content, "last": finalize}
        )

    async def delete_message(self, chat_id: str, message_id: str) -> bool:
        result = await self._post("/delete", {"chat": chat_id, "message": message_id})
        return bool(result.success)

    async def send_typing(self, chat_id: str, metadata: dict[str, Any] | None = None) -> None:
        """Show nothing: who types is of no interest here."""

    async def get_chat_info(self, chat_id: str) -> dict[str, Any]:
        return {"name": chat_id, "type": "dm"}


def register(context: Any) -> None:
    """Tell Hermes of the platform; it calls this when it starts."""
    context.register_platform(
        name=NAME,
        label="Loopback",
        adapter_factory=Loopback,
        check_fn=lambda: True,
        max_message_length=MESSAGE_CHARACTERS,
    )
