"""Session files, a line after another: as Claude Code, Codex and OpenClaw write them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[1] / "transcript" / "importers" / "fixtures"

BEGAN = 1_764_000_000


def settled(source: Path, into: Path) -> Path:
    """Copy a file, or a folder of them, as it is when nobody has written to it for long."""
    target = into / source.name
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)
    for path in (target, *target.rglob("*")):
        os.utime(path, (BEGAN, BEGAN))
    return target


class Lines:
    """A file of JSON lines. It was last written long ago, unless it is `live`."""

    def __init__(self, path: Path, *, live: bool = False) -> None:
        self.path = path
        self.live = live
        self.count = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def line(self, found: dict[str, Any]) -> None:
        """Write a line."""
        self.raw(json.dumps(found).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        with self.path.open("ab") as file:
            file.write(data)
        if not self.live:
            os.utime(self.path, (BEGAN, BEGAN))

    def moment(self) -> str:
        """Return the next second."""
        self.count += 1
        return f"2025-11-24T01:{self.count // 60:02}:{self.count % 60:02}.000Z"


class ClaudeFile(Lines):
    """A session of Claude Code. Each line hangs on the one before, unless `parent` says otherwise."""

    last: str | None = None

    def add(self, type: str, id: str, parent: str | None = "", **fields: Any) -> None:
        """Write a line that is part of the conversation."""
        self.line({
            "parentUuid": self.last if parent == "" else parent, "isSidechain": False, "type": type,
            "uuid": id, "timestamp": self.moment(), "sessionId": self.path.stem, "cwd": "/work", **fields,
        })  # fmt: skip
        self.last = id

    def user(self, id: str, content: Any, parent: str | None = "", **fields: Any) -> None:
        self.add("user", id, parent, message={"role": "user", "content": content}, **fields)

    def result(self, id: str, call: str, parent: str | None = "", text: str = "done") -> None:
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        self.user(id, [block], parent)

    def assistant(
        self, id: str, *blocks: Any, message: str = "", stop: str | None = "end_turn",
        parent: str | None = "", **fields: Any,
    ) -> None:  # fmt: skip
        """Write blocks of a response: texts, or what else a block can be."""
        content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
        said = {"id": message or f"msg-{id}", "role": "assistant", "model": "m", "content": content}
        self.add("assistant", id, parent, message={**said, "stop_reason": stop}, **fields)


def use(id: str, name: str = "Bash") -> dict[str, Any]:
    """Return a block that calls a tool."""
    return {"type": "tool_use", "id": id, "name": name, "input": {"command": "ls"}}


class Rollout(Lines):
    """A rollout of Codex."""

    def begin(self, id: str = "t1", **fields: Any) -> None:
        self.put("session_meta", {"id": id, "cwd": "/work", **fields})

    def put(self, type: str, payload: dict[str, Any]) -> None:
        self.line({"timestamp": self.moment(), "type": type, "payload": payload})

    def item(self, type: str, **fields: Any) -> None:
        self.put("response_item", {"type": type, **fields})

    def event(self, type: str, **fields: Any) -> None:
        self.put("event_msg", {"type": type, **fields})

    def user(self, text: str) -> None:
        self.item("message", role="user", content=[{"type": "input_text", "text": text}])

    def assistant(self, text: str) -> None:
        self.item("message", role="assistant", content=[{"type": "output_text", "text": text}])

    def answer(self, text: str) -> None:
        self.assistant(text)
        self.event("token_count")


class OpenClawFile(Lines):
    """A session of OpenClaw. Each entry hangs on the one before, unless `parent` says otherwise."""

    last: str | None = None

    def begin(self, **fields: Any) -> None:
        self.line({
            "type": "session", "version": 3, "id": self.path.stem, "timestamp": self.moment(),
            "cwd": "/work", **fields,
        })  # fmt: skip

    def entry(self, type: str, id: str, parent: str | None = "", **fields: Any) -> None:
        parent = self.last if parent == "" else parent
        self.line(
            {"type": type, "id": id, "parentId": parent, "timestamp": self.moment(), **fields}
        )
        self.last = id

    def message(
        self, id: str, role: str, content: Any, parent: str | None = "", **fields: Any
    ) -> None:
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        self.entry("message", id, parent, message={"role": role, "content": blocks, **fields})

    def user(self, id: str, text: str, parent: str | None = "", **fields: Any) -> None:
        self.message(id, "user", text, parent, **fields)

    def assistant(self, id: str, content: Any, parent: str | None = "", **fields: Any) -> None:
        self.message(
            id,
            "assistant",
            content,
            parent,
            **{"provider": "p", "model": "m", "stopReason": "stop", **fields},
        )

    def mirror(self, id: str, text: str, parent: str | None = "", **fields: Any) -> None:
        """Write a row that says what went out."""
        self.assistant(id, text, parent, provider="openclaw", model="delivery-mirror", **fields)

    def result(self, id: str, call: str, text: str, *, failed: bool = False) -> None:
        self.message(id, "toolResult", text, toolCallId=call, toolName="t", isError=failed)


def called(id: str, name: str = "exec", **arguments: Any) -> dict[str, Any]:
    """Return a block of OpenClaw's that calls a tool."""
    return {"type": "toolCall", "id": id, "name": name, "arguments": arguments}
