"""How fast turns are appended and read back, as one JSON object a line.

    python benchmarks/append_and_read.py [--turns N] [--folder FOLDER]

A turn is a user's message, an answer, its attempted delivery, the confirmation and the end. Each
figure is a rate of turns, the highest of three rounds; `floor` is a bare SQLite that commits as often.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from onrecord.projections.conversation import project
from onrecord.transcript.events import (
    AssistantMessageProduced,
    DeliveryAttempted,
    DeliveryConfirmed,
    Event,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage import dbapi

ROUNDS = 3
QUESTION, ANSWER = "q" * 80, "a" * 400


def turn(number: int) -> list[Event]:
    name = f"u{number}"
    return [
        UserMessageReceived(message=name, text=QUESTION),
        AssistantMessageProduced(turn=name, message=f"a{number}", text=ANSWER),
        DeliveryAttempted(turn=name, message=f"a{number}", delivery=f"d{number}", text=ANSWER),
        DeliveryConfirmed(delivery=f"d{number}"),
        TurnFinalized(turn=name, text=ANSWER),
    ]


def floor(path: Path, turns: int) -> None:
    """Insert as many texts as a turn has events, each in a transaction of its own."""
    connection = dbapi.connect(str(path), isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, payload BLOB)")
    for number in range(turns):
        for event in turn(number):
            text = getattr(event, "text", "") or ""
            connection.execute("INSERT INTO event (payload) VALUES (?)", (text.encode(),))
    connection.close()


def append_each(path: Path, turns: int) -> None:
    with TranscriptLog.open(path) as log:
        for number in range(turns):
            for event in turn(number):
                log.append("s", event)


def append_each_confirmations_unawaited(path: Path, turns: int) -> None:
    with TranscriptLog.open(path) as log:
        for number in range(turns):
            for event in turn(number):
                log.append("s", event, durable=not isinstance(event, DeliveryConfirmed))


def append_whole_turns(path: Path, turns: int) -> None:
    with TranscriptLog.open(path) as log:
        for number in range(turns):
            log.append("s", *turn(number))


def read_and_fold(path: Path, turns: int) -> None:
    with TranscriptLog.open(path, create=False) as log:
        rows = project(log.read("s"))
    assert len(rows) == 2 * turns


def rate(scenario: Callable[[Path, int], None], paths: list[Path], turns: int) -> float:
    """Return turns a second, the best round's."""
    best = 0.0
    for path in paths:
        started = time.perf_counter()
        scenario(path, turns)
        best = max(best, turns / (time.perf_counter() - started))
    return round(best, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure appending and reading turns.")
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--folder", type=Path, default=None, help="where the logs are written")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        written: list[Path] = []
        writers = (floor, append_each, append_each_confirmations_unawaited, append_whole_turns)
        for scenario in writers:
            written = [Path(folder, f"{scenario.__name__}-{n}.db") for n in range(ROUNDS)]
            _say(scenario.__name__, rate(scenario, written, options.turns), options.turns)
        _say(read_and_fold.__name__, rate(read_and_fold, written, options.turns), options.turns)


def _say(scenario: str, turns_per_second: float, turns: int) -> None:
    figures = {
        "scenario": scenario,
        "turns": turns,
        "turns_per_second": turns_per_second,
        "sqlite": ".".join(map(str, dbapi.VERSION)),
        "python": sys.version.partition(" ")[0],
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
