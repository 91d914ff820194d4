"""What a page of documentation shows of a terminal, run again: `said(block, folder)`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

SECONDS = 60


def blocks(text: str) -> list[str]:
    """Return the blocks of a page that show a terminal."""
    return re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(block: str) -> list[str]:
    """Return the commands of a block."""
    return re.findall(r"^\$ (.*)$", block, re.MULTILINE)


def said(block: str, home: Path) -> str:
    """Run the commands of a block in a home folder; return what a terminal of 80 columns shows."""
    place = home / "bin"
    place.mkdir(exist_ok=True)
    program = place / "onrecord"
    start = "from onrecord.projections.cli import main\nmain()\n"
    program.write_text(f"#!{sys.executable}\n{start}", encoding="utf-8")
    program.chmod(0o755)
    surroundings = {
        **os.environ, "HOME": str(home), "PATH": f"{place}:{os.environ['PATH']}", "COLUMNS": "80",
        "NO_COLOR": "1",
    }  # fmt: skip
    shown = ""
    for command in commands(block):
        done = subprocess.run(
            ["bash", "-c", command], cwd=home, env=surroundings, capture_output=True, text=True,
            timeout=SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        lines = (done.stdout + done.stderr).splitlines()
        shown += f"$ {command}\n" + "".join(f"{line.rstrip()}\n" for line in lines)
    return shown


def is_shown(block: str, shown: str) -> bool:
    """Tell whether a block shows this; a line … in it stands for lines that are left out."""
    pieces = (re.escape(piece) for piece in block.split("…\n"))
    return re.fullmatch("(?:.*\n)+".join(pieces), shown) is not None
