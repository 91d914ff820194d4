"""Hermes's own gateway as a process, with a home of its own, a scripted model and the chat platform."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from chat_platform import ChatPlatform

HOME = ".hermes"
WAIT = "touch runs; sleep 30"  # a command for the tool that runs commands
PLUGIN = Path(__file__).with_name("plugin")
PATIENCE_SECONDS = 60.0
QUIET_SECONDS = 1.5
POLL_SECONDS = 0.02
STOP_SECONDS = 60.0
LAST_LINES = 20
REQUEST = "OpenAI client created (chat_completion_stream_request"  # as agent.log says it
TITLE = {"anywhere": "Generate a short, descriptive title", "text": "A talk", "times": 0}
WINDOW_TOKENS = 128_000

# Hold the one lock for writing until a line comes in: no SQLite library is loaded into this process.
LOCKER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


class Bot:
    """Drive one gateway: write to it as its user does, wait, kill it, start it again."""

    def __init__(self, folder: Path, model_url: str, settings: dict[str, Any]) -> None:
        """Make a home in `folder`; what the platform writes down stands beside it."""
        self.home = home = folder / HOME
        self.model_url = model_url
        self.platform = ChatPlatform(folder / "platform.jsonl")
        self.gateway: subprocess.Popen[bytes] | None = None
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home / "user"),
            "HERMES_HOME": str(home),
            "TMPDIR": str(folder),
            "LOOPBACK_URL": self.platform.url,
            # Nothing but the loopback is reached: whatever Hermes looks up elsewhere fails at once.
            "HTTP_PROXY": "http://127.0.0.1:9",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1,localhost",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "USER": "tests",
        }
        (home / "user").mkdir(parents=True)
        plugin = home / "plugins" / "loopback"
        plugin.mkdir(parents=True)
        for file in ("plugin.yaml", "__init__.py"):
            plugin.joinpath(file).write_text(PLUGIN.joinpath(file).read_text("utf-8"), "utf-8")
        home.joinpath("SOUL.md").write_text("You are a bot under test.\n", "utf-8")
        self._configure(settings)

    def _configure(self, settings: dict[str, Any]) -> None:
        """Write the gateway's configuration (JSON is YAML)."""
        config = {
            "model": {
                "default": "scripted",
                "provider": "custom",
                "base_url": self.model_url,
                "api_key": "none",
                "context_length": WINDOW_TOKENS,
            },
            "plugins": {"enabled": ["loopback"]},
            "platforms": {"loopback": {"enabled": True}},
            "platform_toolsets": {"loopback": ["todo", "file", "terminal"]},
            "terminal": {"cwd": str(self.home / "user")},
            "security": {"tirith_enabled": False},
            **settings,
        }
        self.home.joinpath("config.yaml").write_text(json.dumps(config, indent=2), "utf-8")

    def script(self, *replies: dict[str, Any]) -> None:
        """Tell the model what to say from now on; requests for a title get one of their own."""
        body = json.dumps([TITLE, *replies]).encode()
        urlopen(Request(f"{self.model_url}/script", data=body, method="PUT")).close()

    def start(self) -> None:
        command = [sys.executable, "-m", "hermes_cli.main", "gateway", "run"]
        said = self.home.joinpath("console.txt").open("ab")
        starts = self.log().count("Gateway running with")
        self.gateway = subprocess.Popen(
            command,
            env=self.environment,
            cwd=self.home / "user",
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        said.close()
        self.until(lambda: self.log().count("Gateway running with") > starts, "the gateway runs")

    def stop(self) -> None:
        """End the gateway as a service manager does."""
        assert self.gateway is not None
        self.gateway.terminate()
        self.gateway.wait(STOP_SECONDS)

    def kill(self) -> None:
        """End the gateway and all that it started at once, kill -9."""
        assert self.gateway is not None
        os.killpg(self.gateway.pid, signal.SIGKILL)
        self.gateway.wait(STOP_SECONDS)

    def log(self, name: str = "gateway.log") -> str:
        file = self.home / "logs" / name
        return file.read_text("utf-8", "replace") if file.exists() else ""

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds; fail after a while, and say what it was and how things stand."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            if time.monotonic() > end:
                last = self.log("agent.log").splitlines()[-LAST_LINES:] + self.platform.shown()
                said = "\n".join(last)
                raise TimeoutError(f"not within {PATIENCE_SECONDS:.0f} s: {what}\n{said}")
            time.sleep(POLL_SECONDS)

    def says(self, text: str) -> None:
        """Write a message to the bot and leave it at that."""
        self.platform.user_writes(text)

    def asks_model(self, text: str) -> None:
        """Write a message, and wait until it is stored and the model is asked for an answer."""
        asked = self.log("agent.log").count(REQUEST)
        self.platform.user_writes(text)
        self.until(lambda: self.log("agent.log").count(REQUEST) > asked, "the model is asked")

    def runs_a_tool(self) -> None:
        """Wait until the command `WAIT` runs."""
        self.until(self.home.joinpath("user", "runs").exists, "a tool runs")

    def sees(self, text: str) -> None:
        """Wait until the user can read this."""
        self.until(
            lambda: any(text in shown for shown in self.platform.shown()), f"the user sees {text!r}"
        )

    def rests(self) -> None:
        """Wait until nothing has been sent or logged for a while."""
        last = -1, ""
        since = time.monotonic()
        while time.monotonic() < since + QUIET_SECONDS:
            now = len(self.platform.seen), self.log("agent.log")
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(POLL_SECONDS)

    def turn(self, text: str, answer: str) -> None:
        """Write a message, wait for the answer that holds some text, and for the end of the turn."""
        self.says(text)
        self.sees(answer)
        self.rests()

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """Leave no room on the home's file system, which is a small one of its own."""
        ballast = self.home / "ballast"
        free = os.statvfs(self.home)
        ballast.write_bytes(bytes(free.f_bavail * free.f_frsize))
        try:
            yield
        finally:
            ballast.unlink()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock for writing to state.db from another process."""
        database = str(self.home / "state.db")
        with subprocess.Popen(
            [sys.executable, "-c", LOCKER, database],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as locker:
            assert locker.stdin is not None
            assert locker.stdout is not None
            assert locker.stdout.readline() == b"held\n"
            yield
            locker.stdin.close()
