"""A module has at most 400 lines, a function at most 70, and each a name that says something."""

from __future__ import annotations

import ast
from typing import Any

MODULE_LINES = 400
FUNCTION_LINES = 70
SAYS_NOTHING = {"utils", "util", "common", "helpers", "helper", "base", "misc", "tools"}


def test_no_module_is_too_long(everything: list[Any]) -> None:
    lengths = {str(module.path): len(module.text.splitlines()) for module in everything}

    assert {path: lines for path, lines in lengths.items() if lines > MODULE_LINES} == {}


def test_no_function_is_too_long(everything: list[Any]) -> None:
    too_long = {}
    for module in everything:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    too_long[f"{module.path}:{node.lineno} {node.name}"] = lines

    assert too_long == {}


def test_every_module_is_named_for_what_it_does(everything: list[Any]) -> None:
    names = {
        str(module.path): part.strip("_").removesuffix(".py")
        for module in everything
        for part in module.path.parts
    }

    assert {path: name for path, name in names.items() if name in SAYS_NOTHING} == {}


def test_every_module_says_what_it_is_for(everything: list[Any]) -> None:
    silent = [
        str(module.path)
        for module in everything
        if module.text.strip() and ast.get_docstring(module.tree) is None
    ]

    assert silent == []
