"""The README's way from a Hermes database to the explanation runs as it stands, word for word.

A line … in the README stands for lines that are left out.
"""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SECTION = "## My bot forgot what it said"
INCIDENT = "tests/interop/fixtures/hermes/locked-database"
SECONDS = 60


@pytest.fixture(scope="module")
def block(root: Path) -> str:
    section = (root / "README.md").read_text(encoding="utf-8").partition(SECTION)[2]
    return str(re.findall(r"```console\n(.*?)```", section, re.DOTALL)[0])


@pytest.fixture
def home(root: Path, tmp_path: Path) -> Path:
    """A home folder with the Hermes that forgot, and `onrecord` on the PATH."""
    for file in sorted((root / INCIDENT).rglob("*")):
        to = tmp_path / ".hermes" / file.relative_to(root / INCIDENT)
        if file.is_dir():
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        packed = file.suffix == ".gz"
        to.with_suffix("" if packed else to.suffix).write_bytes(
            gzip.decompress(file.read_bytes()) if packed else file.read_bytes()
        )
    command = tmp_path / "bin" / "onrecord"
    command.parent.mkdir()
    command.write_text(
        f"#!{sys.executable}\nfrom onrecord.projections.cli import main\nmain()\n", encoding="utf-8"
    )
    command.chmod(0o755)
    return tmp_path


def test_three_commands_lead_from_the_database_to_the_explanation(block: str) -> None:
    commands = [line for line in block.splitlines() if line.startswith("$ ")]

    assert [line.split()[1:3] for line in commands] == [
        ["onrecord", "import"], ["onrecord", "audit"], ["onrecord", "explain"],
    ]  # fmt: skip


def test_each_command_says_what_the_readme_says(block: str, home: Path) -> None:
    said: list[str] = []
    for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=home,
            env={
                **os.environ, "HOME": str(home), "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
                "COLUMNS": "80", "NO_COLOR": "1", "TZ": "UTC",
            },
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )  # fmt: skip
        assert done.stderr == ""
        assert done.returncode in (0, 1)
        said.append(
            f"$ {line}\n" + "".join(f"{row.rstrip()}\n" for row in done.stdout.splitlines())
        )

    pieces = [re.escape(piece) for piece in block.split("…\n")]
    assert re.fullmatch("(?:.*\n)+".join(pieces), "".join(said))
