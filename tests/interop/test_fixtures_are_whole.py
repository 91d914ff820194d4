"""What real programs left behind is there as its manifest says, opens, and tells nothing of anybody."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kept_runs import FIXTURES, kept_runs, manifest, unpack
from make_fixtures import README, with_table

from onrecord.projections.codes import CODES
from onrecord.transcript.storage import dbapi

MOST_BYTES = 3 << 20
HERMES = kept_runs("hermes")
CURSOR = " ▉"  # Hermes sends it behind a text that is still growing

# Nobody's home, no checkout, no key: what runs makes stands in a temporary folder of its own.
TELLING = re.compile(
    rb"/root/|/home/[a-z]+/|/Users/|/work/|site-packages/hermes_agent|"
    rb"\bsk-[A-Za-z0-9]{8}|\bgh[pousr]_[A-Za-z0-9]{8}|Bearer [A-Za-z0-9]|BEGIN [A-Z ]*PRIVATE KEY"
)


def test_there_are_runs_of_each_program() -> None:
    programs = {run.partition("/")[0] for run in kept_runs()}

    assert programs == {"hermes", "openai-agents", "langgraph"}


def test_they_are_small() -> None:
    size = sum(file.stat().st_size for file in FIXTURES.rglob("*") if file.is_file())

    assert size < MOST_BYTES


def test_the_readme_says_what_each_run_is() -> None:
    readme = README.read_text(encoding="utf-8")

    assert with_table(readme) == readme


@pytest.mark.parametrize("run", kept_runs())
def test_the_manifest_names_the_files_and_findings_that_exist(run: str) -> None:
    folder, said = FIXTURES / run, manifest(run)
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}

    assert files == {"manifest.json", *said["files"]}
    assert said["what"]
    assert said["version"]
    assert {fault["code"] for fault in said["faults"]} <= set(CODES)


@pytest.mark.parametrize("run", kept_runs())
def test_the_databases_are_sound(run: str, tmp_path: Path) -> None:
    unpack(run, tmp_path)
    databases = sorted(tmp_path.glob("*.db"))

    assert databases
    for database in databases:
        assert _query(database, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("run", kept_runs())
def test_they_tell_nothing_of_who_made_them(run: str) -> None:
    found = {
        (file.name, telling.decode())
        for file in FIXTURES.joinpath(run).rglob("*")
        if file.is_file()
        for telling in TELLING.findall(_content(file))
    }

    assert found == set()


@pytest.mark.parametrize("run", HERMES)
def test_what_was_shown_and_not_stored_is_so(run: str, tmp_path: Path) -> None:
    unpack(run, tmp_path)
    chat = "\n".join(_shown(tmp_path / "platform.jsonl"))
    rows = "\n".join(_rows(tmp_path / "state.db"))
    lost = [fault["shown"] for fault in manifest(run)["faults"] if "shown" in fault]

    assert [text for text in lost if text not in chat] == []
    assert [text for text in lost if text in rows] == []


@pytest.mark.parametrize("run", HERMES)
def test_what_was_stored_too_much_is_so(run: str, tmp_path: Path) -> None:
    unpack(run, tmp_path)
    rows = list(_rows(tmp_path / "state.db"))

    for fault in manifest(run)["faults"]:
        if text := fault.get("stored"):
            often = sum(text in row for row in rows)
            assert often >= (2 if fault["code"] == "duplicate-in-source" else 1), text


@pytest.mark.parametrize("run", HERMES)
def test_what_hermes_itself_knows_of_a_loss_is_there(run: str, tmp_path: Path) -> None:
    unpack(run, tmp_path)
    log = tmp_path.joinpath("logs", "gateway.log").read_text(encoding="utf-8")

    for fault in manifest(run)["faults"]:
        match fault.get("known_from"):
            case "delivery_obligations":
                contents = _query(tmp_path / "state.db", "SELECT content FROM delivery_obligations")
                assert any(fault["shown"] in content for (content,) in contents)
            case "gateway.log":
                ready = re.findall(r"response ready: .* response=(\d+) chars", log)
                unanswered = log.count("inbound message: ") > len(ready)
                assert str(len(fault["shown"])) in ready or unanswered
            case nobody:
                assert nobody is None


def _content(file: Path) -> bytes:
    content = file.read_bytes()
    return gzip.decompress(content) if file.suffix == ".gz" else content


def _query(database: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = dbapi.connect(str(database))
    try:
        found: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
    finally:
        connection.close()
    return found


def _rows(database: Path) -> Iterator[str]:
    """Give each row of a message as a text: what it says, and what it calls."""
    columns = "role, content, tool_calls, api_content"
    for row in _query(database, f"SELECT {columns} FROM messages ORDER BY id"):
        yield "\n".join(part for part in row if part)


def _shown(platform: Path) -> Iterator[str]:
    """Give each text that the platform took from the bot, without the cursor."""
    for line in platform.read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        if said["what"] in ("send", "edit"):
            yield said.get("text", "").removesuffix(CURSOR)
