"""Each fault of Hermes's real runs is found and named, and nothing else is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from kept_runs import kept_runs, manifest, unpack

from onrecord.projections.findings import findings
from onrecord.projections.transcript import build
from onrecord.transcript.importers.running import import_source, importer_of
from onrecord.transcript.log import TranscriptLog

LOST = {"content-unrecoverable", "delivered-not-in-source"}
FOLLOWS = {"alternation-broken-in-source", "delivered-differs"}
"""Where an answer or a part of it has no row: questions side by side, a row that isn't what was read."""
OPEN = {
    "hermes/new-message-meanwhile": {
        "delivery-in-doubt"
    },  # how much had streamed is logged nowhere
    "hermes/stopped": {"delivery-in-doubt"},
    "hermes/tool-call-row-filled": {"unanswered-tool-call", "produced-not-delivered"},  # no gateway
}
"""What else may be found: of this Hermes says nothing."""


@pytest.mark.parametrize("run", kept_runs("hermes"))
def test_what_an_audit_finds_in_a_real_run_is_what_happened(run: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    before = {file: file.read_bytes() for file in unpack(run, home).rglob("*") if file.is_file()}
    importer = importer_of(home)
    assert importer is not None

    with TranscriptLog.open("sqlite://") as log:
        done = import_source(log, importer, home)
        again = import_source(log, importer, home)
        found = [one for name in done.sessions for one in findings(name, log.read(name))]
        for name in done.sessions:
            build(log, name)  # which holds the promise

    codes = Counter(one.code for one in found)
    said = Counter(fault["code"] for fault in manifest(run)["faults"])
    missing, more = said - codes, codes - said
    assert not missing, found
    follows = FOLLOWS if LOST & said.keys() else set()
    assert set(more) <= OPEN.get(run, set()) | follows, found
    assert again.added == 0
    assert {file: file.read_bytes() for file in home.rglob("*") if file.is_file()} == before
