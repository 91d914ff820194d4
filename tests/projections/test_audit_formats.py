"""What other programs get of an audit: SARIF, CSV and Parquet."""

from __future__ import annotations

import csv
import io
import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped,unused-ignore]
import pyarrow.parquet as pq  # type: ignore[import-untyped,unused-ignore]
import pytest

from onrecord.projections.codes import MEANINGS
from onrecord.projections.pages.sarif import write_sarif
from onrecord.transcript.events import (
    AssistantMessageProduced,
    DeliveryAttempted,
    DeliveryFailed,
    SourceFaultFound,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

SCHEMA = Path(__file__).resolve().parent / "schemas" / "sarif-2.1.0.json"
Command = Callable[..., Any]


def conforming(text: str) -> Any:
    """Return the run of a SARIF file that the published schema takes."""
    told = json.loads(text)
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker()).validate(told)
    (run,) = told["runs"]
    return run


@pytest.fixture
def imported(log: TranscriptLog) -> TranscriptLog:
    """Give a log with a session of an import, and one with a name that is an attack."""
    log.append(
        "from a file",
        UserMessageReceived(message="u", text="Is it up?", imported_from="my notes/s.jsonl:7"),
        AssistantMessageProduced(turn="u", message="m", text="Yes.", imported_from="messages 8"),
        DeliveryAttempted(delivery="d", turn="u", message="m", text="Yes."),
        DeliveryFailed(delivery="d", definite=False, reason="timed out"),
        TurnFinalized(turn="u"),
        SourceFaultFound(code="odd-thing", place="messages 9", detail="odd", turn="u"),
    )
    log.append(
        "=cmd|' /C calc'!A0",
        DeliveryAttempted(delivery="d", turn="u", text="Hm."),
        DeliveryFailed(delivery="d", definite=False),
        TurnFinalized(turn="u"),
    )
    return log


def test_the_schema_refuses_what_is_no_sarif() -> None:
    with pytest.raises(jsonschema.ValidationError):
        conforming('{"version": "2.1.0", "runs": [{"results": []}]}')


def test_sarif_conforms_and_says_where(imported: TranscriptLog, command: Command) -> None:
    done = command("audit", "--format", "sarif")

    run = conforming(done.out)
    doubt = run["results"][0]
    assert done.code == 1
    assert (doubt["ruleId"], doubt["level"]) == ("delivery-in-doubt", "warning")
    assert doubt["locations"] == [
        {
            "physicalLocation": {"artifactLocation": {"uri": "messages%208"}},
            "logicalLocations": [
                {"name": "u", "fullyQualifiedName": "from%20a%20file/u/2,3,4", "kind": "member"}
            ],
        }
    ]
    assert doubt["properties"]["versions"] == [2, 3, 4]
    prints = [one["partialFingerprints"]["onrecord/v1"] for one in run["results"]]
    assert len(set(prints)) == len(prints)


def test_a_line_of_a_file_is_a_region_and_other_places_are_related() -> None:
    from onrecord.projections.findings import Finding

    finding = Finding(code="gap", session="s", turn="", versions=(1, 2, 3), detail="a gap")
    places = {1: "my notes/s.jsonl:7", 2: "my notes/s.jsonl:7", 3: "s.jsonl:9"}
    out = io.StringIO()
    write_sarif([(finding, places)], out)

    (result,) = conforming(out.getvalue())["results"]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "my%20notes/s.jsonl"}, "region": {"startLine": 7},
    }  # fmt: skip
    assert [one["physicalLocation"]["region"] for one in result["relatedLocations"]] == [
        {"startLine": 9}
    ]


def test_each_code_is_a_rule_that_says_what_to_do(
    imported: TranscriptLog, command: Command
) -> None:
    rules = conforming(command("audit", "--format", "sarif").out)["tool"]["driver"]["rules"]

    assert [rule["id"] for rule in rules] == [*MEANINGS, "odd-thing"]
    assert all(rule["help"]["text"] and rule["shortDescription"]["text"] for rule in rules)


def test_sarif_of_nothing_conforms(log: TranscriptLog, command: Command) -> None:
    done = command("audit", "--format", "sarif")

    assert (done.code, conforming(done.out)["results"]) == (0, [])


def test_csv_runs_no_formula(imported: TranscriptLog, command: Command) -> None:
    rows = list(csv.DictReader(io.StringIO(command("audit", "--format", "csv").out)))

    assert list(rows[0]) == ["code", "session", "turn", "versions", "detail"]
    assert [row["session"] for row in rows if row["code"] == "delivery-in-doubt"] == [
        "from a file", "'=cmd|' /C calc'!A0",
    ]  # fmt: skip
    assert rows[0]["versions"] == "2 3 4"


def test_parquet_has_types_and_texts_as_they_are(
    imported: TranscriptLog, command: Command, tmp_path: Path
) -> None:
    out = tmp_path / "found.parquet"

    done = command("audit", "--format", "parquet", "--out", str(out))

    rows = pq.read_table(out).to_pylist()
    assert (done.code, done.out) == (1, "")
    assert {row["session"] for row in rows} == {"from a file", "=cmd|' /C calc'!A0"}
    assert rows[0]["versions"] == [2, 3, 4]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_parquet_without_its_package_is_one_sentence(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None; "
        "sys.argv = ['onrecord', 'audit', '--format', 'parquet', '--out', 'x']; "
        "from onrecord.projections.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pip install 'onrecord[parquet]'" in done.stderr
