"""What is said in every store: the same texts, from a seed. Standard library only, as peers run it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

QUESTION, ARGUMENT, RESULT, ANSWER = 80, 30, 600, 400
"""Characters of a turn's texts: what is asked, searched for, found and answered."""
MESSAGES_A_TURN = 4
CHUNK = 20
"""Characters of a streamed chunk."""
MARK = re.compile(r"\[([\w-]+\.[qcra])\]")
"""Begins each text of a turn, so that what was stored can be counted."""

_letters = random.Random(1)
_WORDS = [
    "".join(_letters.choices("abcdefghijklmnopqrstuvwxyz", k=_letters.randint(2, 10)))
    for _ in range(3_000)
]


@dataclass(frozen=True, slots=True)
class SaidTurn:
    """A question, one call of a tool, its result, and the answer."""

    name: str
    question: str
    call: str
    arguments: str
    result: str
    answer: str
    tool: str = "search_files"

    @property
    def marks(self) -> set[str]:
        return {f"{self.name}.{part}" for part in "qcra"}


def turns(count: int, tag: str, *, first: int = 0) -> Iterator[SaidTurn]:
    """Yield turns of a tag, which are the same at every call."""
    for number in range(first, first + count):
        name = f"{tag}-{number}"
        words = random.Random(name)
        search = {
            "pattern": _text(words, f"[{name}.c]", ARGUMENT),
            "path": "/srv/app",
            "limit": 50,
        }
        yield SaidTurn(
            name=name,
            question=_text(words, f"[{name}.q]", QUESTION),
            call=f"call_{name}",
            arguments=json.dumps(search),
            result=_text(words, f"[{name}.r]", RESULT),
            answer=_text(words, f"[{name}.a]", ANSWER),
        )


def messages(turn: SaidTurn) -> tuple[dict[str, Any], ...]:
    """Return a turn as messages of the chat interface that many stores keep."""
    function = {"name": turn.tool, "arguments": turn.arguments}
    calls = [{"id": turn.call, "type": "function", "function": function}]
    return (
        {"role": "user", "content": turn.question},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "content": turn.result, "tool_call_id": turn.call},
        {"role": "assistant", "content": turn.answer},
    )


def chunks(count: int, size: int = CHUNK) -> list[str]:
    """Return the chunks of a reply, each with its number in it."""
    words = random.Random(count)
    return [_text(words, f"<{number}>", size) for number in range(count)]


def chunks_in(texts: Iterable[str]) -> set[int]:
    """Return the numbers of the chunks that stand in texts."""
    return {int(found) for text in texts for found in re.findall(r"<(\d+)>", text)}


def broken_roles(roles: Sequence[str]) -> int:
    """Count the places where a message may not follow the one before it."""
    may_follow = {"user": ("assistant",), "assistant": ("tool", "user"), "tool": ("assistant",)}
    return sum(after not in may_follow[before] for before, after in pairwise(roles))


def _text(words: random.Random, head: str, size: int) -> str:
    text = head
    while len(text) < size:
        text += " " + words.choice(_WORDS)
    return text[:size]
