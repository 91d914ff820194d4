"""Real incidents, through a real log: exactly the rows and findings that are right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onrecord.projections.findings import findings
from onrecord.projections.rows import Row
from onrecord.projections.transcript import build
from onrecord.transcript.interchange import export_lines, import_lines
from onrecord.transcript.log import TranscriptLog

HERE = Path(__file__).resolve().parent.parent / "scenarios"
SHARED = HERE.parent.parent.parent / "shared" / "scenarios"
SCENARIOS = sorted({p.name: p for d in (HERE, SHARED) for p in d.glob("*.json")}.values())


def told(row: Row, wanted: dict[str, Any]) -> dict[str, Any]:
    """Put a row into a scenario's form, where `*` stands for any text."""
    form: dict[str, Any] = {"role": row.role, "text": row.text}
    if wanted["text"] == "*" and row.text.strip():
        form["text"] = "*"
    optional = {
        "origin": row.origin,
        "delivery": row.delivery,
        "tool_calls": [call.id for call in row.tool_calls],
        "tool_call": row.tool_call,
    }
    return form | {name: value for name, value in optional.items() if value}


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 48


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, each_url: str) -> None:
    scenario = json.loads(path.read_text())
    lines = [json.dumps(event).encode() for event in scenario["events"]]
    wanted = scenario["expect"]

    with TranscriptLog.open(each_url) as log:
        import_lines(log, lines, path.name)
        session = scenario["events"][0]["session"]
        rows = build(log, session).rows
        found = findings(session, log.read(session))
        build(log, session, full=True)
        exported = list(export_lines(log, session))

    assert [told(row, want) for row, want in zip(rows, wanted["rows"], strict=False)] == (
        wanted["rows"]
    )
    assert len(rows) == len(wanted["rows"])
    assert sorted({finding.code for finding in found}) == sorted(wanted["findings"])
    assert len(exported) == len({json.dumps(event) for event in exported})
