"""A delivery without a message finds the row that one finds by comparing it with every row."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from onrecord.projections.outgoing import Outgoing
from onrecord.projections.wording import Wording

TEXTS = st.text("ab\U0010ffff", min_size=1, max_size=4)


@dataclass
class Line:
    core: str
    deliveries: list[Outgoing] = field(default_factory=list)


@given(st.lists(TEXTS | st.just("")), st.lists(st.lists(TEXTS, max_size=2)))
def test_the_first_akin_without_a_delivery_else_the_last(
    cores: list[str], sent: list[list[str]]
) -> None:
    lines = [Line(core) for core in cores]
    wording = Wording(lines)

    for n, texts in enumerate(sent):
        akin = [
            line
            for line in lines
            for text in texts
            if line.core and (line.core.startswith(text) or text.startswith(line.core))
        ]
        wanted = next((line for line in akin if not line.deliveries), akin[-1] if akin else None)
        found = wording.find(texts)
        assert found is wanted
        if found is not None:
            found.deliveries.append(Outgoing(f"d{n}", n))
