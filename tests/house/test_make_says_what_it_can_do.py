"""`make` lists every target, and says in one sentence that there is no fitting Python."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

SECONDS = 60
TARGETS = ("help", "demo", "test", "lint", "kill", "bench", "soak", "clean")

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(*arguments: str, cwd: Path, path: str | None = None) -> subprocess.CompletedProcess[str]:
    program = shutil.which("make")
    assert program is not None
    return subprocess.run(
        [program, "--no-print-directory", *arguments],
        cwd=cwd,
        env={"PATH": path or "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_make_alone_lists_every_target(root: Path) -> None:
    declared = re.findall(r"(?m)^\.PHONY: (\S+)$", (root / "Makefile").read_text(encoding="utf-8"))
    listed = re.findall(r"(?m)^  make (\S+) +\S", make(cwd=root).stdout)

    assert listed == declared
    assert set(TARGETS) <= set(listed)


def test_without_a_fitting_python_it_says_so_in_one_sentence(root: Path, tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(root / name, tmp_path / name)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14"):
        (tools / name).write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        (tools / name).chmod(0o755)

    done = make("test", cwd=tmp_path, path=str(tools))

    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert len(said) == 1
    assert "onrecord needs Python 3.11 or newer" in said[0]
    assert "make PYTHON=" in said[0]
    assert not (tmp_path / ".venv").exists()
