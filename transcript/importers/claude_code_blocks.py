"""The blocks of Anthropic's messages, as Claude Code stores them: a line each, or several on one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from onrecord.transcript.events import ToolCall
from onrecord.transcript.importers import codes
from onrecord.transcript.importers.contents import text_of_part
from onrecord.transcript.importers.reading import Tell

Block = dict[str, Any]

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_SILENT = ("redacted_thinking", "fallback", "compaction")


@dataclass
class Response:
    """A response of the model whose lines are still being read. `group`: what its lines have in common."""

    group: str
    key: str
    at: int | None
    place: str
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    results: list[tuple[str, str, bool]] = field(default_factory=list[tuple[str, str, bool]])
    """What the provider's own tools answered in the same response: call, text, is it an error?"""
    finish: str | None = None
    usage: dict[str, Any] | None = None
    _texts: list[str] = field(default_factory=list[str])
    _thoughts: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "\n\n".join(self._texts)

    @property
    def reasoning(self) -> str | None:
        return "\n\n".join(self._thoughts) or None

    @property
    def says(self) -> bool:
        """Tell whether there is anything in it."""
        return bool(self._texts or self.calls or self._thoughts)

    @property
    def is_whole(self) -> bool:
        """Tell whether it is known that no line of it follows."""
        return self.finish not in (None, "tool_use")

    def read(self, message: Block, place: str, tell: Tell) -> Iterator[str]:
        """Take a line's message in; give the ids of its calls."""
        self.finish = message.get("stop_reason") or self.finish
        usage = message.get("usage")
        if isinstance(usage, dict):
            self.usage = {name: n for name, n in usage.items() if isinstance(n, int)}
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        for block in blocks:
            if isinstance(block, dict):
                yield from self._block(block, place, tell)

    def _block(self, block: Block, place: str, tell: Tell) -> Iterator[str]:
        kind = str(block.get("type"))
        if kind == "text":
            if text := text_of_part(block):
                self._texts.append(text)
        elif kind == "thinking":
            if thought := str(block.get("thinking") or ""):
                self._thoughts.append(thought)
        elif kind in _CALLS:
            id = str(block.get("id") or "")
            given = json.dumps(block.get("input") or {}, ensure_ascii=False)
            self.calls.append(ToolCall(id=id, name=str(block.get("name") or ""), arguments=given))
            yield id
        elif kind.endswith("_tool_result"):
            result = result_text(block.get("content"))
            self.results.append((str(block.get("tool_use_id") or ""), result, _failed(block)))
        elif kind not in _SILENT:
            tell(codes.UNKNOWN, place, f"a block of the type {kind!r}; it was not read")


def result_text(content: object) -> str:
    """Return what a tool answered, as text; a part that is none by its kind, in brackets."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content, ensure_ascii=False)
    parts = [part for part in content if isinstance(part, dict)]
    return "\n".join(text_of_part(part) or f"[{part.get('type')}]" for part in parts)


def _failed(block: Block) -> bool:
    content = block.get("content")
    kind = content.get("type") if isinstance(content, dict) else ""
    return block.get("is_error") is True or str(kind).endswith("_error")
