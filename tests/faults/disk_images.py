"""What may stand on a disk after the power went: images made from a log of write and sync calls.

Before a file is synced, each of its writes may be there or not, sector by sector, in any order. A file
that was made or removed may be back as it was until its folder is synced.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SECTOR_BYTES = 512
CALLS = "openat,pwrite64,write,fdatasync,fsync,ftruncate,unlink,unlinkat,rename"

_CALL = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+)(<[^>]*>)?")
_FD = re.compile(r"^(\d+)<([^>]*)>")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


@dataclass(frozen=True)
class Step:
    """One thing that happened to a file: create, remove, write, truncate, sync, or an ack (`data`)."""

    what: str
    path: str
    data: bytes = b""
    offset: int = 0


def read_trace(trace: Path, folder: Path) -> list[Step]:
    """Return what an `strace -y -xx` log says happened in a folder, and was written to fd 1."""
    steps: list[Step] = []
    existing: set[str] = set()
    with trace.open(encoding="ascii") as lines:
        for line in lines:
            found = _CALL.match(line)
            if found is None or found[3].startswith("-"):
                continue
            step = _step(found[1], found[2], found[4] or "", existing)
            if step is not None and (step.what == "ack" or step.path.startswith(str(folder))):
                steps.append(step)
    return steps


def _step(call: str, arguments: str, opened: str, existing: set[str]) -> Step | None:
    texts = [_bytes(text) for text in _TEXT.findall(arguments)]
    if call == "openat":
        path = _decoded(opened[1:-1])
        if "O_CREAT" not in arguments or path in existing:
            return None
        existing.add(path)
        return Step("create", path)
    if call in ("unlink", "unlinkat", "rename"):
        assert call != "rename", "the log renames nothing; say here what a rename does"
        existing.discard(texts[-1].decode())
        return Step("remove", texts[-1].decode())
    target = _FD.match(arguments)
    if target is None:
        return None
    path = _decoded(target[2])
    if call == "write":
        return Step("ack", "", texts[0]) if target[1] == "1" else None
    if call == "pwrite64":
        return Step("write", path, texts[0], int(arguments.rsplit(", ", 1)[1]))
    if call == "ftruncate":
        return Step("truncate", path, offset=int(arguments.rsplit(", ", 1)[1]))
    return Step("sync", path)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _decoded(text: str) -> str:
    return _bytes(text).decode() if text.startswith("\\x") else text


@dataclass(frozen=True)
class Image:
    """A disk after the power went. `files`: path → content; `acked`: ids said before it did."""

    files: dict[str, bytes]
    acked: frozenset[str]
    name: str


def images(steps: Sequence[Step], count: int, seed: int = 0) -> Iterator[Image]:
    """Yield `count` images: at each of as many moments, nothing unsynced kept, all of it, or some."""
    source = random.Random(seed)
    for number in range(count):
        moment = (number * len(steps)) // count + 1
        kind = ("nothing", "everything", "something", "something")[number % 4]
        keep = {"nothing": 0.0, "everything": 1.0}.get(kind, source.choice((0.2, 0.5, 0.9)))
        acked = b"".join(step.data for step in steps[:moment] if step.what == "ack")
        yield Image(
            _files(steps[:moment], keep, source),
            frozenset(acked.decode().split()),
            f"after call {moment} of {len(steps)}, {kind} unsynced kept",
        )


def _files(steps: Sequence[Step], keep: float, source: random.Random) -> dict[str, bytes]:
    durable = _durable(steps)
    files: dict[str, bytearray] = {}
    for step, safe in zip(steps, durable, strict=True):
        if step.what == "create" and (safe or source.random() < keep):
            files.setdefault(step.path, bytearray())
        elif step.what == "remove" and (safe or source.random() < keep):
            files.pop(step.path, None)
        elif step.path in files and step.what == "write":
            _write(files[step.path], step, None if safe else keep, source)
        elif step.path in files and step.what == "truncate" and (safe or source.random() < keep):
            content = files[step.path]
            del content[step.offset :]
            content.extend(bytes(step.offset - len(content)))
    return {path: bytes(content) for path, content in files.items() if not path.endswith("-shm")}


def _durable(steps: Sequence[Step]) -> list[bool]:
    """Tell for each step whether a later one made sure of it."""
    synced: set[str] = set()
    out = []
    for step in reversed(steps):
        if step.what == "sync":
            synced.add(step.path)
        folder = str(Path(step.path).parent)
        out.append((folder if step.what in ("create", "remove") else step.path) in synced)
    return out[::-1]


def _write(content: bytearray, step: Step, keep: float | None, source: random.Random) -> None:
    at = step.offset
    for start in range(0, len(step.data), SECTOR_BYTES):
        if keep is not None and source.random() >= keep:
            continue
        sector = step.data[start : start + SECTOR_BYTES]
        if len(content) < at + start:
            content.extend(bytes(at + start - len(content)))
        content[at + start : at + start + len(sector)] = sector
