"""`replay --verify` names the first model call whose input would differ now, and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent.turn import Agent
from onrecord.gateway.demo.play import SESSION, perform
from onrecord.projections import turn_rows
from onrecord.projections.profiles import PROFILES, render
from onrecord.projections.rerendering import Rerendering, rerender
from onrecord.projections.transcript import build
from onrecord.transcript import events as e
from onrecord.transcript.log import TranscriptLog
from stories import sent, user


def ask(log: TranscriptLog, turn: str, **said: Any) -> int:
    """Ask a model with what stands in the session, as an agent does; return the call's version."""
    seen = build(log, "s")
    given: dict[str, Any] = {
        "rendered": render(seen.rows, "openai"),
        "version": seen.version,
        "profile": "openai",
    }
    Agent(log, "s").turn(turn).model_called("small", **(given | said))
    return log.version("s")


def checked(log: TranscriptLog) -> Rerendering:
    return rerender("s", lambda: log.read("s"))


def a_chat(log: TranscriptLog) -> None:
    log.append("s", user("u1", "Weather?"))
    ask(log, "t1")
    call = e.ToolCall("c1", "weather")
    log.append("s", e.AssistantMessageProduced(turn="t1", message="m1", tool_calls=[call]))
    log.append("s", e.ToolResultReceived(turn="t1", tool_call="c1", text="Rain."))
    ask(log, "t1")
    log.append("s", *sent("d1", "It rains.", turn="t1"), e.TurnFinalized(turn="t1"))


def test_calls_that_render_the_same_are_counted(log: TranscriptLog) -> None:
    a_chat(log)
    log.append("s", e.TranscriptRewound(to_turn="t1"))  # later: it changes no call's input

    assert checked(log) == Rerendering("s", calls=2, same=2)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_profile_is_found_where_the_call_names_none(log: TranscriptLog, profile: str) -> None:
    log.append("s", user("u1", "Weather?"), *sent("d1", "Rain or", turn="t1"))
    rows = build(log, "s").rows
    request = render(rows, profile, annotate=True)
    alone = next(value for name, value in request.items() if "system" not in name)

    for rendered in (request, alone, render(rows, profile)):
        ask(log, "t1", rendered=rendered, profile="", version=3)

    assert checked(log) == Rerendering("s", calls=3, same=3)


def test_an_event_that_came_in_before_the_call_was_written_is_named(log: TranscriptLog) -> None:
    a_chat(log)
    given = render(build(log, "s").rows, "openai")
    log.append("s", user("u2", "And tomorrow?", "t2"))
    at = ask(log, "t1", rendered=given)

    changed = checked(log).changed
    assert changed is not None
    assert (changed.version, changed.at, changed.events) == (at, at - 1, (at - 1,))
    assert changed.cause == (
        f"the model was given version {at - 2}, not {at - 1}: what came in before the call was "
        f"written isn't in it: {at - 1} user “And tomorrow?”"
    )
    (difference,) = changed.differences
    assert (difference.kind, getattr(difference.after, "text", "")) == ("added", "And tomorrow?")


def test_a_rule_that_changed_is_found_by_what_it_renders_otherwise(
    log: TranscriptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append("s", user("u1", "a"), e.UserMessageRetracted(message="u1"))
    at = ask(log, "t1")
    monkeypatch.setattr(turn_rows, "RETRACTED", "[taken back]")

    changed = checked(log).changed
    assert changed is not None
    assert (changed.version, changed.at, changed.events) == (at, at - 1, ())
    assert changed.cause.startswith(
        f"neither version {at - 1} nor one near it renders so under profile openai: a rule of the rows"
    )


def test_content_that_was_erased_since_is_named(log: TranscriptLog) -> None:
    log.append("s", user("u1", "my secret"))
    at = ask(log, "t1")
    (erased,) = log.append("s", e.ContentErased(target={"message": "u1"}))
    assert checked(log).same == 1

    with log.database.write() as connection:
        connection.execute("INSERT INTO erasures VALUES (1, ?)", (erased.position,))
        connection.execute("UPDATE records SET salt = NULL, payload = NULL WHERE position = 1")

    changed = checked(log).changed
    assert changed is not None
    assert (changed.version, changed.events) == (at, (1,))
    assert changed.cause == "content that it was made of was erased since (version 1)"


def test_what_only_the_agent_knows_is_told_as_such(log: TranscriptLog) -> None:
    a_chat(log)
    at = ask(log, "t1", rendered={"messages": [{"role": "system", "content": "Be kind."}]})
    ask(log, "t1")  # after the first that differs no other is looked at

    found = checked(log)
    assert (found.calls, found.same) == (4, 2)
    assert found.changed is not None
    assert (found.changed.version, found.changed.events) == (at, ())
    assert "a rule of the rows or of the profile has changed" in found.changed.cause


def test_calls_without_a_digest_or_with_a_profile_unknown_here_are_unverifiable(
    log: TranscriptLog,
) -> None:
    log.append("s", user("u1", "Weather?"))
    ask(log, "t1", rendered=None)
    ask(log, "t1", profile="telex")

    assert checked(log) == Rerendering("s", calls=2, unverifiable=2)


def test_the_command_looks_at_all_sessions_and_exits_one_where_one_differs(
    log: TranscriptLog, command: Callable[..., Any]
) -> None:
    a_chat(log)
    log.append("quiet", user("u1", "Hello"))
    good = command("replay", "--verify", "--json")
    clean = command("replay", "--verify")
    given = render(build(log, "s").rows, "openai")
    log.append("s", user("u2", "And tomorrow?", "t2"))
    at = ask(log, "t1", rendered=given)
    bad = command("replay", "--verify", "s", "--json")
    page = command("replay", "--verify")

    sums = {"calls": 2, "same": 2, "unverifiable": 0}
    assert (good.code, good.json) == (
        0,
        {
            **sums,
            "sessions": [
                {"session": "s", **sums},
                {"session": "quiet", "calls": 0, "same": 0, "unverifiable": 0},
            ],
        },
    )
    assert (clean.code, clean.out) == (
        0,
        "2 model calls of 2 would be given the same input now\n",
    )
    assert bad.code == 1
    (told,) = bad.json["sessions"]
    assert (told["differs"]["version"], told["differs"]["events"]) == (at, [at - 1])
    assert told["differs"]["changes"] == [
        {"change": "added", "after": {"role": "user", "content": "And tomorrow?"}}
    ]
    assert page.code == 1
    assert "    + user      And tomorrow?\n" in page.out


@pytest.mark.faults
def test_all_calls_of_a_real_bot_render_the_same(tmp_path: Path) -> None:
    """The demo streams, breaks the model's stream, and kills its gateway between send and answer."""
    perform(tmp_path, tell=lambda _: None)

    with TranscriptLog.open(f"sqlite:///{tmp_path}/log.db", create=False) as log:
        found = rerender(SESSION, lambda: log.read(SESSION))

    assert found.calls >= 3
    assert (found.same, found.unverifiable, found.changed) == (found.calls, 0, None)
