"""A rendering read back, by code that shares nothing with what rendered it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def texts_of(profile: str, rendered: Mapping[str, Any]) -> list[str]:
    """Return the assistant's texts in order, for the check that what was delivered stands there.

    Raises KeyError if the rendering isn't of that profile.
    """
    return said_by("assistant", profile, rendered)


def said_by(role: str, profile: str, rendered: Mapping[str, Any]) -> list[str]:
    """Return the texts of a role (user, assistant, tool, system) in order."""
    if profile == "responses":
        found = [
            (item["role"], item["content"])
            if item["type"] == "message"
            else ("tool", item["output"])
            for item in rendered["input"]
            if item["type"] != "function_call"
        ]
    elif profile == "gemini":
        found = [
            ("system", p["text"]) for p in rendered.get("system_instruction", {}).get("parts", ())
        ]
        found += [
            _of_gemini(content["role"], part)
            for content in rendered["contents"]
            for part in content["parts"]
            if "functionCall" not in part
        ]
    else:
        system = rendered.get("system", ())
        found = (
            [("system", system)]
            if isinstance(system, str)
            else [("system", s["text"]) for s in system]
        )
        for message in rendered["messages"]:
            found += _of_message(message)
    return [text for speaker, text in found if speaker == role]


def _of_message(message: Mapping[str, Any]) -> list[tuple[str, str]]:
    content = message.get("content")
    if content is None:
        return []
    if isinstance(content, str):
        return [(message["role"], content)]
    found = []
    for block in content:
        if "toolResult" in block:
            found += [("tool", inner["text"]) for inner in block["toolResult"]["content"]]
        elif block.get("type") == "tool_result":
            found.append(("tool", block["content"]))
        elif "text" in block:
            found.append((message["role"], block["text"]))
    return found


def _of_gemini(role: str, part: Mapping[str, Any]) -> tuple[str, str]:
    if "functionResponse" in part:
        return "tool", "\n\n".join(part["functionResponse"]["response"].values())
    return {"model": "assistant"}.get(role, role), part["text"]
