"""A model on the loopback that says what a script tells it to, in the form of OpenAI's chat completions.

Run as a process, it prints its base URL (`http://127.0.0.1:PORT/v1`) and serves until it is ended. It
streams or not, as it is asked, and fails on command: it cuts the stream, stalls, answers with an error.

The script is a list of replies in JSON: a file, or what is PUT to `/v1/script` at any time. A request
gets the first reply that fits and isn't used up, so the order says who answers first. Without one, the
last message comes back: "You said: …".

    to           text that the last message of the request must hold; absent: any request fits
    anywhere     text that the request must hold somewhere: a system prompt, the name of a tool
    times        how often the reply is given (1); 0: without end
    text         what is said; may be empty or absent
    reasoning    what is thought before, as `reasoning_content`
    calls        tool calls: [{"name", "arguments": {…}, "id"?}]
    finish       finish_reason; absent: tool_calls if there are calls, else stop
    tokens       [prompt, completion] as the usage says; absent: counted from the length of the texts
    size, pause  characters in a chunk (12) and seconds between two chunks (0)
    cut          after so many characters the connection ends without a last chunk
    reset        true: the cut is a reset (RST) and no mere end
    stall        [characters, seconds]: after so many nothing comes for so long
    status       an HTTP error of this status with `text` as its message
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Reply = dict[str, Any]
CHARACTERS_A_TOKEN = 4
CHUNK_CHARACTERS = 12
MODEL = "scripted"


class Cut(Exception):
    """The script ends the connection here; `reset` says how."""

    def __init__(self, reset: bool) -> None:
        super().__init__("the script cuts the stream")
        self.reset = reset


@dataclass
class Script:
    """Choose a reply for each request, and keep the requests in a file if one is named."""

    replies: list[Reply]
    requests: Path | None = None
    given: dict[int, int] = field(default_factory=dict[int, int])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def replace(self, replies: list[Reply]) -> None:
        with self.lock:
            self.replies = replies
            self.given.clear()

    def reply(self, request: dict[str, Any]) -> Reply:
        last = _last_text(request)
        whole = json.dumps(request, ensure_ascii=False)
        with self.lock:
            if self.requests is not None:
                with self.requests.open("a", encoding="utf-8") as file:
                    file.write(whole + "\n")
            for place, reply in enumerate(self.replies):
                given = self.given.get(place, 0)
                if 0 < reply.get("times", 1) <= given:
                    continue
                if reply.get("to", "") in last and reply.get("anywhere", "") in whole:
                    self.given[place] = given + 1
                    return {"place": place, "given": given, **reply}
        return {"place": "echo", "given": 0, "text": f"You said: {last}"}


def _last_text(request: dict[str, Any]) -> str:
    messages = request.get("messages") or [{}]
    content = messages[-1].get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "id": call.get("id", f"call_{reply['place']}_{reply['given']}_{index}"),
            "type": "function",
            "function": {
                "name": call["name"],
                "arguments": json.dumps(call.get("arguments", {})),
            },
        }
        for index, call in enumerate(reply.get("calls", ()))
    ]


def _finish(reply: Reply) -> str:
    return str(reply.get("finish", "tool_calls" if reply.get("calls") else "stop"))


def _usage(request: dict[str, Any], reply: Reply) -> dict[str, int]:
    counted = [len(json.dumps(request)), len(json.dumps(reply))]
    prompt, completion = reply.get("tokens") or [each // CHARACTERS_A_TOKEN for each in counted]
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _pieces(reply: Reply) -> Iterator[str]:
    """Give the text chunk by chunk, and pause, stall and cut between the chunks."""
    text = reply.get("text") or ""
    cut = reply.get("cut")
    stall, seconds = reply.get("stall") or (None, 0)
    size = reply.get("size", CHUNK_CHARACTERS)
    marks = sorted({*range(0, len(text), size), len(text), *(at for at in (cut, stall) if at)})
    said = 0
    for mark in marks:
        if mark > said:
            yield text[said:mark]
            said = mark
            time.sleep(reply.get("pause", 0))
        if stall == said:
            time.sleep(seconds)
        if cut is not None and said >= cut:
            raise Cut(bool(reply.get("reset")))


class Model(ThreadingHTTPServer):
    """Serve one script on a port of the loopback that the system chooses."""

    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.script = script

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Answer(BaseHTTPRequestHandler):
    """Answer one request; each has a connection of its own."""

    def do_GET(self) -> None:
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "tests"}
        if self.path.rstrip("/").endswith("/models"):
            self._json(200, {"object": "list", "data": [model]})
        else:
            self._json(404, {"error": {"message": f"nothing is served at {self.path}"}})

    def do_PUT(self) -> None:
        assert isinstance(self.server, Model)
        if not self.path.endswith("/script"):
            self._json(404, {"error": {"message": f"nothing is kept at {self.path}"}})
            return
        self.server.script.replace(json.loads(self._body()))
        self._json(200, {})

    def do_POST(self) -> None:
        body = self._body()
        if not self.path.endswith("/chat/completions"):
            self._json(404, {"error": {"message": f"nothing is served at {self.path}"}})
            return
        request = json.loads(body)
        assert isinstance(self.server, Model)
        reply = self.server.script.reply(request)
        self.name = f"chatcmpl-{reply['place']}-{reply['given']}"
        self.model = request.get("model", MODEL)
        try:
            if "status" in reply:
                error = {"message": reply.get("text", "as the script says"), "type": "scripted"}
                self._json(reply["status"], {"error": error})
            elif request.get("stream"):
                self._stream(request, reply)
            else:
                self._whole(request, reply)
        except Cut as cut:
            self._end(cut.reset)
        except (BrokenPipeError, ConnectionResetError):
            return  # who asked has gone: a kill or a stop, as the run wants it

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _whole(self, request: dict[str, Any], reply: Reply) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(_pieces(reply))}
        if reply.get("reasoning"):
            message["reasoning_content"] = reply["reasoning"]
        if calls := _calls(reply):
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
        said = self._said("chat.completion", [choice])
        self._json(200, {**said, "usage": _usage(request, reply)})

    def _stream(self, request: dict[str, Any], reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()  # the length isn't known: the end of the connection says it
        self._chunk({"role": "assistant", "content": ""})
        if reply.get("reasoning"):
            self._chunk({"reasoning_content": reply["reasoning"]})
        for piece in _pieces(reply):
            self._chunk({"content": piece})
        for call in _calls(reply):
            self._chunk({"tool_calls": [call]})
        self._chunk({}, _finish(reply))
        if (request.get("stream_options") or {}).get("include_usage"):
            said = self._said("chat.completion.chunk", [])
            self._event(json.dumps({**said, "usage": _usage(request, reply)}))
        self._event("[DONE]")

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        self._event(json.dumps(self._said("chat.completion.chunk", [choice])))

    def _said(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        created = int(time.time())
        return {
            "id": self.name,
            "object": kind,
            "created": created,
            "model": self.model,
            "choices": choices,
        }

    def _event(self, data: str) -> None:
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()

    def _json(self, status: int, body: dict[str, Any]) -> None:
        said = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def _end(self, reset: bool) -> None:
        if reset:  # lingering for no time makes the system send a reset
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  as inherited
        """Say nothing: what was asked stands in the file of requests."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a scripted model on the loopback.")
    parser.add_argument("script", nargs="?", type=Path, help="list of replies, in JSON")
    parser.add_argument("--requests", type=Path, help="a file that gets each request as a line")
    asked = parser.parse_args()
    replies = json.loads(asked.script.read_text(encoding="utf-8")) if asked.script else []
    with Model(Script(replies, asked.requests)) as model:
        print(model.url, flush=True)
        model.serve_forever()


if __name__ == "__main__":
    main()
