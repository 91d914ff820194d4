"""`onrecord tail` shows what is there, and then each event as another process appends it."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from onrecord.transcript.events import DeliveryAttempted, TurnFinalized, UserMessageReceived
from onrecord.transcript.interchange import export_lines
from onrecord.transcript.log import TranscriptLog

SECONDS = 60
"""How long a child is waited for before the test is given up."""


class Tail:
    """A child that runs the command, and the lines that it prints, as they come."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.child = child
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self._lines.put(line)

    def line(self) -> str:
        return self._lines.get(timeout=SECONDS)

    def rest(self) -> list[str]:
        return [self._lines.get_nowait() for _ in range(self._lines.qsize())]


@contextmanager
def tail(url: str, *words: str) -> Iterator[Tail]:
    child = subprocess.Popen(
        [sys.executable, "-m", "onrecord.projections.cli", "--db", url, "tail", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        env={**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    try:
        yield Tail(child)
    finally:
        child.kill()
        child.communicate(timeout=SECONDS)


def say(log: TranscriptLog, session: str, text: str) -> None:
    log.append(session, UserMessageReceived(message=text, text=text))


def test_the_last_ones_and_then_each_that_comes(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        for n in range(4):
            say(log, "a", f"old {n}")
        with tail(each_url, "-n", "2") as shown:
            first = [shown.line(), shown.line()]
            say(log, "b", "new 1\n\x1b[31m\u202e")
            log.append("a", TurnFinalized(turn="old 0"))
            then = [shown.line(), shown.line()]

            assert ["old 2" in first[0], "old 3" in first[1]] == [True, True]
            assert "  b  UserMessageReceived  " in then[0]
            assert "new 1 \\x1b[31m\\u202e" in then[0]
            assert "  a  TurnFinalized  old 0  " in then[1]
            at = next(iter(log.read("b"))).recorded_at
            assert then[0].startswith(f"{at:%Y-%m-%d %H:%M:%S}Z")
            assert shown.rest() == []


def test_one_session_as_the_lines_of_an_export(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        for n in range(3):
            say(log, "a", f"old {n}")
            say(log, "b", f"other {n}")
        with tail(each_url, "a", "-n", "1", "--json") as shown:
            first = shown.line()
            say(log, "b", "other")
            log.append("a", DeliveryAttempted(delivery="d", text="new"))
            then = shown.line()

            assert [first, then] == [line + "\n" for line in export_lines(log, "a")][-2:]


def test_a_whole_log_may_be_followed_from_its_end_or_its_start(each_url: str) -> None:
    with TranscriptLog.open(each_url) as log:
        say(log, "a", "old")
        with tail(each_url, "-n", "0", "--json") as late, tail(each_url, "-n", "99") as early:
            assert "old" in early.line()  # and so the other, which began before, may follow too
            said: list[str] = []
            while not said:  # it follows from when it began: until then nothing is shown
                say(log, "a", f"new {log.version('a')}")
                said = late.rest()

            assert all(json.loads(line)["text"].startswith("new ") for line in said)


def test_ctrl_c_ends_it_as_all_commands(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    with TranscriptLog.open(url) as log:
        say(log, "a", "old")
        with tail(url) as shown:
            shown.line()
            shown.child.send_signal(signal.SIGINT)

            assert shown.child.wait(SECONDS) == 130
            assert shown.child.stderr is not None
            assert shown.child.stderr.read() == ""


def test_it_ends_when_nobody_reads_any_more_though_nothing_comes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    with TranscriptLog.open(url) as log:
        say(log, "a", "old")
    read, write = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-m", "onrecord.projections.cli", "--db", url, "tail"],
        stdout=write, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(write)
    assert os.read(read, 10)
    os.close(read)

    assert child.wait(SECONDS) == 2
    assert child.stderr is not None
    assert child.stderr.read() == b""
    child.stderr.close()


@pytest.mark.parametrize(
    ("words", "says"),
    [(["nobody"], "no session 'nobody'"), (["-n", "-1"], "greater than or equal to 0")],
)
def test_what_cannot_be_is_one_sentence(tmp_path: Path, words: list[str], says: str) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    TranscriptLog.open(url).close()

    with tail(url, *words) as shown:
        assert shown.child.wait(SECONDS) == 2
        assert shown.child.stderr is not None
        told = shown.child.stderr.read()

    assert says in told
    assert told.count("\n") == 1
