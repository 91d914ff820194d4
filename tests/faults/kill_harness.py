"""What the kill tests stand on: a model, a platform and gateways, and what must hold after a kill."""

from __future__ import annotations

import json
import os
import queue
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from kill_rows import broken_rows

from onrecord.gateway.demo import bot
from onrecord.gateway.demo.chat import Client
from onrecord.gateway.demo.ledger import read_ledger
from onrecord.gateway.demo.processes import Server, server
from onrecord.gateway.recovery import Recovery
from onrecord.projections.findings import findings
from onrecord.projections.rows import Row
from onrecord.projections.transcript import build
from onrecord.transcript.events import DeliveryAttempted, StreamChunkDelivered
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.verify import verify

TOKEN = "only-for-this-machine"
PLACEHOLDER = "…"
NEXT = "and what then?"
NEXT_ANSWER = "Then you are there; enjoy it ☾"
WAIT_SECONDS = 60.0
KILLED = -int(signal.SIGKILL)
SESSION = "chat"

SCRIPT: dict[str, list[list[dict[str, Any]]]] = {
    "streamed": [
        [{"text": t} for t in ("The ferry leaves ", "at nine 🚢 from ", "pier four, ", "sharp ☀")]
    ],
    "whole": [[{"text": "Take *bus 12* "}, {"text": "to the (old) harbour; it's 4.50!"}]],
    "looked up": [[{"text": "The gate is open until ten."}]],
    "split": [
        [
            {"text": "First you walk along the quay until you see the lighthouse. "},
            {"text": "Then you cross the yellow bridge, slowly, it is slippery. "},
            {"text": "Last you ask for Marta, who has the key 🗝️ to the shed."},
        ]
    ],
    "edited": [[{"text": t} for t in ("The market is ", "on Tuesday, ", "in the square.")]],
    "tool": [
        [
            {"text": "Let me book that for you."},
            {"tool": "book", "call": "call_1", "arguments": '{"table": 2}'},
        ],
        [{"text": "Done: a table for two, at eight."}],
    ],
    "broken": [[{"text": "The code of "}, {"text": "the gate is four seven"}, {"cut": True}]],
    NEXT: [[{"text": NEXT_ANSWER}]],
}

STYLES: dict[str, dict[str, Any]] = {
    "streamed": {"streaming": "chunks"},
    "whole": {"streaming": "whole", "formats": ("markdown", None)},
    "split": {"streaming": "whole", "limit": 64},
    "edited": {
        "streaming": "edit",
        "placeholder": PLACEHOLDER,
        "corrections": {"Tuesday": "Wednesday"},
    },
    "tool": {"streaming": "whole"},
    "looked up": {"streaming": "whole", "lookup": True},
    "broken": {"streaming": "edit"},
}

RULES: dict[str, dict[str, Any]] = {
    "whole": {"refuse_markup": True},
    "split": {"rate_limit": 1, "retry_after": 0.1, "first": 2},
}


class Start(msgspec.Struct):
    """A gateway to start. `errors`: where its standard error goes.

    `count`: a file for how often it came by each failpoint. `gate`: a FIFO that it reads a byte from
    before it begins, so that a tracer can be attached.
    """

    name: str
    setting: bot.Setting
    failpoint: str = ""
    errors: str = os.devnull
    count: str = ""
    gate: str = ""


@dataclass(frozen=True)
class Case:
    """A turn to be killed. `kills`: the failpoints of the first gateway, the second, …."""

    style: str
    kills: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.style} at {', '.join(self.kills)}"


@dataclass
class Verdict:
    """What came of a case. `faults`: what should have held and didn't."""

    case: Case
    killed: int = 0
    lost: int = 0
    duplicated: int = 0
    ledger_lost: int = 0
    faults: list[str] = field(default_factory=list)


def in_a_file(folder: Path) -> str:
    """Return the URL of a log in the folder."""
    return f"sqlite:///{folder}/log.db"


