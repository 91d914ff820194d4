"""What a message holds in the forms of the chat interfaces: a text, or parts of which some are text."""

from __future__ import annotations

import json
from typing import Any

_SHOWN = ("image_url", "file_id", "file_data", "source_type")


def text_of(content: object) -> str:
    """Return the words of a content; one of another form as JSON, pictures and files as nothing."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        words = [_said(part) for part in content]
        if any(words) or all(_is_media(part) or _is_thought(part) for part in content):
            return "".join(words)
    return json.dumps(content, ensure_ascii=False, default=str)


def thoughts_of(content: object) -> str:
    """Return what a content says that the model thought."""
    if not isinstance(content, list):
        return ""
    said = (
        part.get(name)
        for part in content
        if _is_thought(part)
        for name in ("thinking", "reasoning", "text")
    )
    return "\n\n".join(text for text in said if isinstance(text, str) and text)


def words(content: object) -> str:
    """Return the texts alone of a content: a text, or parts of which some are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part if isinstance(part, str) else text_of_part(part) for part in content]
    return "\n\n".join(text for text in texts if text)


def text_of_part(part: object) -> str:
    """Return the text of one part, none for a part that is something else."""
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def others(content: object) -> list[Any]:
    """Return the parts of a content that are no text, without their bytes."""
    if not isinstance(content, list):
        return []
    return [
        _described(part) for part in content if isinstance(part, dict) and not text_of_part(part)
    ]


def _described(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part with its short fields: an image's bytes are no words."""
    short = {k: v for k, v in part.items() if isinstance(v, str | int | bool) and len(str(v)) < 500}
    source = part.get("source")
    if isinstance(source, dict) and isinstance(source.get("media_type"), str):
        short["media_type"] = source["media_type"]
    return short


def _said(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or _is_thought(part):
        return ""
    return next((part[name] for name in ("text", "refusal") if isinstance(part.get(name), str)), "")


def _is_thought(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in (
        "thinking",
        "reasoning",
        "redacted_thinking",
    )


def _is_media(part: object) -> bool:
    return isinstance(part, dict) and (
        any(name in part for name in _SHOWN) or part.get("type") in ("tool_use", "image", "text")
    )
