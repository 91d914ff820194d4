"""Reading a large source in a process of its own, while this one appends."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
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
    try:
        with contextlib.closing(ours):
            while (frame := _received(ours, path)).kind == "batch":
                yield _batch(frame)
    finally:
        process.terminate()
        process.join()
    if frame.kind == "changed":
        raise Changed(str(path))
    if frame.kind == "refused":
        raise ImportRefused(frame.text, file=str(path), line=0, expected="a source")


def _received(pipe: Any, path: Path) -> _Frame:
    try:
        return _decoder.decode(pipe.recv_bytes())
    except EOFError:
        return _Frame("refused", text=f"reading {path} broke off: the process that read it ended")


def _batch(frame: _Frame) -> Batch:
    assert frame.batch is not None
    frame.batch.drafts = {
        session: [_draft(sealed) for sealed in drafts] for session, drafts in frame.drafts.items()
    }
    return frame.batch


def _draft(sealed: _Sealed) -> Draft:
    type, id, payload, at = sealed
    event = codec.decode(type, VOCABULARY_VERSION, None if id is None else UUID(bytes=id), payload)
    return Draft(event, payload, at)


def _read(pipe: Any, name: str, path: str, text_limit: int) -> None:
    """Read a source and send what it says; the reader's end decides when it is enough."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's goes to both: ours ends this one
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
