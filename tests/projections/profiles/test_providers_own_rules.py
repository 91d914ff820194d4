"""The providers' own types, validators and templates accept what the profiles render."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jinja2
import pytest
from anthropic.types import MessageParam
from google.genai.types import Content
from hypothesis import given, settings
from jinja2.sandbox import ImmutableSandboxedEnvironment
from mistral_common.exceptions import MistralCommonException
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import (
    MistralRequestValidator,
    MistralRequestValidatorV3,
    MistralRequestValidatorV5,
    MistralRequestValidatorV11,
    MistralRequestValidatorV13,
    MistralRequestValidatorV15,
    ValidationMode,
)
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import ConfigDict, TypeAdapter, ValidationError

from onrecord.projections.profiles import render
from onrecord.projections.rows import Row
from row_lists import hostile, lawful, sample

pytestmark = pytest.mark.oracle

STRICT: Any = ConfigDict(extra="forbid")
TYPES: Mapping[str, tuple[str, TypeAdapter[Any]]] = {
    "openai": ("messages", TypeAdapter(list[ChatCompletionMessageParam], config=STRICT)),
    "responses": ("input", TypeAdapter(list[ResponseInputItemParam], config=STRICT)),
    "anthropic": ("messages", TypeAdapter(list[MessageParam], config=STRICT)),
    "gemini": ("contents", TypeAdapter(list[Content])),
}
VALIDATORS = (
    MistralRequestValidator,
    MistralRequestValidatorV3,
    MistralRequestValidatorV5,
    MistralRequestValidatorV11,
    MistralRequestValidatorV13,
    MistralRequestValidatorV15,
)


def exhaust(value: Any) -> None:
    """Read to the end what pydantic checks only as it is read."""
    if isinstance(value, Mapping):
        for inner in value.values():
            exhaust(inner)
    elif isinstance(value, list | Iterator) or type(value).__name__ == "ValidatorIterator":
        for inner in value:
            exhaust(inner)


def accepted(profile: str, rendered: dict[str, Any]) -> None:
    key, adapter = TYPES[profile]
    exhaust(adapter.validate_python(rendered[key]))


@given(rows=lawful() | hostile())
@settings(max_examples=100)
def test_the_types_of_the_providers_packages_accept_it(rows: list[Row]) -> None:
    for profile in TYPES:
        accepted(profile, render(rows, profile))


@pytest.mark.parametrize("profile", TYPES)
def test_the_types_are_no_blind_oracle(profile: str) -> None:
    for item in range(2):
        rendered = render(sample()[1:], profile)
        items = rendered[TYPES[profile][0]]
        items[item * 2]["no_such_field"] = 1
        with pytest.raises(ValidationError):
            accepted(profile, rendered)


def mistral_accepts(rendered: dict[str, Any]) -> None:
    """Hold the request against the validators of all tokenizers, as for serving."""
    request: Any = ChatCompletionRequest.model_validate({"model": "any", **rendered})
    for validator in VALIDATORS:
        validator(mode=ValidationMode.serving).validate_request(request)


@given(rows=lawful() | hostile())
@settings(max_examples=150)
def test_mistrals_validators_accept_it(rows: list[Row]) -> None:
    mistral_accepts(render(rows, "mistral"))


def test_mistrals_validators_are_no_blind_oracle() -> None:
    for place in (-1, -2):
        rendered = render(sample(), "mistral")
        del rendered["messages"][place]
        with pytest.raises(MistralCommonException):
            mistral_accepts(rendered)


# The rule of Mistral's templates, as in vLLM's examples/tool_chat_template_mistral.jinja and the
# tokenizer_config.json of Mistral-7B-Instruct-v0.3: calls and results stand between the turns.
MISTRAL_TEMPLATE = """
{%- set loop_messages = messages[1:] if messages[0]["role"] == "system" else messages %}
{%- for message in loop_messages | rejectattr("role", "equalto", "tool")
    | selectattr("tool_calls", "undefined") %}
  {%- if (message["role"] == "user") != (loop.index0 % 2 == 0) %}
    {{- raise_exception("After the optional system message, roles must alternate") }}
  {%- endif %}
{%- endfor %}
{%- for message in loop_messages %}
  {%- if message["role"] == "tool" or message["tool_calls"] is defined %}
    {%- for call in message["tool_calls"] or [message] %}
      {%- set id = call["id"] or call["tool_call_id"] %}
      {%- if id is not defined or id | length != 9 %}
        {{- raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}
      {%- endif %}
    {%- endfor %}
  {%- else %}{{ message["content"] }}{% endif %}
{%- endfor %}"""

# The rule of google/gemma-2-it and gemma-3-it (tokenizer_config.json): no tools, and in Gemma 3 the
# system message goes before the first user's text.
GEMMA_TEMPLATE = """
{%- set loop_messages = messages[1:] if messages[0]["role"] == "system" else messages %}
{%- for message in loop_messages %}
  {%- if (message["role"] == "user") != (loop.index0 % 2 == 0) %}
    {{- raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
  {%- endif %}
  {{- message["content"] | trim }}
{%- endfor %}"""


def refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


def template(source: str) -> jinja2.Template:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    return environment.from_string(source)


MISTRAL, GEMMA = template(MISTRAL_TEMPLATE), template(GEMMA_TEMPLATE)


@given(rows=lawful() | hostile())
@settings(max_examples=60)
def test_mistrals_chat_template_accepts_it(rows: list[Row]) -> None:
    MISTRAL.render(render(rows, "mistral"))


@given(rows=lawful() | hostile())
@settings(max_examples=60)
def test_gemmas_chat_template_accepts_a_conversation_without_tools(rows: list[Row]) -> None:
    without = [Row(role=r.role, text=r.text) for r in rows if r.role != "tool"]

    GEMMA.render(render(without, "mistral"))


def test_the_templates_are_no_blind_oracles() -> None:
    for chat_template in (MISTRAL, GEMMA):
        with pytest.raises(jinja2.TemplateError):
            chat_template.render(render([Row(role="user", text=t) for t in "ab"], "openai"))
    with pytest.raises(jinja2.TemplateError):
        MISTRAL.render(render(sample(), "openai"))
