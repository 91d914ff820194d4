"""What the drivers of the programs that are driven by a few lines of Python share.

A run is a coroutine that gets a folder and the model's URL; its docstring says what was done. It leaves a
database in the folder, which is kept compressed, with a manifest.json beside it.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

Reply: TypeAlias = dict[str, Any]
Do: TypeAlias = Callable[[Path, str], Coroutine[Any, Any, None]]

KILL_SECONDS = 60


class Runs:
    """The runs of one program, in the order in which they are made. `kept`: the files of the program."""

    def __init__(self, program: str, *kept: str) -> None:
        self.program = program
        self.kept = kept
        self.known: dict[str, tuple[Do, list[dict[str, str]]]] = {}

    def run(self, *faults: tuple[str, str]) -> Callable[[Do], Do]:
        """Make a run of a coroutine. `faults`: code and what, which an import must find."""

        def enter(do: Do) -> Do:
            told = [{"code": code, "what": what} for code, what in faults]
            self.known[do.__name__.replace("_", "-")] = (do, told)
            return do

        return enter

    def drive(self) -> None:
        """Do as the command line says: OUT_FOLDER MODEL_URL [RUN …]."""
        out, url, *names = sys.argv[1:]
        asyncio.run(self._all(Path(out), url, names or list(self.known)))

    async def _all(self, out: Path, url: str, names: list[str]) -> None:
        for name in names:
            print(f"{self.program}: {name}", flush=True)
            do, faults = self.known[name]
            with tempfile.TemporaryDirectory(prefix=f"{self.program}-") as folder:
                await do(Path(folder), url)
                self._keep(do, faults, Path(folder), out / name)

    def _keep(self, do: Do, faults: list[dict[str, str]], folder: Path, to: Path) -> None:
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir(parents=True)
        files = []
        for name in self.kept:
            file = folder / name
            if file.exists() and file.stat().st_size:
                files.append(f"{name}.gz")
                to.joinpath(files[-1]).write_bytes(gzip.compress(file.read_bytes(), mtime=0))
        manifest = {
            "program": self.program,
            "version": version(self.program),
            "what": " ".join((do.__doc__ or "").split()),
            "files": files,
            "faults": faults,
        }
        text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        to.joinpath("manifest.json").write_text(text, encoding="utf-8")


def say(url: str, *replies: Reply) -> None:
    """Give the model its script."""
    request = urllib.request.Request(f"{url}/script", json.dumps(replies).encode(), method="PUT")
    urllib.request.urlopen(request, timeout=10).close()


def killed(child: str, folder: Path, url: str) -> None:
    """Run this driver again as a child that ends by kill -9."""
    command = [sys.executable, sys.argv[0], "--child", child, str(folder), url]
    done = subprocess.run(command, check=False, timeout=KILL_SECONDS)
    assert done.returncode == -signal.SIGKILL, done.returncode


@contextmanager
def full_disk() -> Iterator[Callable[[Path], None]]:
    """Give a function after whose call no file grows beyond the size that the named one has now."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(file: Path) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size, most))

    try:
        yield fill
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
