"""Lines of subagents that stand between those of their session, put aside until the session is read."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from onrecord.transcript.importers.session_files import Record

SPOOL = 8 << 20
"""Bytes that are kept in memory; the rest waits on the disk."""


class Sidechains:
    """Lines by agent, in order. In memory are where they stand and their ids."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=SPOOL)  # noqa: SIM115 (closed by __exit__)
        self._agents: dict[str, array[int]] = {}
        self._agent_of: dict[str, str] = {}

    def __enter__(self) -> Sidechains:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._file.close()

    def put(self, key: str, place: str, line: dict[str, Any]) -> None:
        """Put a line to those of its agent: the one that it names, else that of the line before it."""
        id, parent = str(line.get("uuid") or ""), str(line.get("parentUuid") or "")
        agent = str(line.get("agentId") or self._agent_of.get(parent) or id or key)
        self._agent_of[id] = agent
        self._agents.setdefault(agent, array("q")).append(self._file.tell())
        self._file.write(json.dumps([key, place, line]).encode() + b"\n")

    def names(self) -> list[str]:
        """Return the agents, in the order in which they began."""
        return list(self._agents)

    def of(self, agent: str) -> Iterator[Record]:
        """Iterate over an agent's lines."""
        for offset in self._agents[agent]:
            self._file.seek(offset)
            key, place, line = json.loads(self._file.readline())
            yield key, place, line
