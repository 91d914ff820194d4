"""The command does on PostgreSQL what it does on a file, and shows no password."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from older_logs import make_older_log

from onrecord.transcript.storage.schema import SCHEMA_VERSION

STORY: list[dict[str, Any]] = [
    {"type": "UserMessageReceived", "turn": "t1", "message": "u1", "text": "Is it up?"},
    {"type": "DeliveryAttempted", "turn": "t1", "delivery": "d1", "text": "Yes."},
    {"type": "DeliveryFailed", "delivery": "d1", "definite": False, "reason": "timed out"},
    {"type": "TurnFinalized", "turn": "t1", "outcome": "completed", "text": "Yes."},
]


def run(url: str, *words: str, at: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "200"}
    env.pop("ONRECORD_DB", None)
    return subprocess.run(
        [sys.executable, "-m", "onrecord.projections.cli", "--db", url, *words],
        cwd=at,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_import_show_audit_verify_and_export(postgres_url: str, tmp_path: Path) -> None:
    lines = [json.dumps({"session": "s1", **event}) for event in STORY]
    (tmp_path / "story.jsonl").write_text("\n".join(lines))

    imported = run(postgres_url, "import", "story.jsonl", at=tmp_path)
    again = run(postgres_url, "import", "story.jsonl", at=tmp_path)
    shown = run(postgres_url, "show", "s1", "--json", at=tmp_path)
    audited = run(postgres_url, "audit", "--json", at=tmp_path)
    verified = run(postgres_url, "verify", at=tmp_path)
    exported = run(postgres_url, "export", "s1", at=tmp_path)
    delivered = run(postgres_url, "deliveries", "s1", "--json", at=tmp_path)
    listed = run(postgres_url, "sessions", at=tmp_path)

    assert imported.stdout == "story.jsonl: 4 events added, 0 known already\n"
    assert again.stdout == "story.jsonl: 0 events added, 4 known already\n"
    assert [row["text"] for row in json.loads(shown.stdout)["rows"]] == ["Is it up?", "Yes."]
    assert json.loads(audited.stdout)["findings"][0]["code"] == "delivery-in-doubt"
    assert "4 records in 1 session verified" in verified.stdout
    assert len(exported.stdout.splitlines()) == 4
    assert json.loads(delivered.stdout)["deliveries"][0]["status"] == "in_doubt"
    assert "s1" in listed.stdout


def test_migrate_takes_an_older_log_and_nothing_else(postgres_url: str, tmp_path: Path) -> None:
    empty = run(postgres_url, "migrate", at=tmp_path)
    make_older_log(postgres_url, 1)
    refused = run(postgres_url, "sessions", at=tmp_path)
    done = run(postgres_url, "migrate", at=tmp_path)
    again = run(postgres_url, "migrate", at=tmp_path)

    assert "there is no log in it yet" in empty.stderr
    assert "onrecord migrate" in refused.stderr
    assert f"from schema 1 to {SCHEMA_VERSION}" in done.stdout
    assert "nothing to do" in again.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [(["show", "nobody"], "no session 'nobody'"), (["migrate"], "schema")],
)
def test_no_page_shows_a_password(
    postgres_url: str, tmp_path: Path, words: list[str], says: str
) -> None:
    url = postgres_url.replace("postgres@", "postgres:geheim@")
    (tmp_path / "story.jsonl").write_text(json.dumps({"session": "s1", **STORY[0]}))
    assert run(url, "import", "story.jsonl", at=tmp_path).returncode == 0
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT version FROM sessions").fetchone() == (1,)

    done = run(url, *words, at=tmp_path)

    assert says in done.stdout + done.stderr
    assert "geheim" not in done.stdout + done.stderr
