"""Lists of rows: those that the rules of the transcript allow, and any others."""

from __future__ import annotations

from hypothesis import strategies as st

from onrecord.projections.rows import Row
from onrecord.transcript.events import ToolCall

TEXTS = st.one_of(
    st.sampled_from(
        ["", " ", "\n\t", "\x00", "OK.", "Continue.", "a\n\nb", " x ", "\u200b", "نعم"]
    ),
    st.text(max_size=12),
)
ANY_TEXTS = TEXTS | st.sampled_from(["\ud800", "a\udfffb"])
IDS = st.one_of(
    st.sampled_from(
        ["c1", "c2", "", "call_1", "123456789", "a.b", "a_b", "é", "\ud800", "x" * 41, "y" * 200]
    ),
    st.text(max_size=6),
)
NAMES = st.sampled_from(
    ["run", "a.b", "a_b", "a b", "", "9lives", "-", "n" * 65, "мир", "\udfff", "run\n"]
)
ARGUMENTS = st.one_of(
    st.sampled_from(
        [
            "{}",
            '{"x": 1}',
            '{"x": [1.5, null, {"y": "z"}]}',
            "",
            " ",
            "{",
            "[1]",
            "null",
            '"text"',
            '{"x": NaN}',
            '{"x": 1e999}',
            '{"x": "\\ud800"}',
            '{"x": "\\udc00"}',
            '{"x": ' + "[" * 90 + "]" * 90 + "}",
            '{"x": ' * 3000 + "1" + "}" * 3000,
            '{"x": ' + "9" * 5000 + "}",
            '{"arguments": "x"}',
            '{"x": "\udc80"}',
        ]
    ),
    st.text(max_size=6),
)
CALLS = st.lists(st.builds(ToolCall, id=IDS, name=NAMES, arguments=ARGUMENTS), max_size=3)
TURNS = st.sampled_from(["t1", "t2", "t3"])
DELIVERY = st.sampled_from(["", "delivered", "undelivered", "in_doubt", "partial", "untracked"])

USER = st.builds(Row, role=st.just("user"), text=TEXTS, turn=TURNS)


@st.composite
def _assistants(draw: st.DrawFn, turn: str, *, pending: bool) -> list[Row]:
    calls = tuple({call.id: call for call in draw(CALLS)}.values())
    text = draw(TEXTS if calls else TEXTS.filter(str.strip))
    row = Row(role="assistant", text=text, turn=turn, tool_calls=calls, delivery=draw(DELIVERY))
    answered = [call for call in calls if not pending or draw(st.booleans())]
    results = [
        Row(role="tool", text=draw(TEXTS), tool_call=c.id, turn=turn, is_error=draw(st.booleans()))
        for c in answered
    ]
    return [row, *results]


@st.composite
def lawful(draw: st.DrawFn) -> list[Row]:
    """Rows as the rules allow: turns that end in an assistant's text, then perhaps an open one."""
    rows = [Row(role="summary", text=draw(TEXTS.filter(str.strip)))] if draw(st.booleans()) else []
    count = draw(st.integers(0, 4))
    for number in range(count):
        turn = f"t{number}"
        open_turn = number == count - 1 and draw(st.booleans())
        rows += draw(st.lists(USER, max_size=2))
        for _ in range(draw(st.integers(0, 2))):
            rows += draw(_assistants(turn, pending=open_turn))
            rows += draw(st.lists(USER, max_size=1))
        if not open_turn:
            rows.append(Row(role="assistant", text="done", turn=turn, delivery=draw(DELIVERY)))
    return rows


def hostile() -> st.SearchStrategy[list[Row]]:
    """Rows that no rule allows: any role after any other, results of nothing, ids twice."""
    row = st.builds(
        Row,
        role=st.sampled_from(["user", "assistant", "assistant", "tool", "tool", "summary"]),
        text=ANY_TEXTS,
        tool_call=IDS,
        turn=TURNS,
        delivery=DELIVERY,
        is_error=st.booleans(),
        tool_calls=CALLS.map(tuple),
    ).map(_of_its_role)
    return st.lists(row, max_size=8)


def _of_its_role(row: Row) -> Row:
    calls = row.tool_calls if row.role == "assistant" else ()
    return Row(
        role=row.role,
        text=row.text,
        tool_call=row.tool_call if row.role == "tool" else "",
        turn=row.turn,
        delivery=row.delivery if row.role == "assistant" else "",
        is_error=row.is_error,
        tool_calls=calls,
    )


def sample() -> list[Row]:
    """One conversation with everything in it, the open turn waiting for a result."""
    return [
        Row(role="summary", text="They said hello."),
        Row(role="user", text="Compare a and b", turn="t1"),
        Row(role="user", text="quickly", turn="t1"),
        Row(
            role="assistant",
            text="Looking.",
            turn="t1",
            delivery="delivered",
            tool_calls=(
                ToolCall("c1", "read", '{"f": "a"}'),
                ToolCall("c2", "files.read", "f=b"),
            ),
        ),
        Row(role="tool", text="alpha", tool_call="c1", turn="t1"),
        Row(role="tool", text="no such file", tool_call="c2", turn="t1", is_error=True),
        Row(role="assistant", text="Only a is there.", turn="t1", delivery="partial"),
        Row(role="user", text="Again", turn="t2"),
        Row(role="assistant", text="", turn="t2", tool_calls=(ToolCall("c1", "read", "{}"),)),
    ]