class Stage:
    """The model, the platform and the gateways, for many cases at once.

    `log`: gives the URL of an empty log, for a case with a folder.
    """

    def __init__(self, folder: Path, log: Callable[[Path], str]) -> None:
        self.folder, self.log = folder, log
        script = folder / "script.json"
        script.write_text(json.dumps(SCRIPT), encoding="utf-8")
        self._book = folder / "platform.jsonl"
        self._model = server("model", TOKEN, str(script))
        self._platform = server("platform", TOKEN, str(self._book))
        self.model_port = self._model.port()
        self.client = Client(self._platform.port(), TOKEN)
        children = Path(__file__).with_name("kill_children.py")
        self._children = Server(TOKEN, str(children), str(self.model_port))
        self._waiting: dict[str, queue.Queue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self._count = 0

    def close(self) -> None:
        """End all processes."""
        for process in (self._children, self._model, self._platform):
            process.close()
        self._reader.join()

    def _read(self) -> None:
        for line in iter(self._children.stdout.readline, b""):
            said = json.loads(line)
            self._waiting[said["name"]].put(said)

    def start(self, start: Start) -> Child:
        """Start a gateway."""
        with self._lock:
            self._count += 1
            name = start.name = f"{start.name}#{self._count}"
            answers = self._waiting[name] = queue.Queue()
            self._children.stdin.write(msgspec.json.encode(start) + b"\n")
            self._children.stdin.flush()
        return Child(answers.get(timeout=WAIT_SECONDS)["pid"], answers)

    def held(self, chat: str) -> list[str]:
        """Return what the platform holds of the gateway's messages, by its own file."""
        messages: dict[str, str] = {}
        with self._book.open(encoding="utf-8", errors="surrogatepass") as lines:
            for line in lines:
                entry = json.loads(line) if line.endswith("\n") else {}
                if entry.get("chat") == chat and entry["op"] in ("send", "edit"):
                    messages[entry["message"]] = entry["text"]
        return list(messages.values())


@dataclass(frozen=True)
class Child:
    """A gateway that runs."""

    pid: int
    answers: queue.Queue[dict[str, Any]]

    def wait(self) -> int:
        """Return its exit code, negative for a signal."""
        return int(self.answers.get(timeout=WAIT_SECONDS)["status"])

    def wait_until_stopped(self) -> None:
        """Return once a signal has stopped it. Raise TimeoutError."""
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            state = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
            if state.split()[0] == "T":
                return
            time.sleep(0.005)
        raise TimeoutError(f"process {self.pid} didn't stop")


@contextmanager
def stage(log: Callable[[Path], str] = in_a_file) -> Iterator[Stage]:
    """Give a stage, and end its processes."""
    # A kill leaves the memory of the system alone, so that files in memory show as much as on disk.
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="onrecord-kill-", dir=where) as folder:
        here = Stage(Path(folder), log)
        try:
            yield here
        finally:
            here.close()


class Run:
    """One case on a stage, with a chat and a log of its own."""

    def __init__(self, stage: Stage, case: Case) -> None:
        self.stage, self.case = stage, case
        self.chat = f"{case}/{os.urandom(4).hex()}"
        self.folder = stage.folder / self.chat.replace("/", "-").replace(" ", "-")
        self.folder.mkdir()
        self.setting = bot.Setting(
            log=stage.log(self.folder), session=SESSION, chat=self.chat,
            platform_port=stage.client.port, model_port=stage.model_port,
            ledger=str(self.folder / "ledger.jsonl"), bookings=str(self.folder / "bookings.jsonl"),
            **STYLES[case.style],
        )  # fmt: skip
        self.verdict = Verdict(case)
        rules = RULES.get(case.style, {})
        stage.client.post("/rules", {"chat": self.chat, "rules": rules})

    def say(self, text: str) -> None:
        """Let the user say something."""
        self.stage.client.post("/say", {"chat": self.chat, "text": text})

    def begin(self, failpoint: str = "", **about: str) -> Child:
        """Start a gateway."""
        errors = str(self.folder / "stderr")
        return self.stage.start(Start(self.chat, self.setting, failpoint, errors, **about))

    def errors(self) -> str:
        """Return the end of what the gateways said on standard error."""
        return (self.folder / "stderr").read_text(encoding="utf-8")[-1500:]

    def finish(self, *, doing: str) -> None:
        """Run a gateway that nothing happens to."""
        code = self.begin().wait()
        if code != 0:
            self.fault(f"{doing}: the gateway ended with {code}: {self.errors()}")

    def fault(self, what: str) -> None:
        """Note what should have held."""
        self.verdict.faults.append(what)

    def records(self) -> list[Recorded]:
        """Return the session's records."""
        with TranscriptLog.open(self.setting.log) as log:
            return list(log.read(SESSION))

    def judge(self, *, turns: int, doubt: bool = False) -> None:
        """Hold the transcript against the platform, now that recovery is through.

        `doubt`: a message was under way when the gateway died, so that a doubt must be said.
        """
        with TranscriptLog.open(self.setting.log) as log:
            before = log.version(SESSION)
            plans = Recovery(log, self.setting.owner).plans()
            if plans or log.version(SESSION) != before:
                self.fault(f"recovery once more finds {plans}, {log.version(SESSION) - before} new")
            rows = build(log, SESSION, full=True).rows
            if verify(log).first_fault is not None:
                self.fault(f"the evidence doesn't hold: {verify(log).first_fault}")
            found = findings(SESSION, log.read(SESSION))
        held = [t for t in self.stage.held(self.chat) if t not in (PLACEHOLDER, bot.BROKEN)]
        said = [row.text for row in rows if row.role == "assistant" and row.origin != "synthetic"]
        self.verdict.lost += lost(held, said)
        self.verdict.duplicated += duplicated(held, said, rows)
        remembered = [t for role, t in read_ledger(Path(self.setting.ledger)) if role != "user"]
        self.verdict.ledger_lost = lost(held, remembered)
        again = [text for text, times in Counter(held).items() if times > 1]
        if again:
            self.fault(f"sent again in silence: {again}")
        if [row.role for row in rows if row.role == "user"] != ["user"] * turns:
            self.fault(f"{turns} messages were said: {rows}")
        for fault in alternation(rows):
            self.fault(f"{fault}: {rows}")
        doubtful = [row for row in rows if row.delivery == "in_doubt"]
        said_so = any(finding.code == "delivery-in-doubt" for finding in found)
        if bool(doubtful) != said_so or (doubt and not said_so):
            self.fault(f"doubt: {doubt}, rows in doubt: {doubtful}, but the audit says {found}")
        bookings = Path(self.setting.bookings)
        if bookings.exists() and len(bookings.read_bytes().splitlines()) > 1:
            self.fault("the tool ran twice")


