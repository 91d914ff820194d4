"""The service model of Bedrock's Converse, as botocore ships it, accepts what we render."""

from __future__ import annotations

import functools
import re
from typing import Any

import pytest
from hypothesis import given, settings

from onrecord.projections.profiles import render
from onrecord.projections.rows import Row
from row_lists import hostile, lawful, sample

# Untyped, and a large package for one service's model: checked where it is installed.
loaders: Any = pytest.importorskip("botocore.loaders")
model: Any = pytest.importorskip("botocore.model")
validate: Any = pytest.importorskip("botocore.validate")
pytestmark = pytest.mark.oracle


@functools.cache
def service() -> Any:
    return model.ServiceModel(loaders.Loader().load_service_model("bedrock-runtime", "service-2"))


def refusals(rendered: dict[str, Any]) -> list[str]:
    """Return what botocore and the patterns of the model, which the service checks, refuse."""
    shape = service().shape_for("ConverseRequest")
    report = validate.ParamValidator().validate({"modelId": "any", **rendered}, shape)
    found = [report.generate_report()] if report.has_errors() else []
    return found + list(_mismatches(rendered["messages"], shape.members["messages"]))


def _mismatches(value: Any, shape: Any) -> Any:
    if shape.type_name == "list":
        for inner in value:
            yield from _mismatches(inner, shape.member)
    elif shape.type_name == "structure" and not getattr(shape, "is_document_type", False):
        for name, inner in value.items():
            yield from _mismatches(inner, shape.members[name])
    elif shape.type_name == "string":
        pattern = shape.metadata.get("pattern", "(?s:.*)")
        if not re.fullmatch(pattern, value) or len(value) > shape.metadata.get("max", len(value)):
            yield f"{value!r} has not the form {pattern}"


@given(rows=lawful() | hostile())
@settings(max_examples=30)
def test_the_service_model_accepts_it(rows: list[Row]) -> None:
    assert refusals(render(rows, "converse")) == []


@pytest.mark.parametrize(("key", "value"), [("toolUseId", "no id!"), ("input", {1}), ("name", "")])
def test_the_service_model_is_no_blind_oracle(key: str, value: object) -> None:
    rendered = render(sample(), "converse")
    rendered["messages"][1]["content"][1]["toolUse"][key] = value

    assert refusals(rendered)
