"""`import onrecord` costs next to nothing, and each public name is the one in its module."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path

import pytest

import onrecord


@pytest.mark.parametrize("name", sorted(onrecord._PUBLIC))
def test_each_public_name_is_the_one_in_its_module(name: str) -> None:
    module, _, attribute = onrecord._PUBLIC[name].partition(":")
    there = import_module(module)

    assert getattr(onrecord, name) is (getattr(there, attribute) if attribute else there)


def test_the_names_for_people_for_checkers_and_for_loading_are_the_same(root: Path) -> None:
    tree = ast.parse((root / ".import/onrecord/__init__.py").read_text(encoding="utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    told = {
        alias.name: _target(statement.module, alias.name)
        for statement in checked.body
        if isinstance(statement, ast.ImportFrom) and statement.module
        for alias in statement.names
    }

    assert told == onrecord._PUBLIC
    assert sorted({*told, "__version__"}) == sorted(onrecord.__all__)
    assert set(onrecord.__all__) <= set(dir(onrecord))


def test_importing_the_package_loads_nothing_else() -> None:
    program = (
        "import sys; before = set(sys.modules); import onrecord; "
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()

    assert not {"eventsourcing", "msgspec", "rich", "sqlalchemy", "typer"} & set(loaded)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'onrecord' has no attribute 'Transcripts'"):
        _ = onrecord.Transcripts


def test_the_version_is_the_one_of_the_distribution() -> None:
    assert onrecord.__version__ == metadata.version("onrecord")


def _target(module: str, name: str) -> str:
    return f"{module}.{name}" if name in ("errors", "events") else f"{module}:{name}"
