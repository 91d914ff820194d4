"""Whatever is recorded, in whatever order: at every point of the log each provider's request keeps
that provider's rules and holds what was delivered.
"""

from __future__ import annotations

from hypothesis import given

from histories import HISTORIES, recorded
from onrecord.projections.conversation import project
from onrecord.projections.profiles import PROFILES, render, texts_of, violations
from onrecord.projections.promise import check_texts
from onrecord.projections.promised import read
from onrecord.transcript.events import Event


@given(HISTORIES)
def test_every_request_keeps_the_rules_and_the_promise(history: list[Event]) -> None:
    records = recorded(history)
    for version in range(len(records) + 1):
        rows = project(records[:version])
        promised = read(records[:version])
        for profile in PROFILES:
            rendered = render(rows, profile)

            assert violations(profile, rendered) == []
            check_texts("s", promised, texts_of(profile, rendered))
