"""A model server on this machine: OpenAI's chat completions, with server-sent events, from a script.

A script says what is answered to a user's message: the reply to the last user message whose text ends
with the script's key, and the first, second … reply as the model is asked again with tool results.
The answer depends on the request alone, so that a gateway that was killed finds the same model again.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from onrecord.gateway.demo.loopback import (
    LoopbackHandler,
    LoopbackServer,
    serve,
    token_from_environment,
)

STALL_LIMIT_SECONDS = 30.0


class Step(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One thing that the model does while it answers.

    `text`: a piece of the answer. `tool`: the name of a tool to call, with `arguments` (JSON text) and
    `call` (the call's id). `wait`: stall, in seconds. `status`: refuse with this HTTP status, if it is
    the first step. `cut`: the connection dies here.
    """

    text: str = ""
    tool: str = ""
    call: str = ""
    arguments: str = "{}"
    wait: float = 0.0
    status: int = 0
    cut: bool = False


Script = Mapping[str, list[list[Step]]]
"""The end of a user's message → the replies to it, each a list of steps."""


def choose(script: Script, messages: list[dict[str, Any]]) -> list[Step]:
    """Return the reply that `script` has for a conversation."""
    asked, results = "", 0
    for message in messages:
        if message.get("role") == "user":
            asked, results = _text(message.get("content")), 0
        elif message.get("role") == "tool":
            results += 1
    for key, replies in script.items():
        if asked.endswith(key) and replies:
            return replies[min(results, len(replies) - 1)]
    return [Step(text=f"You said: {asked}")]


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


class ModelHandler(LoopbackHandler):
    """`POST /v1/chat/completions`, whole or streamed."""

    def do_POST(self) -> None:
        """Answer a request for a completion."""
        body = self.body()
        if body is None:
            return
        if self.path != "/v1/chat/completions":
            self.answer(404, {"error": {"message": f"no such path: {self.path}"}})
            return
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            self.answer(400, {"error": {"message": "messages: a list that isn't empty"}})
            return
        assert isinstance(self.server, ModelServer)
        steps = choose(self.server.script, messages)
        if steps and steps[0].status:
            self.answer(steps[0].status, {"error": {"message": "the model refuses"}})
        elif body.get("stream"):
            self._stream(str(body.get("model", "")), steps)
        else:
            self._whole(str(body.get("model", "")), steps)

    def _whole(self, model: str, steps: list[Step]) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": None}
        for step in steps:
            time.sleep(min(step.wait, STALL_LIMIT_SECONDS))
            if step.cut:
                self.drop()
                return
            if step.text:
                message["content"] = (message["content"] or "") + step.text
            if step.tool:
                message.setdefault("tool_calls", []).append(_call(step))
        choice = {"index": 0, "message": message, "finish_reason": _finish(steps)}
        self.answer(200, _completion("chat.completion", model, choice))

    def _stream(self, model: str, steps: list[Step]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in self._events(model, steps):
            if event is None:
                self.drop()
                return
            data = f"data: {event}\n\n".encode("utf-8", "surrogatepass")
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _events(self, model: str, steps: list[Step]) -> Iterator[str | None]:
        """Yield the data of each event; None where the connection dies."""

        def event(delta: dict[str, Any], finish: str | None = None) -> str:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return json.dumps(_completion("chat.completion.chunk", model, choice))

        yield event({"role": "assistant", "content": ""})
        calls = 0
        for step in steps:
            time.sleep(min(step.wait, STALL_LIMIT_SECONDS))
            if step.cut:
                yield None
                return
            if step.text:
                yield event({"content": step.text})
            if step.tool:
                yield event({"tool_calls": [{"index": calls, **_call(step)}]})
                calls += 1
        yield event({}, _finish(steps))
        yield "[DONE]"


def _call(step: Step) -> dict[str, Any]:
    function = {"name": step.tool, "arguments": step.arguments}
    return {"id": step.call or f"call_{step.tool}", "type": "function", "function": function}


def _finish(steps: list[Step]) -> str:
    return "tool_calls" if any(step.tool for step in steps) else "stop"


def _completion(kind: str, model: str, choice: dict[str, Any]) -> dict[str, Any]:
    created = int(time.time())
    return {"id": "cmpl", "object": kind, "created": created, "model": model, "choices": [choice]}


class ModelServer(LoopbackServer):
    """The model, with its script."""

    def __init__(self, script: Script, token: str) -> None:
        self.script = script
        super().__init__(ModelHandler, token)


def main() -> None:
    """Serve the script in the file that is named on the command line."""
    script = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=dict[str, list[list[Step]]])
    serve(ModelServer(script, token_from_environment()))


if __name__ == "__main__":
    main()
