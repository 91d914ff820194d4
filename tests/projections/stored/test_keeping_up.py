"""Stored projections keep up with the log: by a runner, several of them, and anew beside what is read."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from onrecord.projections.stored import AsyncStoredProjections, Runner, StoredProjections
from onrecord.projections.transcript import build
from onrecord.transcript.events import (
    DeliveryAttempted,
    TurnFinalized,
    UserMessageEdited,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

LIMIT = 30.0
"""Seconds that a runner may take to keep up."""


def say(log: TranscriptLog, session: str, *numbers: int) -> None:
    log.append(session, *(UserMessageReceived(message=f"m{n}", text="hi") for n in numbers))


def onrecord(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from onrecord.projections.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, "--db", f"sqlite:///{path}", *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


class Running:
    """A runner in a thread."""

    def __init__(self, log: TranscriptLog) -> None:
        self.runner = Runner(log)
        self.thread = threading.Thread(target=self.runner.run)

    def __enter__(self) -> Runner:
        self.thread.start()
        return self.runner

    def __exit__(self, *_: object) -> None:
        self.runner.stop()
        self.thread.join(LIMIT)
        assert not self.thread.is_alive()


def keeps_up(log: TranscriptLog) -> bool:
    """Wait until nothing is behind that isn't set aside as failed."""
    stored = StoredProjections(log)
    ended = time.monotonic() + LIMIT
    while time.monotonic() < ended:
        if not stored.behind():
            return True
        time.sleep(0.01)
    return False


