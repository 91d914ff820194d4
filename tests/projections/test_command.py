"""The command: its JSON contract, its exit codes, and one clear line for each error."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, "-m", "onrecord.projections.cli"]
STORY: list[dict[str, Any]] = [
    {"type": "UserMessageReceived", "turn": "t1", "message": "u1", "text": "Is it up?"},
    {
        "type": "AssistantMessageProduced",
        "turn": "t1",
        "message": "m1",
        "text": "",
        "tool_calls": [{"id": "c1", "name": "curl", "arguments": "{}"}],
    },
    {"type": "ToolResultReceived", "turn": "t1", "tool_call": "c1", "text": "200"},
    {"type": "DeliveryAttempted", "turn": "t1", "delivery": "d1", "text": "Yes."},
    {"type": "DeliveryFailed", "delivery": "d1", "definite": False, "reason": "timed out"},
    {"type": "TurnFinalized", "turn": "t1", "outcome": "completed", "text": "Yes."},
    {"type": "Heartbeat", "beat": 1, "novelty": {"kept": True}},
]


def run(*words: str, at: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "80", "ONRECORD_DB": f"sqlite:///{at}/log.db"}
    return subprocess.run(
        [*COMMAND, *words],
        cwd=at,
        env=env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("command")
    lines = "".join(json.dumps({"session": "s1", **event}) + "\n" for event in STORY)
    (place / "story.jsonl").write_text(lines)
    done = run("import", "story.jsonl", at=place)
    assert (done.returncode, done.stdout) == (0, "story.jsonl: 7 events added, 0 known already\n")
    return place


def test_importing_twice_adds_nothing(place: Path) -> None:
    done = run("import", "-", at=place, stdin=(place / "story.jsonl").read_text())

    assert done.stdout == "standard input: 0 events added, 7 known already\n"


def test_show_json_is_the_contract(place: Path) -> None:
    shown = json.loads(run("show", "s1", "--json", at=place).stdout)

    call = {"id": "c1", "name": "curl", "arguments": "{}"}
    assert shown == {
        "session": "s1",
        "version": 7,
        "rows": [
            {"role": "user", "text": "Is it up?", "turn": "t1", "versions": [1]},
            {"role": "assistant", "text": "", "origin": "produced", "tool_calls": [call],
             "turn": "t1", "versions": [2]},
            {"role": "tool", "text": "200", "tool_call": "c1", "turn": "t1", "versions": [3]},
            {"role": "assistant", "text": "Yes.", "origin": "delivered", "delivery": "in_doubt",
             "turn": "t1", "versions": [4, 5]},
        ],
    }  # fmt: skip


def test_show_at_a_version_shows_what_stood_then(place: Path) -> None:
    shown = json.loads(run("show", "s1", "--at", "1", "--json", at=place).stdout)

    assert (shown["version"], [row["text"] for row in shown["rows"]]) == (1, ["Is it up?"])


@pytest.mark.parametrize(
    ("profile", "field"),
    [
        ("openai", "messages"),
        ("mistral", "messages"),
        ("converse", "messages"),
        ("anthropic", "messages"),
        ("responses", "input"),
        ("gemini", "contents"),
    ],
)
def test_show_as_gives_the_fields_of_the_request(place: Path, profile: str, field: str) -> None:
    shown = json.loads(run("show", "s1", "--as", profile, "--json", at=place).stdout)

    assert "Yes." in json.dumps(shown[field])


def test_audit_exits_one_with_findings_and_zero_without(place: Path, tmp_path: Path) -> None:
    found = run("audit", "--json", at=place)
    none = run("import", "-", at=tmp_path, stdin=json.dumps({"session": "s", **STORY[0]}))

    assert found.returncode == 1
    assert json.loads(found.stdout)["findings"] == [
        {"code": "delivery-in-doubt", "session": "s1", "turn": "t1", "versions": [4, 5],
         "detail": "nobody knows whether the user got this text"}
    ]  # fmt: skip
    assert none.returncode == 0
    clean = run("audit", at=tmp_path)
    assert (clean.returncode, clean.stdout) == (0, "nothing found in 1 session\n")


def test_export_and_import_give_the_same_events(place: Path, tmp_path: Path) -> None:
    run("export", "s1", "--out", str(tmp_path / "out.jsonl"), at=place)
    run("import", "out.jsonl", at=tmp_path)

    first = [json.loads(line) for line in run("export", "s1", at=place).stdout.splitlines()]
    again = [json.loads(line) for line in run("export", "s1", at=tmp_path).stdout.splitlines()]
    own = {"position", "digest", "imported_at"}
    assert [{k: v for k, v in line.items() if k not in own} for line in first] == [
        {k: v for k, v in line.items() if k not in own} for line in again
    ]
    assert first[6]["novelty"] == {"kept": True}
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "log.db").stat().st_mode) == 0o600


def test_verify_says_what_it_saw_and_what_it_cannot_see(place: Path) -> None:
    good = run("verify", at=place)
    heads = json.loads(run("verify", "--json", at=place).stdout)["heads"]
    kept = run("verify", "--head", heads[0], at=place)
    other = run("verify", "--head", heads[0][:-2] + "00", at=place)

    assert good.returncode == 0
    assert "7 records in 1 session verified" in good.stdout
    assert "kept elsewhere" in good.stdout
    assert kept.returncode == 0
    assert other.returncode == 1


def test_deliveries_tell_attempts_and_failures(place: Path) -> None:
    told = json.loads(run("deliveries", "s1", "--json", at=place).stdout)["deliveries"][0]

    assert (told["delivery"], told["status"], told["text"]) == ("d1", "in_doubt", "Yes.")
    assert told["failures"][0]["reason"] == "timed out"
    assert "unclear from 0: timed out" in run("deliveries", "s1", at=place).stdout


def test_text_is_never_obeyed_by_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J[red]bold[/red] \u202e"
    line = {"session": "s\x1b[31m", "type": "UserMessageReceived", "message": "u", "text": evil}
    run("import", "-", at=tmp_path, stdin=json.dumps(line))

    pages = [run(*words, at=tmp_path).stdout for words in (["sessions"], ["show", "s\x1b[31m"])]
    assert not any(char in page for page in pages for char in "\x1b\x07\u202e")
    assert "[red]bold[/red]" in pages[1]


def test_joiners_and_the_ideographic_space_are_shown_as_they_are(tmp_path: Path) -> None:
    said = "می\u200cخواهم \U0001f469\u200d\U0001f4bb 東京\u3000駅"
    line = {"session": "s", "type": "UserMessageReceived", "message": "u", "text": said}
    run("import", "-", at=tmp_path, stdin=json.dumps(line))

    assert said in run("show", "s", at=tmp_path).stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["show"], "Missing argument"),
        (["telex"], "No such command 'telex'"),
        (["sessions", "--telex"], "No such option"),
        (["show", "-100123"], "a name that begins with - stands after --"),
        (["show", "nobody"], "no session 'nobody'"),
        (["show", "s1", "--as", "telex"], "--as takes one of neutral, openai"),
        (["import", "nothing.jsonl"], "can't read nothing.jsonl: No such file"),
        (["import", "bad.jsonl"], "bad.jsonl, line 2: expected"),
        (["verify", "--head", "x"], "--head takes SESSION:VERSION:CHAIN"),
        (["--db", "sqlite:///none.db", "sessions"], "none.db; check the path"),
        (["--db", "sqlite:///story.jsonl", "sessions"], "left untouched"),
        (["export", "s1", "--out", "no/such/folder"], "can't write no/such/folder"),
        (["export", "s1", "--out", "log.db"], "log.db is a database and was left untouched"),
        (["show", "s1", "--at", "8"], "its newest is 7"),
        (["--db", "sqlite://", "sessions"], "a log in memory"),
        (["--db", "sqlite://", "migrate"], "a log in memory"),
        (["--db", "sqlite:///log.db?mode=ro", "sessions"], "takes no options (mode)"),
        (["--db", "sqlite://log.db", "import", "story.jsonl"], "use sqlite:///path"),
    ],
)
def test_an_error_is_one_line_that_says_what_to_do(
    place: Path, words: list[str], says: str
) -> None:
    (place / "bad.jsonl").write_text(
        json.dumps({"session": "s2", **STORY[0]}) + '\n{"session": "s2", "type": "TurnFinalized"}\n'
    )
    done = run(*words, at=place)

    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert "s2" not in run("sessions", at=place).stdout


def test_a_line_that_is_wrong_makes_no_log_and_no_folder(place: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"session": "s"}\n')
    files = (str(place / "story.jsonl"), "bad.jsonl")
    done = run("--db", "no/such/log.db", "import", *files, at=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert "bad.jsonl, line 1: expected" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]


def test_check_says_what_is_not_projected_yet(place: Path, tmp_path: Path) -> None:
    assert run("import", str(place / "story.jsonl"), at=tmp_path).returncode == 0

    before = run("check", at=tmp_path)
    told = json.loads(run("check", "--json", at=tmp_path).stdout)
    assert run("rebuild", at=tmp_path).returncode == 0
    after = run("check", at=tmp_path)

    assert "0 of 1 session stored" in before.stdout
    assert "onrecord project" in before.stdout
    assert told == {"faults": [], "sessions": 1, "behind": ["s1"]}
    assert after.stdout == "all that is stored follows from the log\n"


def test_a_pipe_gets_no_colour_and_a_closed_one_no_trace(place: Path) -> None:
    assert "\x1b" not in run("show", "s1", at=place).stdout
    piped = subprocess.run(
        f"{' '.join(COMMAND)} export s1 | head -c 1",
        shell=True,
        cwd=place,
        env={**os.environ, "ONRECORD_DB": f"sqlite:///{place}/log.db"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert piped.stderr == ""


def test_a_name_that_is_wrong_imports_nothing_and_makes_no_log(place: Path, tmp_path: Path) -> None:
    done = run("import", str(place / "story.jsonl"), "nothing.jsonl", at=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert list(tmp_path.iterdir()) == []


def test_no_rows_have_no_heading(place: Path) -> None:
    shown = run("show", "s1", "--at", "0", at=place).stdout

    assert shown.splitlines()[1:] == ["no rows: nothing was said that a model would see"]


def test_a_session_named_by_a_uuid_stays_on_one_line(tmp_path: Path) -> None:
    name = "0b5f2a4e-3f0e-4c58-9a51-1f2d3c4b5a69"
    run("import", "-", at=tmp_path, stdin=json.dumps({"session": name, **STORY[0]}))

    assert name in run("sessions", at=tmp_path).stdout


def test_the_version_is_told_whatever_else_is_asked(place: Path) -> None:
    done = run("--version", "show", "s1", at=place)

    assert (done.returncode, done.stdout.split()[0], len(done.stdout.split())) == (0, "onrecord", 2)


@pytest.mark.parametrize("words", ["sessions", "sessions --json", "export s1", "--version"])
def test_output_that_cannot_be_written_is_an_error_in_one_line(place: Path, words: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("/dev/full is Linux's")
    done = subprocess.run(
        f"{' '.join(COMMAND)} {words} > /dev/full",
        shell=True,
        cwd=place,
        env={**os.environ, "COLUMNS": "wide", "ONRECORD_DB": f"sqlite:///{place}/log.db"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "write the output: No space left on device" in done.stderr


def test_an_export_replaces_a_file_whole_and_for_its_owner_alone(
    place: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("former")
    out.chmod(0o644)

    run("export", "nobody", "--out", str(out), at=place)
    assert out.read_text() == "former"
    run("export", "s1", "--out", str(out), at=place)
    assert len(out.read_text().splitlines()) == 7
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert run("export", "s1", "--out", "/dev/stdout", at=place).stdout == out.read_text()
