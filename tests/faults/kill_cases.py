"""Which kills are tried of a kind of turn, and where the logs stand."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from kill_harness import Case, Run, Stage
from postgres_server import Server
from psycopg import sql

KILLED_IN_RECOVERY = (
    Case("streamed", ("answer-durable", "recovery-sending")),
    Case("whole", ("answer-durable", "recovery-sending")),
    Case("whole", ("markup-refused", "recovery-sending")),
    Case("split", ("between-parts", "recovery-sending")),
    Case("split", ("retry-after", "recovery-sending")),
    Case("split", ("answer-durable", "recovery-sending:2")),
    Case("edited", ("attempted:3", "recovery-sending")),
    Case("tool", ("answer-durable", "recovery-sending")),
)


def at_failpoints(here: Stage, style: str) -> list[Case]:
    """Return a kill at each failpoint that an undisturbed turn comes by, each time that it does."""
    run = Run(here, Case(style, ()))
    run.say(f"Tell me, {style}")
    counted = run.folder / "count"
    assert run.begin(count=str(counted)).wait() == 0, run.errors()
    came_by: dict[str, int] = json.loads(counted.read_text(encoding="utf-8"))
    return [
        Case(style, (f"{name}:{number + 1}",))
        for name, times in came_by.items()
        for number in range(times)
        # A stopped sender wakes up and sends what a lookup didn't find: no lease can hold a socket.
        if (style, name) != ("looked up", "stopped")
    ]


@contextmanager
def schemas(server: Server) -> Iterator[Callable[[Path], str]]:
    """Give what makes room for one more log: a schema of its own, in one database for all."""
    numbers = itertools.count(1)

    def another(_: Path) -> str:
        name = f"log_{next(numbers)}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        return f"{url}&options=-csearch_path%3D{name}"

    with server.database() as url:
        yield another
