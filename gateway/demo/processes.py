"""The demo's processes: started with a token, ended with whoever started them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import TracebackType
from typing import IO

from onrecord.gateway.demo.loopback import TOKEN_VARIABLE

END_LIMIT_SECONDS = 10.0


class Server:
    """A process that ends when its standard input is closed. A context manager: leaving it ends it."""

    def __init__(self, token: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, TOKEN_VARIABLE: token},
            start_new_session=True,  # Ctrl-C is for the play, which ends them
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.stdin: IO[bytes] = self._process.stdin
        self.stdout: IO[bytes] = self._process.stdout

    def port(self) -> int:
        """Return the port that the server says; RuntimeError if it ended before it did."""
        line = self.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended with {self._process.wait()}")
        return int(json.loads(line)["port"])

    def close(self) -> None:
        """Let it end, and make sure that it has."""
        self.stdin.close()
        try:
            self._process.wait(END_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.stdout.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def server(module: str, token: str, *arguments: str) -> Server:
    """Start a server of the demo. `module`: its name in this package."""
    return Server(token, "-P", "-m", f"onrecord.gateway.demo.{module}", *arguments)
