"""The source as the layout tests see it: text and syntax, never imported."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

CODE_FOLDERS = ("transcript", "projections", "agent", "gateway")


@dataclass(frozen=True)
class Module:
    """One Python file. `path` is relative to the root of the clone."""

    root: Path
    path: Path

    @cached_property
    def text(self) -> str:
        return (self.root / self.path).read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))


@pytest.fixture(scope="session")
def root() -> Path:
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def pyproject(root: Path) -> Mapping[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def code(root: Path) -> list[Module]:
    """What is shipped, without the root package."""
    return _modules(root, *CODE_FOLDERS)


@pytest.fixture(scope="session")
def everything(root: Path, code: list[Module]) -> list[Module]:
    """All Python of the project."""
    package = Module(root, Path(".import/onrecord/__init__.py"))
    return [package, *code, *_modules(root, "tests", "benchmarks")]


def _modules(root: Path, *folders: str) -> list[Module]:
    found = (path for folder in folders for path in (root / folder).rglob("*.py"))
    return [Module(root, path.relative_to(root)) for path in sorted(found)]
