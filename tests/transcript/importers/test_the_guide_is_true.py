"""What the guide to the importers shows of real runs is what the command says of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from documented import blocks, commands, is_shown, said
from kept_runs import kept_runs, unpack

GUIDE = Path(__file__).parents[3] / "transcript" / "importers" / "README.md"
BLOCKS = blocks(GUIDE.read_text(encoding="utf-8"))


def run_of(block: str) -> str:
    """Return the run that a block imports."""
    return "hermes/" + commands(block)[0].split()[-1]


@pytest.mark.parametrize("block", BLOCKS, ids=run_of)
def test_a_fault_of_a_real_run_is_found_as_the_guide_says(block: str, tmp_path: Path) -> None:
    run = run_of(block)
    unpack(run, tmp_path / Path(run).name)

    shown = said(block, tmp_path)

    assert is_shown(block, shown), shown


def test_the_guide_shows_real_runs() -> None:
    assert BLOCKS
    assert {run_of(block) for block in BLOCKS} <= set(kept_runs("hermes"))
