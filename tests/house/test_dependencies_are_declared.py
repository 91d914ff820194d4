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
EXTRAS = {
    "transcript/storage/postgres_driver.py": "postgresql",
    "projections/pages/parquet.py": "parquet",
    "transcript/importers/zstd.py": "zstandard",
}
"""The module that imports what an extra brings. Whoever needs it imports that module, late."""
ELSEWHERE = {
    "tests/interop/openai_agents/drive.py": {"agents"},
    "tests/interop/langgraph/drive.py": {"langchain_core", "langgraph"},
    "tests/interop/chat_graphs.py": {"langchain_core", "langgraph", "typing_extensions"},
}
"""What another program's environment brings to a module that only its own Python runs."""


def test_each_import_of_the_code_is_a_dependency(
    code: list[Any], pyproject: Mapping[str, Any]
) -> None:
    declared = {_name(line) for line in pyproject["project"]["dependencies"]}
    optional = pyproject["project"]["optional-dependencies"]

    undeclared = {
        module: {top for top in tops if top not in _brought(optional, EXTRAS.get(module))}
        for module, tops in _undeclared(code, declared).items()
    }
    assert {module: tops for module, tops in undeclared.items() if tops} == {}
    assert set(optional) == set(EXTRAS.values())


def test_what_an_extra_brings_is_tested(pyproject: Mapping[str, Any]) -> None:
    optional = pyproject["project"]["optional-dependencies"]
    tested = set(pyproject["dependency-groups"]["test"])

    assert {line for lines in optional.values() for line in lines} <= tested


def test_only_the_modules_of_an_extra_import_at_once_the_one_that_needs_it(code: list[Any]) -> None:
    """Whoever stays with SQLite loads none of it."""
    optional = {path.removesuffix(".py").rpartition("/")[2] for path in EXTRAS}
    families = {name.partition("_")[0] for name in optional}
    found = {
        str(module.path)
        for module in code
        for node in module.tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for name in [node.module.rpartition(".")[2], *(alias.name for alias in node.names)]
        if name.partition("_")[0] in families and module.path.stem.partition("_")[0] not in families
    }

    assert found == set()


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
    missing = {m: tops - own - ELSEWHERE.get(m, set()) for m, tops in undeclared.items()}
    assert {module: tops for module, tops in missing.items() if tops} == {}


def _brought(optional: Mapping[str, list[str]], extra: str | None) -> set[str]:
    return {_name(line) for line in optional[extra]} if extra is not None else set()


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
