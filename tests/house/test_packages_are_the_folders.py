"""Packages are listed by hand, so a test holds the list against the folders."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any


def test_each_folder_with_code_is_a_listed_package(
    pyproject: Mapping[str, Any], code: list[Any]
) -> None:
    folders = {"onrecord", *("onrecord." + ".".join(module.path.parent.parts) for module in code)}

    mapping = pyproject["tool"]["setuptools"]["package-dir"]
    assert folders == set(mapping)
    assert pyproject["tool"]["setuptools"]["packages"] == list(mapping)


def test_each_package_stands_in_its_own_folder_and_is_typed(
    pyproject: Mapping[str, Any], root: Path
) -> None:
    for package, folder in pyproject["tool"]["setuptools"]["package-dir"].items():
        expected = package.removeprefix("onrecord.").replace(".", "/")
        assert folder == (expected if package != "onrecord" else ".import/onrecord")
        assert (root / folder / "py.typed").is_file(), f"{folder} has no py.typed"


def test_the_links_for_type_checkers_are_the_top_folders(root: Path) -> None:
    links = {path.name: path for path in (root / ".import/onrecord").iterdir() if path.is_symlink()}

    assert set(links) == {"agent", "gateway", "projections", "transcript"}
    assert all(link.resolve() == root / name for name, link in links.items())


def test_an_init_is_the_api_loaded_lazily_or_not_and_nothing_else(code: list[Any]) -> None:
    for module in code:
        if module.path.name != "__init__.py":
            continue
        for statement in module.tree.body:
            assert _is_api(statement), f"{module.path}:{statement.lineno} is more than the API"


def test_nothing_at_the_root_makes_the_folders_importable(root: Path) -> None:
    unwanted = ["conftest.py", "__init__.py", "setup.py", "tests/__init__.py"]

    assert [name for name in unwanted if (root / name).exists()] == []


def test_each_added_command_can_be_loaded() -> None:
    for entry in entry_points(group="onrecord.commands"):
        assert inspect.isfunction(entry.load()), f"{entry.value} is no function"


def _is_api(statement: ast.stmt) -> bool:
    match statement:
        case ast.ImportFrom() | ast.Import():
            return True
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return all(_is_api(inner) for inner in statement.body)
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name == "__all__" or (name.startswith("_") and name.isupper())
        case ast.FunctionDef(name=name):
            return name in ("__getattr__", "__dir__")
        case _:
            return False
