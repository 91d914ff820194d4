"""Drive Hermes through all runs (or those that are named) and keep what each leaves behind.

    HERMES_PYTHON drive.py OUT_FOLDER MODEL_URL [RUN …]

Runs with the Python of Hermes's own environment and needs nothing else. OUT_FOLDER gets a folder a run:
the database as Hermes left it (gzip: an empty one has 190 kB), `logs/gateway.log`, `platform.jsonl`
(what the platform took, and when) and `manifest.json`.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from bot import Bot
from runs import RUNS, Run

KEPT = ("state.db", "state.db-wal", "logs/gateway.log", "platform.jsonl")
COMPRESSED = (".db", ".db-wal")
IN_A_SMALL_DISK = 'mount -t tmpfs -o "size=$1" none "$2" && shift 2 && exec "$@"'


def main() -> None:
    """Make the runs, each in a process of its own: one may have a disk of its own."""
    out, model_url, *names = sys.argv[1:]
    for run in [RUNS[name] for name in names] if names else RUNS.values():
        print(f"hermes: {run.name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="hermes-") as home:
            command = [sys.executable, __file__, "--run", run.name, home, out, model_url]
            if run.disk_bytes is not None:
                mounted = ["sh", "-c", IN_A_SMALL_DISK, "sh", str(run.disk_bytes), home]
                command = ["unshare", "-Urm", *mounted, *command]
            subprocess.run(command, check=True)


def one(name: str, home: Path, out: Path, model_url: str) -> None:
    """Make one run in a home that is empty."""
    run = RUNS[name]
    bot = Bot(home, model_url, run.settings)
    try:
        run.do(bot)
    finally:
        if bot.gateway is not None and bot.gateway.poll() is None:
            bot.kill()
    keep(run, home, out / run.name)


def keep(run: Run, home: Path, folder: Path) -> None:
    """Copy what the run left, and say what it was."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = []
    for name in KEPT:
        source = home / name
        if not source.exists() or not source.stat().st_size:
            continue
        content = source.read_bytes()
        if name.endswith(COMPRESSED):
            name += ".gz"  # noqa: PLW2901
            content = gzip.compress(content, mtime=0)
        folder.joinpath(name).parent.mkdir(exist_ok=True)
        folder.joinpath(name).write_bytes(content)
        files.append(name)
    manifest = {
        "program": "hermes-agent",
        "version": version("hermes-agent"),
        "what": run.what,
        "files": files,
        "faults": run.faults,
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    folder.joinpath("manifest.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        one(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), sys.argv[5])
    else:
        main()
