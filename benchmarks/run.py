"""`make bench`: run the scenarios in rounds, and say what came out against the targets.

    python benchmarks/run.py [--only W1,W2] [--rounds N] [--quick] [--cap SECONDS] [--peers hermes]

In each round everybody takes a turn, so that a slow minute of the machine is everybody's. A whole run
writes results/latest.json, the tables in README.md and the plot; another writes results/partial.json.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import page
import plot
from machine import line, machine
from measure import Figures, MeasureFailed, Task, finish_within, spawn
from peers import PEERS
from plan import SCENARIOS, Contestant, Scenario, installed_peers
from results import Results, read

HERE = Path(__file__).resolve().parent
LATEST, PARTIAL = (HERE / "results" / f"{name}.json" for name in ("latest", "partial"))
PATIENCE, PATIENCE_WITH_PEERS = 900.0, 120.0
"""Seconds that one measure may take, filling a store included."""


@dataclass(frozen=True)
class Runner:
    """Runs measures, each in a new process and a new folder."""

    folder: Path
    results: Results
    quick: bool
    cap: float

    def measure(self, scenario: Scenario, contestant: Contestant) -> Figures:
        """Return the figures of a round; of variations that failed, why."""
        figures: Figures = {}
        for suffix, varied in scenario.variations(quick=self.quick):
            if self.results.failed(scenario.name, contestant.name, suffix):
                continue  # it would only fail again, and slowly
            work = self.folder / "work"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            options = {**scenario.options, **(scenario.quick if self.quick else {}), **varied}
            task = Task(
                scenario.call, str(work), contestant.store, contestant.variant,
                cap=0.0 if contestant.is_ours else self.cap, seeds=str(self.folder / "seeds"),
                options=options,
            )  # fmt: skip
            patience = PATIENCE if contestant.is_ours else PATIENCE_WITH_PEERS
            try:
                told = finish_within(spawn(task, contestant.python, group=True), patience)
            except MeasureFailed as failed:
                told = {"failure": str(failed)}
            figures.update({f"{key}{suffix}": value for key, value in told.items()})
        return figures

    def run(self, scenario: Scenario, peers: tuple[Contestant, ...], rounds: int) -> None:
        """Run all rounds of a scenario."""
        for number in range(min(rounds, scenario.rounds)):
            for contestant in scenario.contestants(peers):
                if self.results.failed(scenario.name, contestant.name):
                    continue
                start = time.perf_counter()
                figures = self.measure(scenario, contestant)
                self.results.add(scenario.name, contestant.name, figures)
                took = f"{time.perf_counter() - start:.1f} s"
                _say(f"{scenario.name} round {number + 1}: {contestant.name} ({took})")
                for key, said in figures.items():
                    if key.startswith("failure"):
                        _say(f"  {key}: {said}")


def main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: ends what was started
    options = _options()
    if options.redraw:
        publish(read(LATEST))
        return
    is_whole = not (options.only or options.quick or options.peers)
    target = LATEST if is_whole else PARTIAL
    chosen = [one for one in SCENARIOS if not options.only or one.name in options.only]
    peers = installed_peers(options.peers)
    versions = {peer.package: peer.version() for peer in PEERS}
    for package, version in versions.items():
        if version is None:
            _say(f"{package} is missing (make bench-peers installs it)")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="onrecord-bench-") as folder:
        about = {"machine": machine(Path(folder)), "peers": versions, "quick": options.quick}
        results = Results(about)
        _say(line(results.about["machine"]))
        runner = Runner(Path(folder), results, options.quick, options.cap)
        for scenario in chosen:
            if scenario.is_possible:
                _say(f"{scenario.name}: {scenario.title}")
                runner.run(scenario, peers, options.rounds)
                results.write(target)
            else:
                _say(f"{scenario.name}: {scenario.needs} is not installed")
    _say(f"took {time.perf_counter() - start:.0f} s; all figures are in {target}")
    page.show(results)
    if is_whole:
        publish(results)


def publish(results: Results) -> None:
    """Write the tables into the page, and the plot beside it."""
    picture = HERE / "w5.png"
    plot.draw(results, picture)
    page.write(results, HERE / "README.md", picture)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measure our store, a bare SQLite and other stores at the same work."
    )
    names = ", ".join(scenario.name for scenario in SCENARIOS)
    parser.add_argument("--only", type=_names, default=frozenset(), help=f"some of {names}")
    parser.add_argument("--rounds", type=int, default=3, help="rounds at most (default 3)")
    parser.add_argument("--quick", action="store_true", help="small amounts, one round")
    parser.add_argument("--cap", type=float, default=5.0, help="seconds for a peer's loop")
    parser.add_argument(
        "--peers", type=_names, default=frozenset(), help="stores to compare with, or none"
    )
    parser.add_argument("--redraw", action="store_true", help="tables and plot of the last run")
    parser.add_argument("--folder", type=Path, default=None, help="where the stores are written")
    options = parser.parse_args()
    if options.quick:
        options.rounds = 1
    unknown = options.only - {scenario.name for scenario in SCENARIOS}
    if unknown:
        parser.error(f"no scenario {', '.join(sorted(unknown))}: there are {names}")
    return options


def _names(said: str) -> frozenset[str]:
    return frozenset(name.strip() for name in said.split(",") if name.strip())


def _say(*lines: str) -> None:
    for said in lines:
        print(said, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
