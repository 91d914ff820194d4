"""The gateway's log: which messages came in, which answers were ready and how long, what was sent.

It keeps 80 characters of a message and only the length of an answer. Line formats of hermes-agent
0.19.0: hermes_logging.py (_LOG_FORMAT), gateway/run.py (`inbound message:`, `response ready:`),
gateway/platforms/base.py (`Sending response`, and what became of a send). Times are the machine's local
ones, without a zone; here they are µs since 1970 as if it were UTC, until `sent` finds the zone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from onrecord.transcript.importers.rows import Outcome

PREVIEW = 80
"""Characters of a message that the log keeps."""
LINE_LIMIT = 1 << 20
"""Bytes of a line that are read; the rest of a longer one is skipped."""
EXCHANGES_LIMIT = 500_000
"""Messages of which the log is read; of a longer log those before are left out."""
TOGETHER = 1_500_000
"""µs by which a line's own duration may miss the line that it was measured from."""

_LINE = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) [A-Z]+(?: \[[^\]]*\])? (gateway\.[\w.]+): (.*)",
    re.DOTALL,
)
_INBOUND = re.compile(
    r"inbound message: platform=(\S*) user=(.*?) chat=(.*?) msg=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
)
_READY = re.compile(
    r"response ready: platform=(\S*) chat=(.*?) time=([\d.]+)s api_calls=\d+ response=(\d+) chars"
)
_SENDING = re.compile(r"\[(.*?)\] Sending response \((\d+) chars\) to (.*)")
_FAILED = re.compile(
    r"\[(.*?)\] (?:Failed to deliver response after|Fallback send also failed)(.*)", re.DOTALL
)
_HELD_BACK = re.compile(
    r"(?:\[.*?\] )?(?:Suppressing stale response for|Suppressing intentional silence marker for|"
    r".*response_delivery_dropped:)"
)
_STREAMED = re.compile(
    r"Suppressing normal final send for session (.*): final delivery already confirmed"
)
_START = "Starting Hermes Gateway"


@dataclass(slots=True)
class Line:
    """When a line was written, and where it stands now. A rotated file has another name tomorrow."""

    at: int
    said: str
    file: str
    number: int

    @property
    def key(self) -> str:
        """Return what finds the line in any of the files, whatever it is called by then."""
        return f"gateway.log {self.said}"

    @property
    def place(self) -> str:
        """Return where it stands, for people."""
        return f"{self.file}:{self.number}"


@dataclass(slots=True)
class Exchange:
    """A message that came in, and what the log says of its answer.

    `length`: of the answer (characters), `shown`: of what was sent; `outcome`: of the sending;
    `streamed`: the user had it before it was ready; `held_back`: it wasn't to be sent; `cut`: the
    gateway ended before there was an answer; `going_on`: what comes of it isn't logged yet.
    """

    platform: str
    chat: str
    user: str
    preview: str
    came: Line
    ready: Line | None = None
    length: int = 0
    sending: Line | None = None
    shown: int = 0
    outcome: Outcome = "delivered"
    reason: str = ""
    cut: bool = False
    held_back: bool = False
    streamed: bool = False
    going_on: bool = False


@dataclass(slots=True)
class _State:
    exchanges: list[Exchange] = field(default_factory=list)
    open: dict[tuple[str, str], list[Exchange]] = field(default_factory=dict)
    ready: Exchange | None = None  # the last one that was said to be ready
    sending: dict[str, Exchange] = field(default_factory=dict)  # by the adapter's name
    streamed: list[str] = field(default_factory=list)  # keys of sessions whose answer was streamed
    last: Exchange | None = None  # the one that the last line is of


def files_beside(folder: Path) -> list[Path]:
    """Return the log's files of a HERMES_HOME, or beside a database, the oldest first."""
    for place in (folder / "logs", folder):
        found = [file for file in place.glob("gateway.log*") if _age(file) is not None]
        if found:
            return sorted(found, key=lambda file: _age(file) or 0, reverse=True)
    return []


def _age(file: Path) -> int | None:
    """Return how often a file of the log was rotated, None for one that is no such file."""
    if not file.is_file():
        return None
    if file.name == "gateway.log":
        return 0
    end = file.name.removeprefix("gateway.log.")
    return int(end) if end.isdecimal() else None


