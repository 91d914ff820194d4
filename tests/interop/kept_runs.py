"""The kept runs of other programs, and one of them unpacked: `unpack("hermes/normal", tmp_path)`."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).with_name("fixtures")


def kept_runs(program: str = "*") -> list[str]:
    """Give the names of the runs, `program/run`, of one program or of all."""
    manifests = FIXTURES.glob(f"{program}/*/manifest.json")
    return sorted(manifest.parent.relative_to(FIXTURES).as_posix() for manifest in manifests)


def manifest(run: str) -> dict[str, Any]:
    """Say what was done and what an import must find."""
    said: dict[str, Any] = json.loads(FIXTURES.joinpath(run, "manifest.json").read_bytes())
    return said


def unpack(run: str, into: Path) -> Path:
    """Copy a run's files into a folder, as the program left them, and return the folder."""
    source = FIXTURES / run
    for file in sorted(source.rglob("*")):
        target = into / file.relative_to(source)
        if file.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif file.suffix == ".gz":
            target.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
        else:
            shutil.copyfile(file, target)
    return into
