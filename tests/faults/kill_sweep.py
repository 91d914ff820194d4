"""Kill a gateway at every write, sync and send that it makes, by injection: `make kill`.

Each kind of turn runs once under strace to count the calls, then once for each call, with SIGKILL as
the call begins. Then the harness of the kill test recovers, recovers again and takes the next turn.
All that on a file, and on a server, where each failpoint is tried too: the kill test has tried them all
on a file. Names of kinds of turns as arguments sweep those alone. Needs strace, and fails without it.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "postgres"))

from kill_cases import KILLED_IN_RECOVERY, at_failpoints, schemas
from kill_harness import KILLED, STYLES, Case, Child, Run, Stage, Verdict, run_case, stage
from postgres_server import Server, running_server

CALLS = (
    "write", "writev", "pwrite64", "pwritev", "fsync", "fdatasync", "ftruncate", "unlink",
    "unlinkat", "sendto", "sendmsg",
)  # fmt: skip
AT_ONCE = 2
ATTACH_LIMIT_SECONDS = 20.0
FAULTS_SHOWN = 20


def _traced(run: Run, *options: str) -> Child:
    """Start a gateway that begins once strace is attached to it."""
    gate = run.folder / "gate"
    os.mkfifo(gate)
    child = run.begin(gate=str(gate))
    strace = subprocess.Popen(
        ["strace", "-p", str(child.pid), "-o", str(run.folder / "trace"), *options],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert strace.stderr is not None
    said = strace.stderr.readline()
    if "attached" not in said:
        strace.kill()
        raise RuntimeError(f"strace can't attach: {said}")
    with gate.open("wb") as opened:
        opened.write(b"x")
    try:
        strace.wait(ATTACH_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        strace.kill()
        raise
    finally:
        strace.stderr.close()
    return child


def count(here: Stage, style: str) -> Counter[str]:
    """Return how often an undisturbed turn makes each call."""
    run = Run(here, Case(style, ("count",)))
    run.say(f"Tell me, {style}")
    code = _traced(run, "-e", f"trace={','.join(CALLS)}").wait()
    if code != 0:
        raise RuntimeError(f"{style}: the gateway ended with {code}: {run.errors()}")
    trace = (run.folder / "trace").read_text(encoding="utf-8", errors="replace")
    return Counter(re.findall(r"(?m)^(\w+)\(", trace))


def _killing(call: str, number: int) -> Callable[[Run], None]:
    def kill(run: Run) -> None:
        inject = f"inject={call}:signal=SIGKILL:when={number}"
        code = _traced(run, "-e", f"trace={call}", "-e", inject).wait()
        # How many pages a commit writes differs a little: a call that doesn't come kills nobody.
        if code == KILLED:
            run.verdict.killed += 1
        elif code != 0:
            run.fault(f"the gateway ended with {code}: {run.errors()}")

    return kill


def sweep(here: Stage, style: str) -> list[Verdict]:
    """Kill a kind of turn at each of its calls."""
    calls = count(here, style)
    points = [(call, number + 1) for call in sorted(calls) for number in range(calls[call])]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(
            pool.map(
                lambda point: run_case(
                    here, Case(style, (f"{point[0]}:{point[1]}",)), _killing(*point)
                ),
                points,
            )
        )


def on_a_file(style: str) -> list[Verdict]:
    """Sweep with logs in files."""
    with stage() as here:
        return sweep(here, style)


def on_a_server(server: Server, style: str) -> list[Verdict]:
    """Sweep with logs on a server, failpoints and second kills too."""
    with schemas(server) as another, stage(another) as here, ThreadPoolExecutor(AT_ONCE) as pool:
        cases = at_failpoints(here, style)
        cases += [case for case in KILLED_IN_RECOVERY if case.style == style]
        named = list(pool.map(lambda case: run_case(here, case), cases))
        return sweep(here, style) + named


def main() -> int:
    """Sweep, and say what was lost; 0 if nothing was."""
    if shutil.which("strace") is None:
        print("strace is not on the PATH; install it and run again", file=sys.stderr)
        return 1
    verdicts: list[Verdict] = []
    with running_server() as server:
        places = {"file": on_a_file, "server": partial(on_a_server, server)}
        for style, (place, swept) in itertools.product(sys.argv[1:] or STYLES, places.items()):
            began = time.monotonic()
            done = swept(style)
            verdicts += done
            killed = sum(verdict.killed for verdict in done)
            seconds = time.monotonic() - began
            print(f"{style}, on a {place}: {killed} kill points, {seconds:.0f} s", flush=True)
    lost = sum(verdict.lost for verdict in verdicts)
    duplicated = sum(verdict.duplicated for verdict in verdicts)
    wrong = [verdict for verdict in verdicts if verdict.faults]
    for verdict in wrong[:FAULTS_SHOWN]:
        print(f"{verdict.case}: {verdict.faults}", file=sys.stderr)
    killed = sum(verdict.killed for verdict in verdicts)
    forgot = sum(verdict.ledger_lost > 0 for verdict in verdicts)
    print(f"kill points: {killed}, lost: {lost}, duplicated: {duplicated}")
    print(f"a store at the end of the turn lost something in {forgot} of them")
    return 1 if wrong or lost or duplicated or not killed or not forgot else 0


if __name__ == "__main__":
    sys.exit(main())
