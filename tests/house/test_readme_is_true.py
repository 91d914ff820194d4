"""The README's chat loop runs as it stands, on a real model server, client and chat platform."""

from __future__ import annotations

import json
import re
import secrets
import threading
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from onrecord.gateway.demo.chat import Client, DemoPlatform
from onrecord.gateway.demo.processes import server
from onrecord.projections.transcript import build
from onrecord.transcript.log import TranscriptLog

SCRIPT = {
    "When?": [[{"text": "At "}, {"text": "nine."}]],
    "Where?": [[{"text": "Pier four."}]],
}


def _block(readme: str, language: str, number: int = 0) -> str:
    return str(re.findall(rf"```{language}\n(.*?)```", readme, re.DOTALL)[number])


def test_the_chat_loop_takes_about_fifteen_lines(root: Path) -> None:
    code = _block((root / "README.md").read_text(), "python")
    body = code.partition("def on_message")[2]

    assert len([line for line in body.splitlines() if line.strip()]) <= 16


@pytest.mark.faults
def test_the_chat_loop_runs(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = _block((root / "README.md").read_text(), "python")
    token = secrets.token_hex(16)
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT))
    monkeypatch.chdir(tmp_path)

    with (
        server("model", token, str(script)) as model,
        server("platform", token, str(tmp_path / "received.jsonl")) as platform,
    ):
        names: dict[str, Any] = {
            "client": OpenAI(base_url=f"http://127.0.0.1:{model.port()}/v1", api_key=token),
            "platform": DemoPlatform(Client(platform.port(), token)),
        }
        exec(compile(code, "README.md", "exec"), names)
        names["on_message"]("chat-1", "1", "When?")
        names["on_message"]("chat-1", "1", "When?")
        names["on_message"]("chat-1", "2", "Where?")
        names["log"].close()

    with TranscriptLog.open(f"sqlite:///{tmp_path}/bot.db", create=False) as log:
        rows = build(log, "chat-1").rows
    assert [(row.role, row.text, row.delivery) for row in rows] == [
        ("user", "When?", ""),
        ("assistant", "At nine.", "delivered"),
        ("user", "Where?", ""),
        ("assistant", "Pier four.", "delivered"),
    ]
    assert "At nine." in (tmp_path / "received.jsonl").read_text()
    assert not [t for t in threading.enumerate() if t.name == "onrecord-lease"]
