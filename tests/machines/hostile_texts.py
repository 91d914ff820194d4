"""Texts that try to be more than text, and a document in which everything that is said is one of them."""

from __future__ import annotations

from hypothesis import strategies as st

from onrecord.projections.documents import Document, document
from onrecord.transcript.events import (
    AssistantMessageProduced,
    DeliveryAttempted,
    ToolCall,
    ToolResultReceived,
    TranscriptCompacted,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

HOSTILE = (
    "<script>alert(1)</script>", "</div><img src=x onerror=alert(1)>", "<!-- ", "-->", "]]>",
    "<a href='javascript:alert(1)'>x</a>", "&lt;b&gt;", "&#106;", "</textarea>", "</style>",
    "[x](javascript:alert(1))", "![x](http://e.example/x.png)", "[x]: http://e.example",
    "http://e.example/a", "HTTPS://e.example", "www.e.example", "a@e.example", "@team",
    "<http://e.example>", "mailto:a@e.example", "# h", "=====", "-----", "***", "* * *", "- item",
    "+ item", "1. item", "1) item", "> quote", ">", "```", "````", "~~~", "``` js", "`code`", "``",
    "`@`", "| a | b\n|---|---|", "x\n=====", "x\n-----",
    "- [ ] task", "**bold**", "_it_", "~~gone~~", "$x$", "\\",
    "\\\\", "<b>", "<", "    code", "\tcode", "  ", "\u202eevil\u202c", "\u2066x", "\u200b",
    "\ufeff", "\x00", "\x1b[31m", "\r", "\r\n", "\x0c", "\x85", "\u2028", "\u2029", "\u3000",
    "\xa0", "👩\u200d💻", "\u2764\ufe0f", "世界", "[^1]", "[^1]: x", ":::", "%", "\n\n", "\n", " ",
)  # fmt: skip
"""What Markdown, HTML and terminals take for more than text."""

hostile = st.lists(
    st.sampled_from(HOSTILE) | st.text(max_size=8), min_size=1, max_size=12
).map("".join)  # fmt: skip


def hostile_document(text: str) -> Document:
    """Return the document of a session in which each text, and each name that may be, is the given one."""
    name = text[:99].strip() or "x"
    with TranscriptLog.open("sqlite://") as log:
        log.append(
            "s",
            UserMessageReceived(message="u1", turn=name, text=text),
            AssistantMessageProduced(
                turn=name, message="m1", text=f"{text} and more",
                tool_calls=[ToolCall("c", name, text), ToolCall(name, "tool", text)],
            ),
            ToolResultReceived(turn=name, tool_call="c", text=text),
            DeliveryAttempted(delivery="d", turn=name, message="m1", text=text),
            TurnFinalized(turn=name),
            TranscriptCompacted(through_turn=name, summary=text),
        )  # fmt: skip
        made = document("s", log.read("s"), full=True)
    return Document(name, made.version, made.turns, made.summary)
