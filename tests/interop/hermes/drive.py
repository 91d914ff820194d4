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

import lossy_runs
import ordinary_runs
import surplus_runs
from bot import HOME, Bot
from runs import RUNS, Run

MODULES = (ordinary_runs, lossy_runs, surplus_runs)  # each enters its runs when it is imported
KEPT = ("state.db", "state.db-wal", "logs/gateway.log")  # of Hermes's home
ROOT = Path(__file__).resolve().parents[3]
COMPRESSED = (".db", ".db-wal")
IN_A_SMALL_DISK = 'mount -t tmpfs -o "size=$1" none "$2" && shift 2 && exec "$@"'


def main() -> None:
    """Make the runs, each in a process of its own: one may have a disk of its own."""
    out, model_url, *names = sys.argv[1:]
    for run in [RUNS[name] for name in names] if names else RUNS.values():
        print(f"hermes: {run.name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="hermes-") as folder:
            command = [sys.executable, __file__, "--run", run.name, folder, out, model_url]
            if run.disk_bytes is not None:
                home = Path(folder, HOME)
                home.mkdir()
                mounted = ["sh", "-c", IN_A_SMALL_DISK, "sh", str(run.disk_bytes), str(home)]
                command = ["unshare", "-Urm", *mounted, *command]
            subprocess.run(command, check=True)


def one(name: str, folder: Path, out: Path, model_url: str) -> None:
    """Make one run in a folder that is empty."""
    run = RUNS[name]
    bot = Bot(folder, model_url, run.settings)
    try:
        run.do(bot)
    finally:
        if bot.gateway is not None and bot.gateway.poll() is None:
            bot.kill()
    keep(run, folder, out / run.name)


def keep(run: Run, folder: Path, kept: Path) -> None:
    """Copy what the run left, and say what it was."""
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    files = []
    for source in (*(folder / HOME / name for name in KEPT), folder / "platform.jsonl"):
        if not source.exists() or not source.stat().st_size:
            continue
        content = source.read_bytes()
        name = source.relative_to(folder).as_posix().removeprefix(f"{HOME}/")
        if name.endswith(".log"):
            content = _placeless(content)
        if name.endswith(COMPRESSED):
            name, content = f"{name}.gz", gzip.compress(content, mtime=0)
        kept.joinpath(name).parent.mkdir(exist_ok=True)
        kept.joinpath(name).write_bytes(content)
        files.append(name)
    manifest = {
        "program": "hermes-agent",
        "version": version("hermes-agent"),
        "what": run.what,
        **({"planted": run.planted} if run.planted else {}),
        "files": files,
        "faults": run.faults,
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    kept.joinpath("manifest.json").write_text(text, encoding="utf-8")


def _placeless(log: bytes) -> bytes:
    """Take out where Hermes and this driver are installed: tracebacks and command lines name it."""
    for place, said in ((sys.prefix, "/hermes"), (sys.base_prefix, "/python"), (ROOT, "/driver")):
        log = log.replace(str(place).encode(), said.encode())
    return log


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        one(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), sys.argv[5])
    else:
        main()
