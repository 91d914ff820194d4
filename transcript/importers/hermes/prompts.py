"""What Hermes itself writes in the user's name or the model's, told by how it begins.

Of hermes-agent 0.19.0, and of older versions as far as that one still knows their words.
"""

from __future__ import annotations

import re

PROMPTS: tuple[tuple[str, str], ...] = (
    # agent/conversation_loop.py: _get_continuation_prompt, _CODEX_INCOMPLETE_NUDGE, the loop itself
    ("[System: Your previous tool call ", "continue"),
    ("[System: The previous response was cut off by a ", "continue"),
    ("[System: Your previous response was truncated by the output ", "continue"),
    ("[System: Your previous response contained only internal reasoning ", "continue"),
    ("[System: Continue now. Execute the required tool calls ", "continue"),
    ("You just executed tool calls but returned an empty response. ", "continue"),
    # agent/verification_stop.py, agent/kanban_stop.py
    ("[System: You edited code in this turn, ", "continue"),
    ("[System: You are a Hermes kanban worker. ", "continue"),
    # agent/chat_completion_helpers.py: handle_max_iterations
    ("You've reached the maximum number of tool-calling iterations allowed. ", "continue"),
    # hermes_cli/goals.py
    ("[Continuing toward your standing goal]\n", "continue"),
    ("[Continuing toward this kanban task — ", "continue"),
    # agent/conversation_compression.py, tools/todo_tool.py
    ("Continue from the compressed conversation context above. ", "compaction"),
    ("[Your active task list was preserved across context compression]", "compaction"),
    # tools/process_registry.py, gateway/run.py: _format_gateway_process_notification
    ("[IMPORTANT: Background process ", "notification"),
    ("[ASYNC DELEGATION COMPLETE — ", "notification"),
    ("[ASYNC DELEGATION BATCH COMPLETE — ", "notification"),
    # gateway/run.py and cli.py: the reload of MCP servers; tui_gateway/server.py: another model
    ("[IMPORTANT: MCP servers have been reloaded. ", "notification"),
    ("[System: The active model for this chat has changed to ", "notification"),
    ("[System: The user has changed the assistant's personality. ", "notification"),
    ("[System: The user has cleared the personality overlay. ", "notification"),
    # cron/scheduler.py: a brief that went out beside the conversation
    ("[Cron delivery: ", "notification"),
    # agent/background_review.py, of versions whose review wrote into the user's session
    ("Review the conversation above and update the skill library", "review"),
    ("Review the conversation above and consider saving to memory", "review"),
)
"""How a prompt begins, and its kind."""

EMPTY = "(empty)"
"""What stands for a response without words (agent/conversation_loop.py)."""
INTERRUPTED = "Operation interrupted"
"""How a row begins that ends a turn in the model's name (agent/message_sanitization.py)."""

_STARTS = tuple(start for start, _ in PROMPTS)
_FIRST = frozenset(start[0] for start in _STARTS)

# gateway/run.py: build_resume_recovery_note, _strip_auto_continue_noise; gateway/slash_commands.py
_NOTE = re.compile(r"\s*\[(?:System note: |Note: model was just switched from )[^\]]*\]\s*")
_NOTE_STARTS = ("[System note: ", "[Note: model was just switched from ")


def kind_of(text: str) -> str:
    """Return the kind of a prompt that Hermes made up; empty for the user's own words."""
    if not text or text[0] not in _FIRST or not text.startswith(_STARTS):
        return ""
    return next(kind for start, kind in PROMPTS if text.startswith(start))


def without_notes(text: str) -> tuple[str, bool]:
    """Return the user's words without the notes that Hermes put before them, and whether it did."""
    if not text.startswith(_NOTE_STARTS):
        return text, False
    rest = text
    while found := _NOTE.match(rest):
        rest = rest[found.end() :]
    return rest, rest != text
