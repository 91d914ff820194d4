"""The model of the interop runs says what its script tells it to, whole or streamed, and fails on command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from model_server import Model, Script

POLL_SECONDS = 0.01


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Model]:
    with Model(Script([], tmp_path / "requests.jsonl")) as served:
        serving = Thread(target=served.serve_forever, args=(POLL_SECONDS,))
        serving.start()
        yield served
        served.shutdown()
        serving.join()


def script(model: Model, *replies: dict[str, Any]) -> None:
    httpx.put(f"{model.url}/script", json=replies).raise_for_status()


def ask(model: Model, text: str, **more: Any) -> httpx.Response:
    body = {"messages": [{"role": "user", "content": text}], **more}
    return httpx.post(f"{model.url}/chat/completions", json=body)


def streamed(model: Model, text: str) -> tuple[str, str | None, bool]:
    """Return what came as text, the finish reason, and whether the connection was reset."""
    said, finish, reset = "", None, False
    body = {"stream": True, "messages": [{"role": "user", "content": text}]}
    try:
        with httpx.stream("POST", f"{model.url}/chat/completions", json=body) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: {"):
                    (choice,) = json.loads(line.removeprefix("data: "))["choices"]
                    said += choice["delta"].get("content") or ""
                    finish = choice["finish_reason"]
    except httpx.ReadError:
        reset = True
    return said, finish, reset


def test_replies_are_given_in_order_and_so_often_and_then_the_message_comes_back(
    model: Model,
) -> None:
    script(model, {"to": "a", "text": "first"}, {"text": "then", "times": 2})

    answers = [ask(model, text).json()["choices"][0] for text in ("a", "a", "b", "a")]

    assert [each["message"]["content"] for each in answers] == [
        "first",
        "then",
        "then",
        "You said: a",
    ]


def test_a_reply_may_ask_for_words_anywhere_in_the_request(model: Model) -> None:
    script(model, {"anywhere": "summarise", "text": "A summary."})

    assert "You said" in ask(model, "Hello.").text
    assert "A summary." in ask(model, "Hello.", system="summarise").text


def test_calls_come_with_ids_and_arguments_as_json(model: Model) -> None:
    script(model, {"calls": [{"name": "look", "arguments": {"at": "it"}}]})

    choice = ask(model, "Look.").json()["choices"][0]

    (call,) = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls"
    assert call["function"] == {"name": "look", "arguments": '{"at": "it"}'}
    assert call["id"]


def test_a_stream_is_whole_or_cut_or_reset(model: Model) -> None:
    text = "One, two, three, four."
    script(
        model,
        {"to": "whole", "text": text},
        {"to": "cut", "text": text, "cut": 10},
        {"to": "reset", "text": text, "cut": 10, "reset": True},
    )

    assert streamed(model, "whole") == (text, "stop", False)
    assert streamed(model, "cut") == ("One, two, ", None, False)
    said, finish, reset = streamed(model, "reset")
    assert (finish, reset) == (None, True)
    assert "One, two, ".startswith(said)  # a reset may take what wasn't read yet


def test_an_error_has_the_status_and_the_words_of_the_script(model: Model) -> None:
    script(model, {"status": 400, "text": "on strike"})

    answer = ask(model, "Work.")

    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert answer.json()["error"]["message"] == "on strike"


def test_requests_are_kept(model: Model, tmp_path: Path) -> None:
    ask(model, "Keep this.")

    (line,) = tmp_path.joinpath("requests.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["messages"][0]["content"] == "Keep this."
