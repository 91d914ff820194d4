"""Ask a model that speaks OpenAI's chat completions, with no more than the standard library."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from onrecord.transcript.events import ToolCall

LINE_LIMIT_BYTES = 1 << 20
EVENT_LIMIT = 100_000


class ModelBroke(Exception):
    """The model's answer stopped before its end, or never came."""


class Model(Protocol):
    """What the reply loop asks of a model."""

    def stream(self, messages: Sequence[dict[str, Any]]) -> Iterator[str | ToolCall]:
        """Yield pieces of text as they come, then the calls. Raise ModelBroke."""
        ...


@dataclass(frozen=True)
class CompletionModel:
    """A chat completions server on this machine. `timeout`: seconds without a byte."""

    port: int
    token: str
    name: str = "scripted"
    timeout: float = 10.0

    def stream(self, messages: Sequence[dict[str, Any]]) -> Iterator[str | ToolCall]:
        """Yield pieces of text as they come, then the calls. Raise ModelBroke."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)
        body = json.dumps({"model": self.name, "messages": list(messages), "stream": True})
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            connection.request("POST", "/v1/chat/completions", body.encode(), headers)
            response = connection.getresponse()
            if response.status != 200:
                raise ModelBroke(f"the model answered {response.status}")
            yield from _pieces(response)
        except (OSError, http.client.HTTPException) as error:
            raise ModelBroke(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()


def _pieces(response: http.client.HTTPResponse) -> Iterator[str | ToolCall]:
    calls: list[ToolCall] = []
    for data in _events(response):
        if data == "[DONE]":
            yield from calls
            return
        delta = json.loads(data)["choices"][0]["delta"]
        if delta.get("content"):
            yield delta["content"]
        for call in delta.get("tool_calls") or ():
            function = call["function"]
            calls.append(ToolCall(call["id"], function["name"], function["arguments"]))
    raise ModelBroke("the stream ended before it was done")


def _events(response: http.client.HTTPResponse) -> Iterator[str]:
    for _ in range(EVENT_LIMIT):
        line = response.readline(LINE_LIMIT_BYTES)
        if not line:
            return
        if line.startswith(b"data: "):
            yield line[6:].decode("utf-8", "surrogatepass").rstrip("\r\n")
    raise ModelBroke(f"over {EVENT_LIMIT} events")
