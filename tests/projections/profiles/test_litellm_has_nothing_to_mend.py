"""litellm mends requests that providers would refuse: it finds nothing to mend in ours.

The one module that imports litellm, which takes seconds.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings

from onrecord.projections.profiles import render
from onrecord.projections.rows import Row
from row_lists import hostile, lawful

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def litellm() -> Any:
    """Let litellm change what it would."""
    import litellm

    before, litellm.modify_params = litellm.modify_params, True
    yield litellm
    litellm.modify_params = before


@given(rows=lawful() | hostile())
@settings(max_examples=80)
def test_chat_messages_are_a_fixed_point(litellm: Any, rows: list[Row]) -> None:
    from litellm.litellm_core_utils.prompt_templates.factory import (
        sanitize_messages_for_tool_calling,
    )
    from litellm.utils import validate_and_fix_openai_messages

    for profile in ("openai", "mistral"):
        messages = render(rows, profile)["messages"]

        assert validate_and_fix_openai_messages(copy.deepcopy(messages)) == messages
        assert sanitize_messages_for_tool_calling(copy.deepcopy(messages)) == messages


@given(rows=lawful() | hostile())
@settings(max_examples=80)
def test_tool_use_ids_are_a_fixed_point(litellm: Any, rows: list[Row]) -> None:
    from litellm.litellm_core_utils.prompt_templates.factory import sanitize_anthropic_tool_use_id

    for message in render(rows, "anthropic")["messages"]:
        for block in message["content"]:
            if block["type"] == "tool_use":
                assert sanitize_anthropic_tool_use_id(block["id"]) == block["id"]


def test_litellm_is_no_blind_oracle(litellm: Any) -> None:
    from litellm.litellm_core_utils.prompt_templates.factory import (
        sanitize_messages_for_tool_calling,
    )

    broken: list[Any] = [
        {"role": "user", "content": " "},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
    ]

    assert sanitize_messages_for_tool_calling(copy.deepcopy(broken)) != broken
