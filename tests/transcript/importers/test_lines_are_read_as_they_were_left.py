"""A file of JSON objects is read as a program left it; what can't be read is told with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onrecord.transcript.importers import reading


def read(path: Path) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    faults: list[tuple[str, str]] = []
    found = reading.objects(path, lambda code, place, _: faults.append((code, place)))
    return [item for _, _, item in found], faults


@pytest.mark.parametrize(
    ("data", "numbers", "faults"),
    [
        (b'{"n":1}\n{"n":2}\n', [1, 2], []),
        (b'\n{"n":1}\r\n\n{"n":2}', [1, 2], []),
        (b'{"n":1}\n{"n":2, "te', [1], [("torn-tail", "s.jsonl:2")]),
        (b'{"n":1}{"n":2}\n{"n":3}\n', [1, 2, 3], [("malformed-in-source", "s.jsonl:1")]),
        (b'{"n":1}{"n\n{"n":3}\n', [1, 3], [("unreadable-in-source", "s.jsonl:1")]),
        (b'nonsense\n{"n":1}\n', [1], [("unreadable-in-source", "s.jsonl:1")]),
        (b'[1]\n{"n":1}\n', [1], [("unreadable-in-source", "s.jsonl:1")]),
        (b'{"n":1,"t":"\xff"}\n', [1], [("malformed-in-source", "s.jsonl:1")]),
        (b'\xef\xbb\xbf{"n":1}\n', [1], []),
        (b'\0\0\0{"n":1}\n', [1], []),
        (b"[" * 100_000 + b'\n{"n":1}\n', [1], [("unreadable-in-source", "s.jsonl:1")]),
        (b"", [], []),
    ],
)
def test_what_can_be_read_is_read(
    tmp_path: Path, data: bytes, numbers: list[int], faults: list[tuple[str, str]]
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)

    found, told = read(path)

    assert [item["n"] for item in found] == numbers
    assert told == faults


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_file_in_another_encoding_says_so_by_its_mark(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "s.jsonl"
    mark = b"" if encoding == "utf-16" else b"\xfe\xff"
    path.write_bytes(mark + '{"n":1,"t":"Grüße 你好"}\n{"n":2}\n'.encode(encoding))

    found, told = read(path)

    assert [item.get("t") for item in found] == ["Grüße 你好", None]
    assert told == [("malformed-in-source", "s.jsonl:1")]
    assert reading.first_object(path.read_bytes()) == {"n": 1, "t": "Grüße 你好"}


def test_a_line_that_is_too_long_is_skipped_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LINE_LIMIT", 100)
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":2,"t":"' + b"x" * 1000 + b'"}\n{"n":3}\n')

    found, told = read(path)

    assert [item["n"] for item in found] == [1, 3]
    assert told == [("unreadable-in-source", "s.jsonl:2")]


def test_a_lone_surrogate_is_no_fault_of_the_line(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'{"n":"\\ud83d"}\n')

    found, told = read(path)

    assert (found, told) == ([{"n": "\ud83d"}], [])
