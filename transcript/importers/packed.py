"""What Zstandard packed: unpacked, or refused with the sentence that says what to install."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.importers import codes
from onrecord.transcript.importers.reading import Tell


def unpack(data: bytes, size: int, path: Path) -> bytes:
    """Return what Zstandard packed, `size` bytes at most; raise ValueError for anything else.

    Raise ImportRefused without the package.
    """
    unpacked: bytes = require_zstandard(path).unpack(data, size)
    return unpacked


@contextlib.contextmanager
def unpacked(path: Path, tell: Tell) -> Iterator[Path]:
    """Give the file that `path` packs, as a private copy. Raise ImportRefused without the package."""
    zstd = require_zstandard(path)
    with tempfile.TemporaryDirectory(prefix="onrecord-") as folder:
        plain = Path(folder, path.name)
        if wrong := zstd.unpack_file(path, plain):
            tell(codes.UNREADABLE, path.name, f"it can be unpacked up to a point only: {wrong}")
        yield plain


def require_zstandard(path: Path) -> Any:
    """Return the module that unpacks. Raise ImportRefused, which says how to install what it needs."""
    try:
        from onrecord.transcript.importers import zstd
    except ModuleNotFoundError as error:
        raise ImportRefused(
            f"{path} is packed with Zstandard; to read it: pip install 'onrecord[zstandard]'",
            file=str(path), line=0, expected="the package zstandard",
        ) from error  # fmt: skip
    return zstd
