"""Whatever bytes stand where a value belongs, it is read or refused, and nothing else happens."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from onrecord.transcript.importers import langgraph_values as values
from onrecord.transcript.importers.langgraph_messages import tell
from onrecord.transcript.importers.langgraph_values import Packed, Unreadable
from onrecord.transcript.importers.rows import SourceRows

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
NAMES = st.sampled_from([name for pair in values.KINDS for name in pair] + ["os", "system"])
EXTENSIONS = st.builds(
    lambda code, inner: msgspec.msgpack.Ext(code, msgspec.msgpack.encode(inner)),
    st.integers(-1, 9),
    PLAIN | st.tuples(NAMES, NAMES, PLAIN, PLAIN).map(list),
)
FIELDS = st.dictionaries(
    st.sampled_from(
        ["content", "id", "tool_calls", "invalid_tool_calls", "tool_call_id", "usage_metadata", "role",
         "additional_kwargs", "response_metadata", "status", "type"]
    ),
    PLAIN | EXTENSIONS | st.lists(st.dictionaries(st.text(), PLAIN, max_size=3), max_size=2),
)  # fmt: skip
MESSAGES = st.builds(
    lambda of, fields: msgspec.msgpack.Ext(5, msgspec.msgpack.encode([*of, fields])),
    st.sampled_from(sorted(values.KINDS)),
    FIELDS,
)
ANYTHING = st.binary() | (PLAIN | EXTENSIONS | MESSAGES | st.lists(MESSAGES)).map(
    msgspec.msgpack.encode
)


@given(ANYTHING, st.sampled_from(["msgpack", "json", "null", "pickle", "msgpack+aes", "?", None]))
def test_any_bytes_are_read_or_refused(data: bytes, type: str | None) -> None:
    for read in (values.state, values.elements, values.message, values.plain, values.overwrite):
        with contextlib.suppress(Unreadable):
            read(values.packed(type, data))


@given(MESSAGES)
def test_any_message_is_a_row_or_a_fault_or_refused(made: Any) -> None:
    rows = SourceRows("langgraph", "s")
    value = Packed("msgpack", msgspec.msgpack.encode(made))

    with contextlib.suppress(Unreadable):  # a field that is broken in itself
        found = values.message(value)
        tell(rows, found, "key", None, "checkpoints c messages[0]")

        assert rows.take() or found.kind == "system"
