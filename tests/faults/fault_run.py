"""One run on a disk that fails: turns in a child, then the judgement of a process that begins anew."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import injection
from failing_turns import sayer, take_turns
from fault_judge import judge

# What a log imports when it is opened or used: imported here once, and not in each child.
for name in ("onrecord.transcript.aio", "onrecord.transcript.storage.sqlite"):
    import_module(name)

WHERE_THE_NAME_IS = {"failed": 2, "unread": 1, "unopened": 1}


@dataclass
class Run:
    """What came of it. `errors`: what the child was told; `faults`: what should hold and doesn't."""

    acked: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def run(
    disk: Path, notes: Path, decide: injection.Decide, mend: Callable[[], object] = lambda: None
) -> Run:
    """Take turns on a disk, mend it, and judge; what is told and judged is noted in another folder."""
    url, made = f"sqlite:///{disk}/log.db", Run()
    with (notes / "told").open("w+b") as told:
        say = sayer(told.fileno())
        code = injection.run(lambda: take_turns(url, say), decide)
        told.seek(0)
        lines = [line.decode().split() for line in told]
    if code != 0:
        made.faults.append(f"the child ended with {code}")
    made.acked = sum(line[0] == "acked" for line in lines)
    made.errors.update(
        line[WHERE_THE_NAME_IS[line[0]]] for line in lines if line[0] in WHERE_THE_NAME_IS
    )
    mend()
    with (notes / "judged").open("w+b") as judged:
        out = judged.fileno()
        code = injection.run(
            lambda: os.write(out, json.dumps(judge(url, lines)).encode()), lambda *_: 0
        )
        judged.seek(0)
        made.faults += json.load(judged) if code == 0 else [f"the judge ended with {code}"]
    return made