def kill_at_failpoints(run: Run) -> Child | None:
    """Run a gateway to each of the case's failpoints; return one that is stopped and not dead."""
    stopped: Child | None = None
    for failpoint in run.case.kills:
        child = run.begin(failpoint)
        if failpoint.startswith("stopped"):
            stopped = child
            child.wait_until_stopped()
        else:
            code, expected = child.wait(), 0 if failpoint.startswith("terminated") else KILLED
            if code != expected:
                run.fault(f"at {failpoint} the gateway ended with {code}: {run.errors()}")
        run.verdict.killed += 1
    return stopped


def run_case(
    stage: Stage, case: Case, kill: Callable[[Run], Child | None] = kill_at_failpoints
) -> Verdict:
    """Kill a turn, recover, recover again, and take the next turn."""
    run = Run(stage, case)
    run.say(f"Tell me, {case.style}")
    stopped = kill(run)
    before = run.records()
    doubt = in_doubt(before) and not run.setting.lookup
    run.finish(doing="recovery")
    run.judge(turns=1, doubt=doubt)
    for fault in broken_rows(case.style, case.kills[-1], before, run.records()):
        run.fault(fault)
    if stopped is not None:
        os.kill(stopped.pid, signal.SIGCONT)
        stopped.wait()
        run.judge(turns=1)
    run.finish(doing="recovery once more")
    run.say(NEXT)
    run.finish(doing="the next turn")
    run.judge(turns=2, doubt=doubt and stopped is None)
    with TranscriptLog.open(run.setting.log) as log:
        last = build(log, SESSION).rows[-1]
    if (last.text, last.delivery) != (NEXT_ANSWER, "delivered"):
        run.fault(f"the next turn ends in {last}")
    return run.verdict


def lost(held: Sequence[str], said: Sequence[str]) -> int:
    """Return how many characters of what the platform holds stand nowhere in a transcript."""
    return sum(len(t) for t in held if not any(t.strip() in text for text in said))


def duplicated(held: Sequence[str], said: Sequence[str], rows: Sequence[Row]) -> int:
    """Return how many texts stand in a transcript more than once."""
    twice = sum(sum(text.count(t.strip()) for text in said) > 1 for t in set(held))
    asked = Counter(row.message or row.text for row in rows if row.role == "user")
    whole = Counter(text.strip() for text in said)
    return twice + sum(n > 1 for n in asked.values()) + sum(n > 1 for n in whole.values())


def alternation(rows: Sequence[Row]) -> Iterator[str]:
    """Say where roles don't alternate: user, assistant, its results, assistant, user …."""
    if rows and rows[0].role != "user":
        yield "the first row isn't a user's"
    for one, other in pairwise(rows):
        if one.role == other.role and one.role == "user":
            yield "a user row after a user row"
        if one.role == "tool" and other.role == "user":
            yield "a user row after a tool row"
        if other.role == "tool" and not (one.tool_calls or one.role == "tool"):
            yield "a result without its call"
        # A reply that was changed by an edit stands in two rows while the change is in doubt.
        also_seen = "in_doubt" in (one.delivery, other.delivery)
        if one.role == other.role == "assistant" and not one.tool_calls and not also_seen:
            yield "an assistant row after an assistant row"
    if rows and rows[-1].role != "assistant":
        yield "the last row isn't an assistant's"


def in_doubt(records: Sequence[Recorded]) -> bool:
    """Tell whether a message (not an edit) went out, or was about to, and nothing says how it went."""
    last = None
    for record in records:
        event = record.event
        if isinstance(event, DeliveryAttempted) and event.kind == "answer":
            last = event
        elif last is not None and getattr(event, "delivery", None) == last.delivery:
            whole = not isinstance(event, StreamChunkDelivered) or event.through > last.offset
            last = None if whole else last
    return last is not None and last.op != "edit"
