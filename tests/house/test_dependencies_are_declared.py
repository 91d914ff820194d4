"""What the code imports is what pyproject.toml asks for: nothing comes by way of another package."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

NAME = re.compile(r"[A-Za-z0-9_.-]+")


def test_each_import_of_the_code_is_a_dependency(
    code: list[Any], pyproject: Mapping[str, Any]
) -> None:
    declared = {_name(line) for line in pyproject["project"]["dependencies"]}

    assert _undeclared(code, declared) == {}


def test_each_import_of_the_tests_is_in_a_group(
    root: Path, everything: list[Any], pyproject: Mapping[str, Any]
) -> None:
    lines = [*pyproject["project"]["dependencies"], *pyproject["dependency-groups"]["test"]]
    own = {
        path.stem
        for folder in ("tests", "benchmarks")
        for path in (root / folder).rglob("*")
        if path.is_dir() or path.suffix == ".py"
    } | {"onrecord"}

    undeclared = _undeclared(everything, {_name(line) for line in lines})
    assert {module: names for module, names in undeclared.items() if names - own} == {}


def _undeclared(modules: list[Any], declared: set[str]) -> dict[str, set[str]]:
    owners = packages_distributions()
    missing: dict[str, set[str]] = {}
    for module in modules:
        for top in _tops(module.tree) - set(sys.stdlib_module_names) - {"onrecord"}:
            if not {_name(owner) for owner in owners.get(top, [top])} & declared:
                missing.setdefault(str(module.path), set()).add(top)
    return missing


def _tops(tree: ast.AST) -> set[str]:
    tops = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            tops |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            tops.add(node.module.partition(".")[0])
    return tops


def _name(requirement: str) -> str:
    """Return a distribution's name as PEP 503 compares it."""
    found = NAME.match(requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()
