"""Gateway processes for the kill tests, forked from one process that has imported everything.

Requests come in on standard input, one JSON object a line: a setting, a failpoint, and where standard
error goes. Answers go out on standard output: a child began, a child ended. The process has one
thread and never opens a log, so that its children start clean; it ends, and ends them, when standard
input is closed.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import selectors
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import openai
from kill_harness import Start

from onrecord.gateway.demo import bot
from onrecord.gateway.demo.completion import ModelBroke
from onrecord.gateway.demo.loopback import token_from_environment
from onrecord.transcript import failpoints
from onrecord.transcript.events import DeliveryAttempted, ToolCall
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.storage.postgres import PostgresDatabase
from onrecord.transcript.storage.sqlite import SQLiteDatabase

DATABASES = (SQLiteDatabase, PostgresDatabase)
"""Imported before the forks, so that no child has to."""
CHILD_LIMIT_SECONDS = 60
ANY_PROCESS = ctypes.c_ulong(-1)
PR_SET_PTRACER = 0x59616D61


class OpenAIModel:
    """The model as the official client reads it."""

    def __init__(self, port: int, token: str) -> None:
        self._client = openai.OpenAI(
            base_url=f"http://127.0.0.1:{port}/v1",
            api_key=token,
            max_retries=0,
            timeout=10.0,
            http_client=openai.DefaultHttpxClient(trust_env=False),
        )

    def stream(self, messages: Sequence[dict[str, Any]]) -> Iterator[str | ToolCall]:
        """Yield pieces of text as they come, then the calls. Raise ModelBroke."""
        calls: dict[int, list[str]] = {}
        try:
            with self._client.chat.completions.create(
                model="scripted", messages=cast("Any", messages), stream=True
            ) as chunks:
                for chunk in chunks:
                    delta = chunk.choices[0].delta
                    if delta.content:
                        yield delta.content
                    for call in delta.tool_calls or ():
                        had = calls.setdefault(call.index, ["", "", ""])
                        had[0] += call.id or ""
                        if call.function is not None:
                            had[1] += call.function.name or ""
                            had[2] += call.function.arguments or ""
        except Exception as error:
            # A stream that breaks midway raises the error of the client's own HTTP library.
            if isinstance(error, openai.APIError) or type(error).__module__.startswith("httpx"):
                raise ModelBroke(f"{type(error).__name__}: {error}") from error
            raise
        yield from (ToolCall(*parts) for parts in calls.values())


def main() -> None:
    """Start children until standard input is closed."""
    token = token_from_environment()
    model = OpenAIModel(int(sys.argv[1]), token)
    gc.collect()
    gc.freeze()
    children: dict[int, tuple[int, str]] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        pending = b""
        while True:
            for key, _ in selector.select():
                if key.fd == 0:
                    read = os.read(0, 65536)
                    if not read:
                        _end(children)
                        return
                    *lines, pending = (pending + read).split(b"\n")
                    for line in lines:
                        start = msgspec.json.decode(line, type=Start)
                        pid = _fork(start, model, token)
                        watch = os.pidfd_open(pid)
                        children[watch] = (pid, start.name)
                        selector.register(watch, selectors.EVENT_READ)
                        _say(name=start.name, pid=pid)
                else:
                    pid, name = children.pop(key.fd)
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    _, status = os.waitpid(pid, 0)
                    _say(name=name, status=os.waitstatus_to_exitcode(status))


def _end(children: dict[int, tuple[int, str]]) -> None:
    for watch in children:
        signal.pidfd_send_signal(watch, signal.SIGKILL)
    for pid, _ in children.values():
        os.waitpid(pid, 0)


def _say(**value: Any) -> None:
    os.write(1, json.dumps(value).encode() + b"\n")


def _fork(start: Start, model: OpenAIModel, token: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        _run(start, model, token)
        code = 0
    except BaseException:  # noqa: BLE001  a forked child must not return into its parent's code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _run(start: Start, model: OpenAIModel, token: str) -> None:
    errors = os.open(start.errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    empty = os.open(os.devnull, os.O_RDWR)
    os.dup2(empty, 0)
    os.dup2(empty, 1)
    os.dup2(errors, 2)
    signal.alarm(CHILD_LIMIT_SECONDS)
    if start.gate:
        _wait_for(Path(start.gate))
    failpoints.arm(start.failpoint)
    if not start.count:
        bot.run(start.setting, model, token)
        return
    counted: Counter[str] = Counter()

    def hit(name: str) -> None:
        counted[name] += 1

    def hit_commit(records: Iterable[Recorded]) -> None:
        attempt = any(isinstance(record.event, DeliveryAttempted) for record in records)
        counted["in-attempt-commit" if attempt else "in-commit"] += 1

    failpoints.hit, failpoints.hit_commit = hit, hit_commit
    bot.run(start.setting, model, token)
    Path(start.count).write_text(json.dumps(counted), encoding="utf-8")


def _wait_for(gate: Path) -> None:
    """Let a tracer attach, and wait until it says that it has (no longer than the alarm)."""
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANY_PROCESS, 0, 0, 0)
    with gate.open("rb") as opened:
        opened.read(1)


if __name__ == "__main__":
    main()
