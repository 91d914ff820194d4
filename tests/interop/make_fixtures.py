"""Drive the real programs and keep what they leave behind as fixtures: `make fixtures`.

Each program is installed from the index, pinned, into an environment of its own; they are kept for the
next time. Its driver gets a folder for the fixtures and the URL of a model that says what the driver
tells it to, and runs with that environment's Python.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kept_runs import kept_runs, manifest

HERE = Path(__file__).parent
README = HERE / "README.md"
BEGIN, END = "<!-- runs -->\n", "<!-- /runs -->"
KEPT_ENVIRONMENTS = Path(
    os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "onrecord", "interop"
)
STOP_SECONDS = 10


@dataclass(frozen=True)
class Program:
    """A program that is driven. `packages`: what pip installs for it, the program itself first."""

    name: str
    packages: tuple[str, ...]

    @property
    def driver(self) -> Path:
        return HERE / self.name.replace("-", "_") / "drive.py"

    @property
    def fixtures(self) -> Path:
        return HERE / "fixtures" / self.name


PROGRAMS = (
    Program("hermes", ("hermes-agent==0.19.0",)),
    Program("openai-agents", ("openai-agents==0.24.0", "SQLAlchemy==2.1.9", "aiosqlite==0.22.1")),
    Program("langgraph", ("langgraph==1.2.24", "langgraph-checkpoint-sqlite==3.1.2", "httpx")),
)
NAMES = tuple(program.name for program in PROGRAMS)


def python_of(program: Program, environments: Path) -> Path:
    """Return the Python of a program's environment, which is made if there is none."""
    folder = environments / program.name
    python = folder / "bin" / "python"
    package, _, wanted = program.packages[0].partition("==")
    code = f"from importlib.metadata import version; print(version({package!r}))"
    if python.exists():
        done = subprocess.run([python, "-c", code], check=False, capture_output=True, text=True)
        if (found := done.stdout.strip()) == wanted:
            return python
        print(f"{program.name}: {folder} holds {package} {found or 'not at all'}", flush=True)
    print(f"{program.name}: installing {', '.join(program.packages)} into {folder}", flush=True)
    venv.create(folder, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "-qq", *program.packages], check=True)
    return python


@contextmanager
def model() -> Iterator[str]:
    """Run a model server as a process, and give its URL."""
    command = [sys.executable, str(HERE / "model_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()
            server.wait(STOP_SECONDS)


def table() -> str:
    """Say what each kept run is, in Markdown."""
    lines = ["| run | what was done | what an import must find |", "|---|---|---|"]
    for run in kept_runs():
        said = manifest(run)
        found = ", ".join(f"`{code}`" for code in sorted({each["code"] for each in said["faults"]}))
        lines.append(f"| `{run}` | {said['what']} | {found} |")
    return "\n".join(lines) + "\n"


def with_table(readme: str) -> str:
    """Put the table between its marks."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    return before + begin + table() + end + after


def main() -> None:
    """Make the fixtures of the programs that are named, or of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("program", nargs="*", help=f"one of {', '.join(NAMES)}; none: all")
    parser.add_argument(
        "--venvs",
        type=Path,
        default=KEPT_ENVIRONMENTS,
        help="where the environments are, one a program (%(default)s)",
    )
    parser.add_argument(
        "--only-readme", action="store_true", help="drive nothing: say in README.md what there is"
    )
    asked = parser.parse_args()
    if unknown := sorted(set(asked.program) - set(NAMES)):
        parser.error(f"{unknown[0]} is no program that is driven: say one of {', '.join(NAMES)}")
    for program in PROGRAMS:
        if asked.only_readme or program.name not in (asked.program or NAMES):
            continue
        python = python_of(program, asked.venvs)
        with model() as url:
            subprocess.run([python, program.driver, program.fixtures, url], check=True)
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
