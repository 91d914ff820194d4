"""The README's way from a Hermes database to the explanation runs as it stands, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest
from documented import blocks, commands, is_shown, said
from kept_runs import unpack

SECTION = "## My bot forgot what it said"
INCIDENT = "hermes/locked-database"


@pytest.fixture(scope="module")
def block(root: Path) -> str:
    section = (root / "README.md").read_text(encoding="utf-8").partition(SECTION)[2]
    return blocks(section)[0]


def test_three_commands_lead_from_the_database_to_the_explanation(block: str) -> None:
    first_words = [command.split()[:2] for command in commands(block)]

    assert first_words == [["onrecord", "import"], ["onrecord", "audit"], ["onrecord", "explain"]]


def test_each_command_says_what_the_readme_says(block: str, tmp_path: Path) -> None:
    unpack(INCIDENT, tmp_path / ".hermes")

    shown = said(block, tmp_path)

    assert is_shown(block, shown), shown
