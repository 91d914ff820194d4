"""What a person sees of an audit, and its exit codes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onrecord.projections.auditing import MOST, WORST
from onrecord.transcript.events import DeliveryAttempted, DeliveryFailed, TurnFinalized
from onrecord.transcript.log import TranscriptLog

Command = Callable[..., Any]


def doubt(log: TranscriptLog, session: str, turns: int) -> None:
    for n in range(turns):
        log.append(
            session,
            DeliveryAttempted(delivery=f"d{n}", turn=f"t{n}", text="Yes."),
            DeliveryFailed(delivery=f"d{n}", definite=False, reason="timed out"),
            TurnFinalized(turn=f"t{n}"),
        )


def test_all_sessions_are_a_table_of_codes_and_of_the_worst_sessions(
    log: TranscriptLog, command: Command
) -> None:
    for n in range(WORST + 2):
        doubt(log, f"s{n}", n)

    done = command("audit")

    lines = done.out.splitlines()
    total = sum(range(WORST + 2))
    assert done.code == 1
    assert re.fullmatch(rf"delivery-in-doubt +{total} +{WORST + 1} +s11 \(11\), s10 .*", lines[1])
    assert lines[1].count("(") == MOST
    assert [line.split()[0] for line in lines[4 : 4 + WORST]] == [
        f"s{n}" for n in range(WORST + 1, 1, -1)
    ]
    assert lines[-2] == f"{total} findings in {WORST + 1} of {WORST + 1} sessions"
    assert max(map(len, lines)) <= 80


def test_one_session_and_details_tell_each_finding(log: TranscriptLog, command: Command) -> None:
    doubt(log, "a", 1)
    doubt(log, "b", 1)

    one, all_of_them = command("audit", "a").out, command("audit", "--details").out

    assert "nobody knows whether the user got this text" in " ".join(one.split())
    assert one.endswith("1 finding in 1 session\n")
    assert [line for line in all_of_them.splitlines() if line in ("a", "b")] == ["a", "b"]
    assert all_of_them.endswith("2 findings in 2 of 2 sessions\n")


def test_json_keeps_its_shape_and_counts(log: TranscriptLog, command: Command) -> None:
    doubt(log, "a", 2)

    told = command("audit", "--json")
    none = command("audit", "--code", "gap", "--json")

    assert told.code == 1
    assert [one["versions"] for one in told.json["findings"]] == [[1, 2], [4, 5]]
    assert {key: told.json[key] for key in ("counts", "sessions")} == {
        "counts": {"delivery-in-doubt": 2}, "sessions": 1,
    }  # fmt: skip
    assert (none.code, none.json) == (0, {"findings": [], "counts": {}, "sessions": 1})


def test_names_are_never_obeyed_by_the_terminal(log: TranscriptLog, command: Command) -> None:
    doubt(log, "s\x1b[31m", 1)

    for words in (["audit"], ["audit", "--details"], ["deliveries"]):
        assert "\x1b" not in command(*words).out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["audit", "--code", "lost"], "no finding has the code 'lost'; there are delivered-not"),
        (["audit", "--since", "yesterday"], "--since takes a time (2026-11-30"),
        (["audit", "--since", "999999w"], "--since takes a time"),
        (["audit", "--format", "xml"], "--format takes one of table, json, csv, parquet, sarif"),
        (["audit", "--out", "page.txt"], "--out takes no table"),
        (["audit", "nobody"], "no session 'nobody'"),
        (["audit", "--format", "csv", "--out", "no/such/place"], "can't write no/such/place"),
        (["deliveries", "--status", "lost"], "--status takes one of not_sent, in_doubt"),
        (["deliveries", "--kind", "mail"], "--kind takes one of answer, notice"),
        (["deliveries", "--redact-key", "nothing"], "can't read nothing"),
    ],
)
def test_an_error_is_one_line_that_says_what_to_do(
    log: TranscriptLog, command: Command, words: list[str], says: str
) -> None:
    doubt(log, "a", 1)

    done = command(*words)

    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert says in done.err


def test_the_log_itself_is_never_written_over(
    log: TranscriptLog, command: Command, tmp_path: Path
) -> None:
    doubt(log, "a", 1)

    done = command("audit", "--format", "csv", "--out", str(tmp_path / "log.db"))

    assert done.code == 2
    assert "is a database and was left untouched" in done.err
    assert log.version("a") == 3
