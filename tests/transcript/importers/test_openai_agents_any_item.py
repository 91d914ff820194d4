"""Whatever JSON an item is, it is a row or a fault, and what comes after it is read."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from onrecord.transcript.importers import openai_items
from onrecord.transcript.importers.openai_items import Items
from onrecord.transcript.importers.rows import SourceRows

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
PARTS = st.lists(st.fixed_dictionaries({"type": JSON}, optional={"text": JSON, "refusal": JSON}))
CALLS = st.lists(st.fixed_dictionaries({}, optional={"id": JSON, "function": JSON}))
KINDS = sorted(
    openai_items.CALLS
    | openai_items.HOSTED
    | openai_items.ANSWERS.keys()
    | {"message", "reasoning", "?"}
)
ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(KINDS) | JSON,
        "role": st.sampled_from(["user", "assistant", "tool", "system", "?"]) | JSON,
        "content": PARTS | JSON, "summary": PARTS | JSON, "output": PARTS | JSON,
        "id": st.sampled_from(["a", "b"]) | JSON, "call_id": st.sampled_from(["a", "b"]) | JSON,
        "arguments": JSON, "name": JSON, "tool_calls": CALLS | JSON, "status": JSON,
        "provider_data": JSON | st.fixed_dictionaries({"response_id": JSON}),
    },
)  # fmt: skip


@given(st.lists(ITEMS, max_size=6))
def test_any_items_are_rows_or_faults(found: list[dict[str, Any]]) -> None:
    rows = SourceRows("openai-agents", "s")
    items = Items(rows)

    for number, item in enumerate(found):
        items.read(str(number), item, number, f"agent_messages {number}")
    items.read("last", {"role": "user", "content": "still here"}, None, "agent_messages 99")
    items.finish()

    events: list[Any] = [event for event, _, _ in rows.take()]
    assert [event.text for event in events if event.type == "UserMessageReceived"][
        -1
    ] == "still here"
    keys = [event.message for event in events if event.type == "AssistantMessageProduced"]
    assert len(keys) == len(set(keys))
