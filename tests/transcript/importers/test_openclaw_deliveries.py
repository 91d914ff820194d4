"""What OpenClaw notes of what went out: mirrors of answers, and sends by the tool `message`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from foreign_imports import Session, imported
from session_lines import OpenClawFile, called

from onrecord.transcript.events import Target
from onrecord.transcript.importers import openclaw


@pytest.fixture
def file(tmp_path: Path) -> OpenClawFile:
    file = OpenClawFile(tmp_path / "s.jsonl")
    file.begin()
    return file


def read(file: OpenClawFile) -> Session:
    return imported(openclaw, file.path, "s")


def statuses(session: Session) -> list[str]:
    return [event.delivery for event in session.of("DeliveryAttempted")]


def test_a_mirror_that_repeats_a_row_is_no_second_row(file: OpenClawFile) -> None:
    file.user("u", "Hello")
    file.assistant("a", "Hi there.")
    file.mirror("m", "Hi there.", openclawDeliveryMirror={"kind": "channel-final",
                "sourceAssistantMessageId": "a"})  # fmt: skip
    file.user("u2", "And now?")

    session = read(file)

    assert session.rows == [("user", "Hello"), ("assistant", "Hi there."), ("user", "And now?")]
    assert [(e.message, e.text) for e in session.of("DeliveryAttempted")] == [("a", "Hi there.")]
    assert session.found == []


@pytest.mark.parametrize("provider", ["openclaw", "clawdbot", "moltbot"])
def test_an_answer_whose_row_is_lost_is_on_record_by_its_mirror(
    file: OpenClawFile, provider: str
) -> None:
    file.user("u", "Hello")
    file.assistant("m", "Hi there.", provider=provider, model="delivery-mirror")
    file.user("u2", "What did you say?")
    file.assistant("a", "Nothing.")
    file.mirror("m2", "Nothing.")

    session = read(file)

    assert session.rows[:2] == [("user", "Hello"), ("assistant", "Hi there.")]
    assert sorted(session.found) == ["alternation-broken-in-source", "delivered-not-in-source"]


def test_a_row_that_lost_its_provider_is_known_by_its_marker(file: OpenClawFile) -> None:
    file.user("u", "Hello")
    file.assistant("a", "Hi there.")
    file.assistant("m", "Hi there.", openclawDeliveryMirror={"kind": "channel-final"})

    assert read(file).rows == [("user", "Hello"), ("assistant", "Hi there.")]


def test_an_answer_that_was_suppressed_did_not_go_out(file: OpenClawFile) -> None:
    file.user("u", "Hello")
    file.assistant("a", "Hi there.")
    file.mirror("m", "Hi there.", openclawDeliveryMirror={
        "kind": "channel-final-suppressed", "reason": "stale"})  # fmt: skip

    (failed,) = read(file).of("DeliveryFailed")

    assert (failed.reason, failed.definite) == ("stale", True)


def test_what_the_gateway_itself_wrote_on_the_screen_is_a_notice(file: OpenClawFile) -> None:
    file.user("u", "/status", excludeFromContext=True)
    file.assistant("n", "All is well.", provider="openclaw", model="gateway-injected")
    file.user("u2", "Hello")
    file.assistant("a", "Hi")

    session = read(file)

    assert [event.kind for event in session.of("DeliveryAttempted")] == ["notice"]
    assert "All is well." not in [text for _, text in session.rows]


def test_a_send_by_the_tool_is_a_delivery_with_its_target_and_ids(file: OpenClawFile) -> None:
    file.user("u", "Tell Bob")
    send = called("c", "message", action="send", channel="telegram", to="bob", message="Hi Bob")
    file.assistant("a", [send], stopReason="toolUse")
    file.result("r", "c", json.dumps({"ok": True, "messageId": "77"}))
    file.mirror("m", "Hi Bob")  # of the same send
    file.assistant("b", "Told him.")

    session = read(file)
    (sent,) = session.of("DeliveryAttempted")

    assert (sent.text, sent.message, sent.target) == (
        "Hi Bob", "a", Target(platform="telegram", chat="bob"),
    )  # fmt: skip
    assert session.of("DeliveryConfirmed")[0].platform_messages == ["77"]
    assert "delivered-not-in-source" not in session.found


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ({"ok": False, "error": "chat not found"}, False),
        ({"error": "no such user"}, False),
        ("boom", True),
    ],
)
def test_a_send_that_failed_is_told_so(file: OpenClawFile, result: Any, failed: bool) -> None:
    file.user("u", "Tell Bob")
    file.assistant("a", [called("c", "message", action="send", to="bob", message="Hi Bob")])
    file.result("r", "c", result if isinstance(result, str) else json.dumps(result), failed=failed)

    session = read(file)

    assert not session.of("DeliveryConfirmed")
    assert session.of("DeliveryFailed")[0].reason


@pytest.mark.parametrize(
    "call",
    [
        called("c", "message", action="react", emoji="x", messageId="1"),
        called("c", "exec", message="x"),
    ],
)
def test_other_calls_send_nothing(file: OpenClawFile, call: dict[str, Any]) -> None:
    file.user("u", "React")
    file.assistant("a", [call])
    file.result("r", "c", '{"ok": true}')

    assert not read(file).of("DeliveryAttempted")


def test_answers_of_which_nothing_is_noted_are_not_said_to_be_lost(file: OpenClawFile) -> None:
    file.user("u", "Hello")
    file.assistant("a", "Hi there.")  # sent like any other, and noted nowhere
    file.user("u2", "Tell Bob")
    file.assistant("b", [called("c", "message", action="send", to="bob", message="Hi Bob")])
    file.result("r", "c", '{"ok": true}')
    file.assistant("d", "Told him.")
    file.user("u3", "Thanks")

    assert read(file).found == []