def test_a_runner_follows_the_log(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        say(log, "before", 1, 2, 3)
        with Running(log) as runner:
            assert keeps_up(log)
            for n in range(20):
                say(log, f"s{n % 4}", n)

            assert keeps_up(log)
            ended = time.monotonic() + LIMIT
            while runner.position < log.last_position() and time.monotonic() < ended:
                time.sleep(0.01)
            assert runner.position == log.last_position()
        assert list(StoredProjections(log).check()) == []


def test_two_runners_share_the_work(tmp_path: Path) -> None:
    with (
        TranscriptLog.open(tmp_path / "log.db") as log,
        TranscriptLog.open(tmp_path / "log.db") as other,
        Running(log),
        Running(other),
    ):
        for n in range(60):
            say(log, f"s{n % 6}", n)

        assert keeps_up(log)
        assert list(StoredProjections(log).check()) == []


def test_a_record_that_is_damaged_stops_no_runner(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        say(log, "bad", 1, 2)
        with log.database.write() as connection:
            connection.execute("DROP TRIGGER records_update")
            connection.execute("UPDATE records SET payload = x'c1' WHERE version = 1")

        with Running(log):
            say(log, "good", 1)

            assert keeps_up(log)
        found = StoredProjections(log).findings("bad")
        assert [finding.code for finding in found] == ["record-set-aside"]


def test_a_runner_goes_on_after_an_error(tmp_path: Path) -> None:
    with (
        TranscriptLog.open(tmp_path / "log.db", busy_timeout=0.05) as log,
        TranscriptLog.open(tmp_path / "log.db") as other,
        Running(log),
    ):
        say(other, "s", 1)
        with other.database.write():
            time.sleep(0.5)  # longer than the runner waits for the lock
        say(other, "s", 2)

        assert keeps_up(other)


def test_a_rebuild_tells_its_progress_and_leaves_one_build(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        for n in range(40):
            say(log, f"s{n}", *range(60))
        stored = StoredProjections(log)
        stored.catch_up("s0")
        told: list[tuple[int, int]] = []

        done = stored.rebuild(lambda *at: told.append(at), jobs=2)

        assert done == 2400
        assert told[0] == (0, 2400)
        assert told[-1] == (2400, 2400)
        assert stored.behind() == []
        assert _count(log, "projection_builds") == 1
        assert _count(log, "projected_sessions") == 40
        assert stored.transcript("s7") == build(log, "s7")


def test_others_are_read_while_one_is_folded(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        say(log, "long", 1)
        say(log, "short", 1)
        stored = StoredProjections(log)
        held = stored._projecting()._lock("long")
        answered: list[int] = []
        others = [name for name in map(str, range(99)) if stored._projecting()._lock(name) != held]
        say(log, others[0], 1)

        with held:  # as by a fold that takes long
            asking = threading.Thread(target=lambda: answered.append(stored.catch_up(others[0])))
            asking.start()
            asking.join(LIMIT)

        assert answered == [1]


def test_what_was_sent_is_told_beside_a_rebuild(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        for n in range(200):
            log.append("s", DeliveryAttempted(delivery=f"d{n}", text="x"))
        stored, other = StoredProjections(log), StoredProjections(log)
        stored.catch_up("s")
        rebuilding = threading.Thread(target=lambda: [other.rebuild() for _ in range(5)])
        rebuilding.start()
        told = set()
        while rebuilding.is_alive():
            told.add(len(stored.deliveries("s")))
        rebuilding.join()

        assert told == {200}


def test_an_event_loop_asks_too(tmp_path: Path) -> None:
    async def ask(log: TranscriptLog) -> None:
        stored = AsyncStoredProjections(log)
        await log.aio.append("s", UserMessageReceived(message="m1", text="hi"))

        assert (await stored.transcript("s", last=5)).rows == build(log, "s").rows
        assert await stored.deliveries("s") == []
        assert await stored.findings("s") == []

    with TranscriptLog.open(tmp_path / "log.db") as log:
        asyncio.run(ask(log))


@pytest.mark.parametrize("last", [1, 2, 7, 40])
def test_the_last_rows_are_the_last_whole_turns(tmp_path: Path, last: int) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        for n in range(20):
            say(log, "s", n)
            log.append("s", TurnFinalized(turn=f"m{n}"))
        stored = StoredProjections(log)

        rows = stored.transcript("s", last=last).rows

        whole = build(log, "s").rows
        assert rows == whole[-len(rows) :]
        assert last <= len(rows) <= last + 1
        assert rows[0].role == "user"


def test_a_session_without_a_cut_is_folded_once(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        say(log, "s", 0)
        for n in range(1, 60):
            say(log, "s", n)
            log.append("s", UserMessageEdited(message="m0", text=f"{n}"))
        stored = StoredProjections(log)

        assert stored.transcript("s") == build(log, "s")
        places = log.database.read(
            "asking",
            lambda c: c.execute("SELECT place FROM projected_turns WHERE clean = 1").fetchall(),
        )
        assert [tuple(row) for row in places] == [(0,)]
        log.append("s", UserMessageEdited(message="m0", text="again"))
        assert stored.transcript("s") == build(log, "s")


def test_two_rebuilds_at_once_leave_one_build(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        for n in range(30):
            say(log, f"s{n}", *range(20))
        done: list[int] = []
        rebuilding = [
            threading.Thread(target=lambda: done.append(StoredProjections(log).rebuild()))
            for _ in range(3)
        ]
        for thread in rebuilding:
            thread.start()
        for thread in rebuilding:
            thread.join()

        assert done == [600] * 3
        StoredProjections(log).rebuild()
        assert _count(log, "projection_builds") == 1
        assert list(StoredProjections(log).check()) == []


def test_others_go_on_in_the_new_build(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        say(log, "s", 1)
        mine, others = StoredProjections(log), StoredProjections(log)
        others.catch_up("s")

        mine.rebuild()
        say(log, "s", 2)
        say(log, "new", 1)

        assert others.transcript("s") == build(log, "s")
        assert others.transcript("new") == build(log, "new")
        assert _count(log, "projection_builds") == 1


def _count(log: TranscriptLog, table: str) -> Any:
    statement = f"SELECT count(*) FROM {table}"
    return log.database.read("counting", lambda c: c.execute(statement).fetchone()[0])


@pytest.mark.parametrize("json_wanted", [False, True])
def test_the_commands_say_what_they_did(tmp_path: Path, json_wanted: bool) -> None:
    path = tmp_path / "log.db"
    wanted = ["--json"] if json_wanted else []
    with TranscriptLog.open(path) as log:
        say(log, "s", 1, 2)

        built = onrecord(path, "rebuild", *wanted)
        sound = onrecord(path, "check", *wanted)
        with log.database.write() as connection:
            connection.execute("UPDATE projected_turns SET rows = x'90' WHERE place = 0")
        broken = onrecord(path, "check", "s", *wanted)

    assert (built.returncode, sound.returncode, broken.returncode) == (0, 0, 1), built.stderr
    if json_wanted:
        assert json.loads(built.stdout) == {"records": 2, "sessions": 1}
        assert json.loads(sound.stdout) == {"faults": [], "sessions": 1, "behind": []}
        assert [fault["turn"] for fault in json.loads(broken.stdout)["faults"]] == ["m1"]
    else:
        assert built.stdout == "projected 2 records of 1 session\n"
        assert "m1" in broken.stdout
        assert "onrecord rebuild" in broken.stdout