def read(files: list[Path], *, ended: bool = False) -> list[Exchange]:
    """Return the exchanges of a log, in their order. `ended`: the gateway doesn't run any more."""
    state = _State()
    for line, name, text in _lines(files):
        _take(state, line, name, text)
        if len(state.exchanges) > EXCHANGES_LIMIT:
            del state.exchanges[: EXCHANGES_LIMIT // 2]
    _doubt(state.last)
    if ended:
        _cut(state)
    elif state.last is not None:
        state.last.going_on = not state.last.streamed
    return state.exchanges


def _lines(files: list[Path]) -> Iterator[tuple[Line, str, str]]:
    for path in files:
        number = 0
        with path.open("rb") as file:
            while data := file.readline(LINE_LIMIT):
                number += data.endswith(b"\n")
                if b" gateway." not in data[:200] or not data.endswith(b"\n"):
                    continue
                found = _LINE.match(data.decode("utf-8", "replace").rstrip("\r\n"))
                if found is None:
                    continue
                said, name, text = found.groups()
                try:
                    moment = datetime.strptime(said, "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
                except ValueError:
                    continue
                at = round(moment.timestamp() * 1_000) * 1_000
                yield Line(at, said, path.name, number), name, text


def _take(state: _State, line: Line, name: str, text: str) -> None:
    """Take a line in."""
    before, state.last = state.last, None
    if text.startswith(_START):
        _doubt(before)
        _cut(state)
    elif name == "gateway.run" and (found := _INBOUND.match(text)):
        platform, user, chat, preview = found.groups()
        exchange = Exchange(platform, chat, user, _unquoted(preview), line)
        state.exchanges.append(exchange)
        state.open.setdefault((platform, chat), []).append(exchange)
        state.last = exchange
    elif name == "gateway.run" and (found := _READY.match(text)):
        _ready(state, line, *found.groups())
    elif found := _SENDING.match(text):
        _sending(state, line, *found.groups())
    elif found := _FAILED.match(text):
        sending = state.sending.pop(found[1], None)
        if sending is not None:
            sending.outcome, sending.reason = _failed(found[2])
    elif found := _STREAMED.match(text):
        state.streamed.append(found[1])
    elif _HELD_BACK.match(text) and state.ready is not None and state.ready.sending is None:
        state.ready.held_back = True


def _ready(state: _State, line: Line, platform: str, chat: str, took: str, length: str) -> None:
    waiting = state.open.get((platform, chat), [])
    began = line.at - round(float(took) * 1_000_000)
    exchange = min(waiting, key=lambda one: abs(one.came.at - began), default=None)
    if exchange is None or abs(exchange.came.at - began) > TOGETHER:
        # Its message came in before the log begins, or isn't logged.
        exchange = Exchange(platform, chat, "", "", Line(began, line.said, line.file, line.number))
        state.exchanges.append(exchange)
    else:
        # What came in before it has had its chance: a chat is answered in turn.
        waiting.remove(exchange)
    exchange.ready, exchange.length = line, int(length)
    streamed = [key for key in state.streamed if f":{platform}:" in key and f":{chat}" in key]
    if streamed:
        state.streamed.remove(streamed[0])
        exchange.streamed = True
    state.ready = state.last = exchange


def _sending(state: _State, line: Line, adapter: str, length: str, chat: str) -> None:
    exchange = state.ready
    if exchange is None or exchange.chat != chat or exchange.sending is not None:
        exchange = next(
            (
                one
                for one in reversed(state.exchanges[-200:])
                if one.chat == chat and one.ready is not None and one.sending is None
            ),
            None,
        )
    if exchange is None:
        return
    exchange.sending, exchange.shown = line, int(length)
    state.sending[adapter] = state.last = exchange


def _cut(state: _State) -> None:
    """The gateway is gone, or was started anew: what it was at is cut."""
    for waiting in state.open.values():
        for exchange in waiting:
            exchange.cut = True
    for kept in (state.open, state.sending, state.streamed):
        kept.clear()
    state.ready = None


def _doubt(exchange: Exchange | None) -> None:
    """Nothing was logged by the gateway after an answer was ready or began to go out: it may not have."""
    if exchange is not None and exchange.ready is not None and not exchange.streamed:
        exchange.outcome, exchange.reason = "in_doubt", "the gateway logged nothing after it"


def _failed(reason: str) -> tuple[Outcome, str]:
    """Return the outcome of a send that is logged as failed: after a timeout nobody knows."""
    reason = reason.lstrip(": ")
    return ("in_doubt" if is_timeout(reason) else "failed"), reason


def is_timeout(reason: str) -> bool:
    """Tell whether a send's error is a timeout (gateway/platforms/base.py: _is_timeout_error)."""
    lowered = reason.lower()
    return "timed out" in lowered or "readtimeout" in lowered or "writetimeout" in lowered


def _unquoted(preview: str) -> str:
    try:
        found = ast.literal_eval(preview)
    except (ValueError, SyntaxError):
        return preview[1:-1]
    return found if isinstance(found, str) else preview[1:-1]
