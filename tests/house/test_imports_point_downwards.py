"""A folder imports only what stands below it; agent and gateway never import each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import pytest

# Folder -> the folders whose modules it may import. The longest name that fits a module counts.
ALLOWED = {
    "transcript": {"transcript"},
    "projections": {"projections", "transcript"},
    "agent": {"agent", "projections", "transcript"},
    "gateway": {"gateway", "projections", "transcript"},
    "gateway.demo": {"gateway.demo", "gateway", "agent", "projections", "transcript"},
}


def test_each_import_is_allowed_where_it_stands(code: list[Any]) -> None:
    breaches = []
    for module in code:
        here = _folder(".".join(module.path.with_suffix("").parts))
        for line, name in imports(module.tree):
            if not _may_import(here, name):
                breaches.append(f"{module.path}:{line} imports {name}")

    assert breaches == []


@pytest.mark.parametrize(
    ("here", "source"),
    [
        ("transcript", "from onrecord.projections.rows import Row"),
        ("transcript", "import onrecord.agent"),
        ("projections", "from onrecord.gateway.demo import app"),
        ("projections", "from onrecord import gateway"),
        ("projections", "def late():\n    from onrecord.agent.turn import Turn"),
        ("agent", "from onrecord.gateway import delivery"),
        ("agent", "import_module('onrecord.gateway.inbox')"),
        ("gateway", "from onrecord.agent.turn import Turn"),
        ("gateway", "from onrecord.gateway.demo import app"),
        ("gateway", "from onrecord import Agent"),
        ("gateway", "import agent"),
    ],
)
def test_a_breach_is_seen(here: str, source: str) -> None:
    names = [name for _, name in imports(ast.parse(source))]

    assert [_may_import(here, name) for name in names] == [False]


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and full name of every module imported, wherever it stands in the file."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module="onrecord", names=names):
                yield from ((node.lineno, f"onrecord.{alias.name}") for alias in names)
            case ast.ImportFrom(module=module, level=level):
                yield node.lineno, "." * level + (module or "")
            case ast.Call(
                func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def _may_import(here: str, name: str) -> bool:
    if name.startswith("."):
        return False
    top, _, rest = name.partition(".")
    if top in ALLOWED:
        return False  # a folder without its namespace
    if top != "onrecord" or name == "onrecord.__version__":
        return True
    # The root package hands out names of every folder, so code says the module instead.
    return _folder(rest) in ALLOWED[here]


def _folder(dotted: str) -> str:
    fitting = [name for name in ALLOWED if f"{dotted}.".startswith(f"{name}.")]
    return max(fitting, key=len, default="")
