"""Two SQLite libraries on one file in one process corrupt it, so one module chooses the library."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

LIBRARIES = {"sqlite3", "_sqlite3", "pysqlite3", "apsw", "aiosqlite", "sqlean"}
THE_ONE = "transcript/storage/dbapi.py"


def test_only_dbapi_imports_a_sqlite_library(everything: list[Any]) -> None:
    found = {
        module.path.as_posix()
        for module in everything
        for name in _imported(module.tree)
        if name.partition(".")[0] in LIBRARIES
    }

    assert found == {THE_ONE}


def test_nothing_imports_the_sqlite_of_eventsourcing(everything: list[Any]) -> None:
    found = {
        module.path.as_posix()
        for module in everything
        for name in _imported(module.tree)
        if name == "eventsourcing.sqlite"
    }

    assert found == set()


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module)):
                yield module
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__" | "importorskip")
                | ast.Attribute(attr="import_module" | "importorskip"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield name
