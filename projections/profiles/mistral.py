"""Mistral chat completions, and every server whose chat template wants strict alternation.

The rules (mistral-common's request validator and Mistral's chat templates): after the system
message user and assistant take turns, the user first; an assistant message has content or
`tool_calls`, not both; a user message never follows a tool message; as many results as calls; the
last message is the user's or a tool's; a call's id is nine alphanumeric characters. Later
tokenizers take content and calls together and any id: what is strict passes there too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from onrecord.projections.profiles.naming import Form
from onrecord.projections.profiles.openai import chat_messages
from onrecord.projections.profiles.shaping import CONTINUE, Step, alternate, steps_of, summary_of
from onrecord.projections.rows import Row

IDS = Form(re.compile(r"[a-zA-Z0-9]{9}"), "", 9)


def render(rows: Sequence[Row], *, annotate: bool = False) -> dict[str, Any]:
    """Return `messages`; a summary is the system message."""
    steps = alternate(steps_of(rows, ids=IDS, annotate=annotate))
    return {"messages": chat_messages(summary_of(rows), _split(steps))}


def _split(steps: Iterable[Step]) -> Iterator[Step]:
    """Part text from calls: the templates that alternate drop the text beside calls, unread."""
    for step in steps:
        if step.text and step.calls:
            yield Step(role="assistant", text=step.text)
            yield Step(role="user", text=CONTINUE)
            yield Step(role="assistant", text="", calls=step.calls)
        else:
            yield step
