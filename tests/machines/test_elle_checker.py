"""The checker of histories takes a good one, and finds each kind of bad one."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

import pytest

from elle import Anomaly, History, Operation, Outcome, Seen, anomalies

SESSIONS = ("a", "b")
OPERATIONS = 120


def history(seed: int) -> History:
    """Return what clients of a perfect log do: appends, some of them retried or unclear, and reads."""
    source = random.Random(seed)
    made = History(sessions={session: [] for session in SESSIONS})
    waiting: tuple[str, tuple[str, ...]] | None = None
    for number in range(OPERATIONS):
        session, client, at = source.choice(SESSIONS), f"c{number % 3}", number * 10
        stands = made.sessions[session]
        if number % 4 == 3:
            ids = tuple(record.id for record in stands)
            made.operations.append(Operation(client, "read", session, ids, at, at + 15, "ok"))
            continue
        ids = tuple(f"{number}.{part}" for part in range(source.randint(1, 3)))
        if waiting is not None:
            (session, ids), waiting = waiting, None
        outcome: Outcome = source.choice(("ok", "ok", "ok", "fail", "unclear"))
        if outcome == "ok" or (outcome == "unclear" and number % 2):
            _write(made, session, ids)
        elif outcome == "fail":
            waiting = session, ids
        ended = None if outcome == "unclear" else at + 5
        made.operations.append(Operation(client, "append", session, ids, at, ended, outcome))
    made.followed = {"whole": list(made.everything), "too": list(made.everything)}
    return made


def _write(made: History, session: str, ids: tuple[str, ...]) -> None:
    for id in ids:
        stands = made.sessions[session]
        record = Seen(len(made.everything) * 2 + 1, session, len(stands) + 1, id)
        stands.append(record)
        made.everything.append(record)


def names(found: list[Anomaly]) -> set[str]:
    return {anomaly.name for anomaly in found}


def rebuilt(made: History, everything: list[Seen]) -> None:
    """Let these records stand, with versions and positions of their own, and be followed so."""
    made.sessions, made.everything = {session: [] for session in SESSIONS}, []
    for record in everything:
        _write(made, record.session, (record.id,))
    made.followed = {}


def acknowledged(made: History) -> list[Seen]:
    ids = {i for o in made.operations if o.kind == "append" and o.outcome == "ok" for i in o.ids}
    return [record for record in made.everything if record.id in ids]


def lost(made: History, source: random.Random) -> None:
    gone = source.choice(acknowledged(made))
    rebuilt(made, [record for record in made.everything if record != gone])


def duplicate(made: History, source: random.Random) -> None:
    rebuilt(made, [*made.everything, source.choice(made.everything)])


def resurrected(made: History, source: random.Random) -> None:
    at = OPERATIONS * 10
    made.operations.append(Operation("c9", "append", "a", ("failed",), at, at + 1, "fail"))
    _write(made, "a", ("failed",))


def phantom(made: History, source: random.Random) -> None:
    _write(made, "a", ("nobody's",))


def torn(made: History, source: random.Random) -> None:
    at = OPERATIONS * 10
    made.operations.append(Operation("c9", "append", "a", ("x", "y"), at, None, "unclear"))
    _write(made, "a", ("x",))


def reordered(made: History, source: random.Random) -> None:
    written = [o for o in made.operations if o.kind == "append" and o.outcome == "ok"]
    early = source.choice(written[len(written) // 2 :]).ids
    first = [record for record in made.everything if record.id in early]
    rebuilt(made, [*first, *(record for record in made.everything if record not in first)])


def stale_read(made: History, source: random.Random) -> None:
    reads = [n for n, o in enumerate(made.operations) if o.kind == "read" and len(o.ids) > 2]
    number = source.choice(reads)
    read = made.operations[number]
    made.operations[number] = dataclasses.replace(read, ids=read.ids[: len(read.ids) // 2])


def read_ahead(made: History, source: random.Random) -> None:
    ids = tuple(record.id for record in made.sessions["a"])
    made.operations.append(Operation("c9", "read", "a", ids, 0, 1, "ok"))


def no_prefix(made: History, source: random.Random) -> None:
    reads = [n for n, o in enumerate(made.operations) if o.kind == "read" and len(o.ids) > 2]
    number = source.choice(reads)
    read = made.operations[number]
    made.operations[number] = dataclasses.replace(read, ids=read.ids[1:])


def gap(made: History, source: random.Random) -> None:
    last = made.sessions["b"].pop()
    made.sessions["b"].append(dataclasses.replace(last, version=last.version + 1))


def missed(made: History, source: random.Random) -> None:
    made.followed["too"].pop(source.randrange(len(made.everything)))


def seen_twice(made: History, source: random.Random) -> None:
    at = source.randrange(len(made.everything))
    made.followed["too"].insert(at, made.everything[at])


def seen_out_of_order(made: History, source: random.Random) -> None:
    seen = made.followed["too"]
    at = source.randrange(len(seen) - 1)
    seen[at], seen[at + 1] = seen[at + 1], seen[at]


def seen_wrongly(made: History, source: random.Random) -> None:
    at = source.randrange(len(made.everything))
    made.followed["too"][at] = dataclasses.replace(made.everything[at], id="another")


Spoil = Callable[[History, random.Random], None]
SPOILS: tuple[Spoil, ...] = (
    lost, duplicate, resurrected, phantom, torn, reordered, stale_read, read_ahead, no_prefix, gap,
    missed, seen_twice, seen_out_of_order, seen_wrongly,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_a_good_history_is_taken(seed: int) -> None:
    made = history(seed)

    assert anomalies(made) == []
    assert {"ok", "fail", "unclear"} == {done.outcome for done in made.operations}


@pytest.mark.parametrize("spoil", SPOILS)
@pytest.mark.parametrize("seed", range(20))
def test_an_anomaly_is_found(seed: int, spoil: Spoil) -> None:
    made = history(seed)

    spoil(made, random.Random(seed))

    assert spoil.__name__.replace("_", " ") in names(anomalies(made))
