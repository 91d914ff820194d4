"""Each command has help with an example that names it, and the README mentions it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

COMMANDS = (
    "audit",
    "check",
    "deliveries",
    "demo",
    "diff",
    "explain",
    "export",
    "import",
    "migrate",
    "project",
    "rebuild",
    "replay",
    "search",
    "sessions",
    "show",
    "tail",
    "verify",
)
SECONDS = 60


def onrecord(*arguments: str, columns: int = 200) -> subprocess.CompletedProcess[str]:
    """Run the command as its console script does, plain and wide."""
    program = (
        "import sys; sys.argv[0] = 'onrecord'; from onrecord.projections.cli import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"},
    )


def test_the_commands_are_the_ones_that_these_tests_know() -> None:
    from onrecord.projections.cli import app

    own = {
        command.name or getattr(command.callback, "__name__", "").strip("_").replace("_", "-")
        for command in app.registered_commands
    }
    added = {entry.name for entry in entry_points(group="onrecord.commands")}

    assert sorted(own | added) == sorted(COMMANDS)


def test_the_help_lists_each_command() -> None:
    done = onrecord("--help")

    assert done.returncode == 0, done.stderr
    assert [name for name in COMMANDS if not re.search(rf"(?m)^\W*{name}\s", done.stdout)] == []


def test_the_help_says_of_each_command_a_whole_sentence_on_a_narrow_terminal() -> None:
    done = onrecord("--help", columns=80)

    _, _, commands = done.stdout.partition("Commands")
    assert [line for line in commands.strip().splitlines()[1:] if not line.endswith(".")] == []
    assert "..." not in commands


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_an_example(name: str) -> None:
    done = onrecord(name, "--help")

    assert done.returncode == 0, done.stderr
    _, found, example = done.stdout.partition("Example")
    assert found, f"the help of {name} has no example"
    assert re.search(rf"onrecord\b.*\b{name}\b", example), f"the example of {name} doesn't use it"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_in_the_readme(name: str, root: Path) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")

    assert re.search(rf"onrecord\b[^\n]*\b{name}\b", readme) or f"make {name}" in readme
