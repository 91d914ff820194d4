"""Sessions of Codex: its rollouts, a file of JSON lines a session, `rollout-TIME-ID.jsonl`.

A line is {"timestamp", "type", "payload"}: `session_meta` says whose file it is, `response_item` is an
item of OpenAI's Responses interface, `event_msg` what the screen was told (so everything that was said
stands there a second time), `compacted` a summary. The first versions wrote the items alone, after a
line of the session's id. Older files are packed: `.jsonl.zst`.

A thread that an agent started is a session of its own, `PARENT/THREAD`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onrecord.transcript.importers import codes
from onrecord.transcript.importers.codex_rollout import Rollout
from onrecord.transcript.importers.packed import unpacked
from onrecord.transcript.importers.reading import first_object
from onrecord.transcript.importers.rows import SourceRows
from onrecord.transcript.importers.session_files import Faults, files_in, records
from onrecord.transcript.importers.source import HEAD, Entry
from onrecord.transcript.importers.times import is_still

FORMAT = "codex"

_ZSTD = b"\x28\xb5\x2f\xfd"
_PACKED = ".jsonl.zst"
_WRAPPED = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}


def looks_right(path: Path, head: bytes) -> bool:
    """Tell whether a file is a rollout, or a folder has some."""
    if path.is_dir():
        return next(_rollouts(path), None) is not None
    if head.startswith(_ZSTD):
        return path.name.startswith("rollout-") and path.name.endswith(_PACKED)
    first = first_object(head) or {}
    bare = "type" not in first and {"id", "timestamp", "instructions"} <= first.keys()
    return bare or (first.get("type") in _WRAPPED and isinstance(first.get("payload"), dict))


@contextmanager
def open_source(path: Path) -> Iterator[Sessions]:
    """Open a rollout, or a folder of them. Raise ImportRefused if one is packed and can't be unpacked."""
    yield Sessions(
        sorted(_rollouts(path), key=lambda found: found.name) if path.is_dir() else [path]
    )


class Sessions:
    """The sessions of some rollouts, oldest first."""

    total: int | None = None

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths

    def sessions(self) -> Iterator[tuple[str, Iterator[Entry]]]:
        """Iterate over the sessions, a file each."""
        for path in self._paths:
            faults = Faults()
            with contextlib.ExitStack() as stack:
                plain = path
                if path.name.endswith(_PACKED):
                    plain = stack.enter_context(unpacked(path, faults.tell))
                meta = _meta(plain)
                name = _name(meta, path)
                yield name, _entries(plain, path, name, meta, faults)


def _rollouts(folder: Path) -> Iterator[Path]:
    """Iterate over a folder's rollouts; of one that is there packed and unpacked, the latter counts."""
    for path in files_in(folder, "rollout-*.jsonl*"):
        if path.suffix == ".jsonl" or (
            path.name.endswith(_PACKED) and not path.with_suffix("").exists()
        ):
            yield path


def _meta(path: Path) -> dict[str, Any]:
    """Return what the first line says of the session."""
    with path.open("rb") as file:
        first = first_object(file.read(HEAD)) or first_object(_first_line(path)) or {}
    if first.get("type") == "session_meta" and isinstance(first.get("payload"), dict):
        return dict(first["payload"])
    return first if "type" not in first and "id" in first else {}


def _first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline(HEAD << 6)


def _name(meta: dict[str, Any], path: Path) -> str:
    own = meta.get("id") or path.name.removesuffix(".zst").removesuffix(".jsonl")
    parent = spawned_by(meta)
    return f"{parent}/{own}" if parent else str(own)


def spawned_by(meta: dict[str, Any]) -> str:
    """Return the thread whose agent started this one, none where a person did."""
    source = meta.get("source")
    agent = source.get("subagent") if isinstance(source, dict) else None
    spawn = agent.get("thread_spawn") if isinstance(agent, dict) else None
    found = spawn.get("parent_thread_id") if isinstance(spawn, dict) else None
    return str(found or (meta.get("parent_thread_id") if agent else "") or "")


def _entries(
    plain: Path, path: Path, name: str, meta: dict[str, Any], faults: Faults
) -> Iterator[Entry]:
    """Iterate over the entries of one rollout."""
    rows = SourceRows(FORMAT, name)
    faults.hand_to(rows.fault)
    rollout = Rollout(rows, parent=spawned_by(meta) or str(meta.get("forked_from_id") or ""))
    if not meta:
        rows.fault(codes.MALFORMED, path.name, "it has no line that says whose session it is")
    for key, place, found in records(plain, rows.fault, path.name.removesuffix(".zst")):
        rollout.read(key, place, found)
        yield from rows.take()
    rollout.finish(still=is_still(path))
    yield from rows.take()
