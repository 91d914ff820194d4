"""Unpacking Zstandard: the one module that needs the extra `zstandard`. Load it where something is packed."""

from __future__ import annotations

import shutil
from pathlib import Path

import zstandard


def unpack(data: bytes, size: int) -> bytes:
    """Return what a frame holds, `size` bytes at most. Raise ValueError for anything else."""
    try:
        if zstandard.frame_content_size(data) > size:
            raise ValueError(f"it would have over {size} bytes when it is unpacked")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
    except zstandard.ZstdError as error:
        raise ValueError(f"the packed bytes can't be unpacked: {error}") from error


def unpack_file(packed: Path, into: Path) -> str:
    """Unpack a file into another; return what is wrong with it. What comes before that is written."""
    with packed.open("rb") as source, into.open("wb") as target:
        try:
            shutil.copyfileobj(zstandard.ZstdDecompressor().stream_reader(source), target)
        except zstandard.ZstdError as error:
            return str(error)
    return ""
