"""Reading a large source in a process of its own, while this one appends."""

from __future__ import annotations

import contextlib
import gc
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias, cast
from uuid import UUID

import msgspec

from onrecord.transcript import codec
from onrecord.transcript.append import Draft
from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.events import VOCABULARY_VERSION
from onrecord.transcript.importers.batches import Batch, batches
from onrecord.transcript.importers.foreign import Changed
from onrecord.transcript.importers.source import Importer

COLLECT_EVERY = 50_000
"""Objects that the reading process makes before it looks for cycles."""

_Sealed: TypeAlias = tuple[str, bytes | None, bytes, int | None]
"""A draft on its way: type, id, payload and time."""


class _Frame(msgspec.Struct, array_like=True):
    """A message of the reading process: a batch, or how it ended."""

    kind: str
    drafts: dict[str, list[_Sealed]] = {}
    batch: Batch | None = None
    text: str = ""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Frame)


def importer_named(name: str) -> Importer:
    """Return the importer of a format."""
    module = name.replace("-", "_")
    return cast("Importer", import_module(f"onrecord.transcript.importers.{module}"))


def batches_ahead(importer: Importer, path: Path, text_limit: int) -> Iterator[Batch]:
    """Iterate over what a source says, as `batches` does, read by another process.

    Raise ImportRefused, and Changed at the end.
    """
    # Loaded where a source is large: whoever imports a small one needs none of it.
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_read, args=(theirs, importer.FORMAT, str(path), text_limit), daemon=True
    )
    process.start()
    theirs.close()
    with contextlib.ExitStack() as stack:
        stack.callback(process.join)
        stack.enter_context(contextlib.closing(ours))
        # The next batch is unpacked while the one before is written: SQLite lets go of the GIL.
        unpacking = stack.enter_context(ThreadPoolExecutor(1))
        stack.callback(process.terminate)  # first of all: whoever waits for a batch waits no longer
        coming = unpacking.submit(_received, ours, path)
        while (frame := coming.result()).batch is not None:
            coming = unpacking.submit(_received, ours, path)
            yield frame.batch
    if frame.kind == "changed":
        raise Changed(str(path))
    if frame.kind == "refused":
        raise ImportRefused(frame.text, file=str(path), line=0, expected="a source")


def _received(pipe: Any, path: Path) -> _Frame:
    """Return the reader's next message, its drafts unpacked into its batch."""
    try:
        frame = _decoder.decode(pipe.recv_bytes())
    except EOFError:
        return _Frame("refused", text=f"reading {path} broke off: the process that read it ended")
    if frame.batch is not None:
        frame.batch.drafts = {
            name: [_draft(s) for s in sealed] for name, sealed in frame.drafts.items()
        }
        frame.drafts = {}
    return frame


def _draft(sealed: _Sealed) -> Draft:
    type, id, payload, at = sealed
    event = codec.decode(type, VOCABULARY_VERSION, None if id is None else UUID(bytes=id), payload)
    return Draft(event, payload, at)


def _read(pipe: Any, name: str, path: str, text_limit: int) -> None:
    """Read a source and send what it says; the reader's end decides when it is enough."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's goes to both: ours ends this one
    gc.set_threshold(COLLECT_EVERY)  # events have no cycles, and are gone with their batch
    end = _Frame("end")
    try:
        for batch in batches(importer_named(name), Path(path), text_limit):
            drafts, batch.drafts = batch.drafts, {}
            sealed = {session: [_seal(one) for one in given] for session, given in drafts.items()}
            pipe.send_bytes(_encoder.encode(_Frame("batch", sealed, batch)))
    except Changed:
        end = _Frame("changed")
    except ImportRefused as error:
        end = _Frame("refused", text=str(error))
    pipe.send_bytes(_encoder.encode(end))


def _seal(draft: Draft) -> _Sealed:
    event = draft.event
    return (
        event.type,
        None if event.id is None else event.id.bytes,
        draft.payload,
        draft.recorded_at,
    )
