"""The demo shows what it promises, plainly, and says so if the promise failed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from onrecord.gateway.demo.play import Ending, Message
from onrecord.gateway.demo.screen import show
from onrecord.projections.rows import Row

LIMIT_SECONDS = 20
PROGRAM = "import typer, onrecord.gateway.demo as d; a = typer.Typer(); a.command()(d.demo); a()"

ENDING = Ending(
    platform=[Message("user", "Hi"), Message("assistant", "Hello \x1b[31mthere\x07")],
    ledger=[],
    rows=[
        Row(role="user", text="Hi"),
        Row(role="assistant", text="Hello \x1b[31mthere\x07", delivery="in_doubt"),
    ],
    findings=[],
    records=3,
    fault="",
    seconds=1.0,
)


@pytest.mark.faults
def test_the_demo_in_a_pipe_is_plain_narrow_quick_and_loses_nothing(tmp_path: Path) -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--keep", str(tmp_path / "kept")],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_SECONDS,
        check=False,
        env={name: text for name, text in os.environ.items() if name != "COLUMNS"},
    )
    took = time.monotonic() - began

    assert (done.returncode, done.stderr) == (0, "")
    assert took < LIMIT_SECONDS
    assert "\x1b" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80 + len(str(tmp_path)) * 2
    assert "On record: 0 lost." in done.stdout
    assert "Saved at the end of the turn: 0 lost." not in done.stdout
    assert "delivery-in-doubt" in done.stdout
    assert (tmp_path / "kept" / "log.db").exists()


def test_a_promise_that_failed_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(ENDING, None) is True
    assert show(replace(ENDING, rows=ENDING.rows[:1]), None) is False
    assert show(replace(ENDING, rows=[*ENDING.rows, ENDING.rows[1]]), None) is False
    assert show(replace(ENDING, fault="chain"), None) is False


def test_what_a_message_says_never_acts_on_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(ENDING, None)

    page = capsys.readouterr().out
    assert "\x1b" not in page
    assert "\x07" not in page
    assert "\\x1b[31m" in page
