"""Each error stands in one tree, and the tree is drawn where the errors are made."""

from __future__ import annotations

import ast
import builtins
import re
from importlib import import_module
from typing import Any

import onrecord.transcript.errors as errors

BRANCH = re.compile(r"^ {4}(?P<lead>(?:│   |    )*)[├└]── (?P<name>\w+)(?P<meaning>.*)")
# An error of a higher folder is drawn with the module that raises it.
ELSEWHERE = re.compile(r"\(raised by (?P<module>[\w.]+)\)")
ROOT = "OnRecordError"
# Errors between two modules of one folder, which no caller ever sees.
INTERNAL = {
    "Changed", "CommitUnclear", "Damaged", "Overtaken", "Poisoned", "Superseded", "Touched",
    "Unreadable",
}  # fmt: skip


def drawn_tree(docstring: str) -> dict[str, str]:
    """Read the drawing: error -> the error that it is drawn under."""
    parents: dict[str, str] = {}
    path = [ROOT]
    for branch in filter(None, map(BRANCH.match, docstring.splitlines())):
        depth = len(branch["lead"]) // 4 + 1
        parents[branch["name"]] = path[depth - 1]
        path[depth:] = [branch["name"]]
    return parents


def raised_elsewhere(docstring: str) -> dict[str, type[Exception]]:
    found = {}
    for branch in filter(None, map(BRANCH.match, docstring.splitlines())):
        if elsewhere := ELSEWHERE.search(branch["meaning"]):
            found[branch["name"]] = getattr(import_module(elsewhere["module"]), branch["name"])
    return found


def _defined() -> dict[str, type[Exception]]:
    return {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type)
        and issubclass(value, Exception)
        and value.__module__ == errors.__name__
    }


def test_the_drawing_is_the_tree() -> None:
    assert errors.__doc__ is not None
    classes = {**_defined(), **raised_elsewhere(errors.__doc__)}

    actual = {name: cls.__bases__[0].__name__ for name, cls in classes.items() if name != ROOT}
    assert drawn_tree(errors.__doc__) == actual


def test_each_error_says_what_it_means_and_answers_the_three_questions() -> None:
    for name, cls in _defined().items():
        assert vars(cls).get("__doc__"), f"{name} has no docstring"
        assert issubclass(cls, errors.OnRecordError)
        assert cls.stored in ("yes", "no", "unknown")
        assert isinstance(cls.may_send, bool)
        assert isinstance(cls.may_retry, bool)


def test_an_error_keeps_its_facts_as_attributes() -> None:
    error = errors.WrongExpectedVersion("moved on", session="s", expected=3, actual=5)

    assert (error.session, error.expected, error.actual) == ("s", 3, 5)
    assert str(error) == "moved on"


def test_no_public_error_stands_outside_the_tree(code: list[Any]) -> None:
    outside = []
    for module in code:
        if module.path.is_relative_to("gateway/demo") or module.path.name == "errors.py":
            continue  # the demo is a program of its own
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            if node.name in INTERNAL:
                continue
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            if any(_is_builtin_error(base) for base in bases) and not set(bases) & set(_defined()):
                outside.append(f"{module.path}:{node.lineno} {node.name}")

    assert outside == []


def _is_builtin_error(name: str) -> bool:
    """Tell whether a name is an error of Python's; what is a BaseException alone isn't an error."""
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, Exception)
