"""The demo's plot: what happens, in which order, and what is left of it on all sides."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from onrecord.gateway.demo.bot import BROKEN, Setting
from onrecord.gateway.demo.chat import Client
from onrecord.gateway.demo.ledger import read_ledger
from onrecord.gateway.demo.loopback import TOKEN_VARIABLE
from onrecord.gateway.demo.processes import server
from onrecord.projections.findings import Finding, findings
from onrecord.projections.rows import Row
from onrecord.projections.transcript import build
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.verify import verify

CHAT = "demo"
SESSION = "demo"
STEP_LIMIT_SECONDS = 15.0
POLL_SECONDS = 0.01
WORD_SECONDS = 0.03

QUESTIONS = (
    "When does the ferry leave?",
    "What do I need on board?",
    "I'm there. Which pier was it again?",
)
SCRIPT: dict[str, list[list[dict[str, Any]]]] = {
    QUESTIONS[0]: [
        [
            {"text": "The ferry leaves "},
            {"text": "at nine sharp, ", "wait": WORD_SECONDS},
            {"text": "from pier four; ", "wait": WORD_SECONDS},
            {"text": "the crossing takes ", "wait": WORD_SECONDS},
            {"wait": WORD_SECONDS, "cut": True},
        ]
    ],
    QUESTIONS[1]: [
        [
            {"text": "Your ticket, a warm coat and cash for the café. "},
            {"text": "And be there by half past eight.", "wait": WORD_SECONDS},
        ]
    ],
    QUESTIONS[2]: [[{"text": "Pier four, "}, {"text": "as I said. Bon voyage!"}]],
}


@dataclass(frozen=True)
class Message:
    """A message that the platform holds, as it reads now."""

    role: str
    text: str
    notice: bool = False


@dataclass(frozen=True)
class Ending:
    """What is left when the play is over.

    `platform`: what the chat shows; `ledger`: (role, text) that a store at the end of the turn saved;
    `rows`, `findings`, `records` and `fault` (in the evidence, if any): the log's side.
    """

    platform: list[Message]
    ledger: list[tuple[str, str]]
    rows: list[Row]
    findings: list[Finding]
    records: int
    fault: str
    seconds: float


@contextmanager
def performed_in(keep: Path | None) -> Iterator[Path]:
    """Give the folder to play in; one that isn't kept is removed."""
    if keep is not None:
        keep.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="onrecord-demo-") as folder:
        yield Path(folder)


def perform(folder: Path, tell: Callable[[str], None] = print) -> Ending:
    """Play it; `tell` is told each step. Raise RuntimeError where a process doesn't play along."""
    began = time.monotonic()
    for name in ("script.json", "platform.jsonl", "ledger.jsonl", "log.db"):
        if name != "script.json" and (folder / name).exists():
            raise RuntimeError(f"{folder / name} is there from another time; give another folder")
    (folder / "script.json").write_text(json.dumps(SCRIPT), encoding="utf-8")
    token = secrets.token_urlsafe()
    with ExitStack() as stack:
        model = stack.enter_context(server("model", token, str(folder / "script.json")))
        book = folder / "platform.jsonl"
        platform = stack.enter_context(server("platform", token, str(book)))
        stage = _Stage(folder, book, Client(platform.port(), token), model.port(), token, tell)
        stack.callback(stage.close)
        tell("A model server, a chat platform and a gateway run, each a process of its own.")
        stage.play()
    with TranscriptLog.open(f"sqlite:///{folder}/log.db") as log:
        proof = verify(log)
        return Ending(
            platform=read_chat(book),
            ledger=read_ledger(folder / "ledger.jsonl"),
            rows=build(log, SESSION, full=True).rows,
            findings=findings(SESSION, log.read(SESSION)),
            records=log.version(SESSION),
            fault="" if proof.first_fault is None else str(proof.first_fault),
            seconds=time.monotonic() - began,
        )


def read_chat(book: Path) -> list[Message]:
    """Return what the platform's own file says that the chat shows."""
    messages: dict[str, Message] = {}
    with book.open(encoding="utf-8", errors="surrogatepass") as lines:
        for line in lines:
            entry = json.loads(line) if line.endswith("\n") else {}
            if entry.get("op") == "say":
                messages[entry["message"]] = Message("user", entry["text"])
            elif entry.get("op") in ("send", "edit"):
                text = entry["text"]
                messages[entry["message"]] = Message("assistant", text, text == BROKEN)
    return list(messages.values())


@dataclass
class _Stage:
    folder: Path
    book: Path
    client: Client
    model_port: int
    token: str
    tell: Callable[[str], None]
    gateway: subprocess.Popen[bytes] | None = None

    def play(self) -> None:
        self._say(QUESTIONS[0])
        self._start(linger=STEP_LIMIT_SECONDS)
        self._until(BROKEN)
        self.tell("The gateway streams a reply, and the model's stream breaks in the middle.")
        self.client.post("/rules", {"chat": CHAT, "rules": {"hold_from": 1}})
        self._say(QUESTIONS[1])
        self._until("Your ticket")
        self._kill()
        self.tell("The gateway is killed with SIGKILL, between send and acknowledgement.")
        self.client.post("/rules", {"chat": CHAT, "rules": {}})
        self._say(QUESTIONS[2])
        code = self._start(linger=0.0).wait(STEP_LIMIT_SECONDS)
        if code != 0:
            raise RuntimeError(f"the gateway that started anew ended with {code}")
        self.tell("It starts again, recovers, and the conversation goes on.")

    def close(self) -> None:
        if self.gateway is not None and self.gateway.poll() is None:
            self.gateway.kill()
            self.gateway.wait()

    def _say(self, text: str) -> None:
        self.client.post("/say", {"chat": CHAT, "text": text})

    def _start(self, linger: float) -> subprocess.Popen[bytes]:
        setting = Setting(
            log=f"sqlite:///{self.folder}/log.db", session=SESSION, chat=CHAT,
            platform_port=self.client.port, model_port=self.model_port,
            ledger=str(self.folder / "ledger.jsonl"), bookings=str(self.folder / "bookings.jsonl"),
            answer_timeout=STEP_LIMIT_SECONDS, linger=linger,
        )  # fmt: skip
        described = msgspec.json.encode(setting).decode()
        self.gateway = subprocess.Popen(
            [sys.executable, "-P", "-m", "onrecord.gateway.demo.bot", described],
            stdin=subprocess.DEVNULL,
            env={**os.environ, TOKEN_VARIABLE: self.token},
            start_new_session=True,  # Ctrl-C is for the play, which ends it
        )
        return self.gateway

    def _kill(self) -> None:
        assert self.gateway is not None
        self.gateway.send_signal(signal.SIGKILL)
        self.gateway.wait()

    def _until(self, beginning: str) -> None:
        """Wait until the platform holds a message that begins so."""
        assert self.gateway is not None
        deadline = time.monotonic() + STEP_LIMIT_SECONDS
        while time.monotonic() < deadline:
            if any(m.text.startswith(beginning) for m in read_chat(self.book)):
                return
            if self.gateway.poll() is not None:
                raise RuntimeError(f"the gateway ended with {self.gateway.returncode}")
            time.sleep(POLL_SECONDS)
        raise RuntimeError(f"the platform had no {beginning!r} within {STEP_LIMIT_SECONDS} s")
