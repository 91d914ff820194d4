"""Deliveries for somebody who may not read them: no text, and on demand nobody's name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onrecord.transcript.events import (
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    SessionStarted,
    Target,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

Command = Callable[..., Any]
FORMS = ["json", "csv", "table"]
WORDS = ["wunderbar", "mumpitz", "kokolores"]
NAMES = [
    "session-of-lily",
    "lily",
    "chat-of-lily",
    "account-of-bot",
    "topic-7",
    "p-77",
    "d-lily",
    "t-lily",
]


@pytest.fixture
def told(log: TranscriptLog) -> TranscriptLog:
    to = Target(platform="signal", account="account-of-bot", chat="chat-of-lily", thread="topic-7")
    for session in ("session-of-lily", "other"):
        log.append(session, SessionStarted(platform="signal", chat="chat-of-lily", user="lily"))
        log.append(session, UserMessageReceived(message="t-lily", text="?", sender="lily"))
        log.append(
            session,
            DeliveryAttempted(delivery="d-lily", turn="t-lily", text="wunderbar", target=to),
            DeliveryFailed(delivery="d-lily", reason="mumpitz", evidence="kokolores"),
            DeliveryAttempted(
                delivery="d-lily", turn="t-lily", text="wunderbar", attempt=2, target=to
            ),
            DeliveryConfirmed(delivery="d-lily", platform_messages=["p-77"], evidence="receipt"),
        )
    return log


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text("0123456789abcdef0123456789abcdef\n")
    return path


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("session", [[], ["session-of-lily"]])
def test_no_text_is_told(
    told: TranscriptLog, command: Command, form: str, session: list[str]
) -> None:
    open_, hidden = (
        command("deliveries", *session, "--format", form, *redact) for redact in ([], ["--redact"])
    )

    assert [word for word in WORDS[:2] if word not in open_.out] == []
    assert [word for word in WORDS if word in hidden.out] == []
    assert "[9 characters," in " ".join(hidden.out.split())
    assert "chat-of-lily" in "".join(hidden.out.split())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("session", [[], ["session-of-lily"]])
def test_no_name_is_told_if_that_is_asked(
    told: TranscriptLog, command: Command, form: str, session: list[str]
) -> None:
    hidden = command("deliveries", *session, "--format", form, "--redact-ids").out

    assert [word for word in [*WORDS, *NAMES] if word in hidden.replace("\n", "")] == []
    assert "signal" in hidden


def test_equal_texts_and_names_stay_equal_under_a_key(
    told: TranscriptLog, command: Command, key: Path
) -> None:
    words = ("deliveries", "--redact-ids", "--redact-key", str(key), "--json")
    first, second = command(*words).json["deliveries"]

    assert first["text"] == second["text"] == first["attempts"][1]["text"]
    assert first["user"] == second["user"] == first["senders"][0]
    assert first["target"] == second["target"]
    assert first["session"] != second["session"]
    assert first["evidence"][-1] == "receipt"
    assert command(*words).json["deliveries"][0] == first
    key.write_text("another key, as long as the first")
    assert command(*words).json["deliveries"][0]["text"] != first["text"]


def test_that_a_source_says_so_is_no_text_of_anybody(log: TranscriptLog, command: Command) -> None:
    log.append("s", DeliveryAttempted(delivery="d", text="wunderbar"))
    log.append("s", DeliveryConfirmed(delivery="d", evidence="source"))

    (sent,) = command("deliveries", "--json", "--redact").json["deliveries"]

    assert sent["evidence"] == ["source"]


def test_a_guess_can_be_tried_by_nobody_without_the_key(
    told: TranscriptLog, command: Command
) -> None:
    once, again = (command("deliveries", "--redact", "--json") for _ in range(2))

    text = once.json["deliveries"][0]["text"]
    assert text != again.json["deliveries"][0]["text"]
    for hashed in (hashlib.sha256, hashlib.sha1, hashlib.md5):
        assert hashed(b"wunderbar").hexdigest()[:16] not in once.out
    assert "a random key that is kept nowhere" in once.err


def test_a_key_that_can_be_guessed_is_refused(
    told: TranscriptLog, command: Command, key: Path
) -> None:
    key.write_text("secret\n")

    done = command("deliveries", "--redact-key", str(key))

    assert (done.code, done.out) == (2, "")
    assert "has 6 bytes and can be guessed" in done.err
