"""What Hermes's ledger and the gateway's log say went out is tied to the rows that have it, or found."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hermes_databases import BEGAN, HermesHome, imported

ANSWER = "It is sunny in Lisbon."


@pytest.fixture
def home(tmp_path: Path) -> HermesHome:
    home = HermesHome(tmp_path / "home")
    home.session(chat_id="c", session_key="key", chat_type="dm")
    return home


@pytest.fixture
def far_away() -> Iterator[None]:
    """Put this process into a time zone that the log isn't of."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Asia/Kathmandu"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def asked_and_answered(home: HermesHome, answer: str = ANSWER) -> None:
    home.came_in("What is the weather?")
    home.user("What is the weather?")
    home.assistant(answer)


# --- the ledger --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "error", "delivery"),
    [
        ("delivered", None, "delivered"),
        ("pending", None, "in_doubt"),
        ("attempting", None, "in_doubt"),
        ("failed", "Forbidden: bot was blocked", "undelivered"),
        ("failed", "Timed out", "in_doubt"),
        ("abandoned", "Forbidden: bot was blocked", "undelivered"),
        ("abandoned", None, "in_doubt"),
    ],
)
def test_a_state_of_the_ledger_is_an_outcome(
    home: HermesHome, state: str, error: str | None, delivery: str
) -> None:
    home.user("What is the weather?")
    home.assistant(ANSWER)
    home.owes(ANSWER, state, last_error=error)

    told = imported(home.path)

    assert told.deliveries == [delivery]
    (attempted,) = told.of("DeliveryAttempted")
    assert (attempted.turn, attempted.message, attempted.target.chat) == ("1", "2", "c")
    assert attempted.imported_from.startswith("delivery_obligations o")


def test_a_delivery_belongs_to_the_row_though_the_next_message_came_before_it(
    home: HermesHome,
) -> None:
    home.user("one", timestamp=BEGAN)
    home.assistant("eins", timestamp=BEGAN + 5)
    home.user("two", timestamp=BEGAN + 3)  # written while the bot answered
    home.owes("eins", created_at=BEGAN + 6)
    home.assistant("zwei", timestamp=BEGAN + 9)
    home.owes("zwei", created_at=BEGAN + 10)

    told = imported(home.path)

    assert [(one.turn, one.message) for one in told.of("DeliveryAttempted")] == [
        ("1", "2"), ("3", "4"),
    ]  # fmt: skip
    assert told.found == []


def test_an_answer_that_went_out_and_has_no_row_is_found(home: HermesHome) -> None:
    home.user("What is the weather?")
    home.owes(ANSWER)

    told = imported(home.path)

    assert told.rows == [("user", "What is the weather?"), ("assistant", ANSWER)]
    assert [code for code, _ in told.found] == ["delivered-not-in-source"]


def test_a_footer_that_the_transcript_lacks_is_found(home: HermesHome) -> None:
    home.user("What is the weather?")
    home.assistant(ANSWER)
    home.owes(f"{ANSWER}\n\n⚠️ 2 files were not changed")

    told = imported(home.path)

    assert [code for code, _ in told.found] == ["delivered-differs", "delivered-not-in-source"]


def test_an_answer_in_two_rows_that_went_out_as_one_is_delivered_whole(home: HermesHome) -> None:
    home.user("A poem, please")
    home.assistant("Roses are", finish_reason="length")
    home.user("[System: The previous response was cut off by a network error mid-stream.]")
    home.assistant(" red.")
    home.owes("Roses are red.")

    told = imported(home.path)

    assert told.deliveries == ["delivered", "delivered"]
    assert [code for code, _ in told.found] == ["synthetic-in-source"]


def test_a_session_of_the_same_chat_that_began_later_has_its_own_deliveries(
    home: HermesHome,
) -> None:
    home.user("one")
    home.assistant("same")
    home.owes("same")
    home.session("later", session_key="key", started_at=home.now + 1)
    home.now += 2
    home.user("two", session="later")
    home.assistant("same", session="later")
    home.owes("same")

    first, later = imported(home.path), imported(home.path, session="later")

    assert first.deliveries == later.deliveries == ["delivered"]
    assert len(first.of("DeliveryAttempted")) == len(later.of("DeliveryAttempted")) == 1


def test_a_ledger_that_is_damaged_is_told_and_the_log_read(home: HermesHome) -> None:
    asked_and_answered(home)
    home.ready(len(ANSWER), took=3.0)
    home.logs("gateway.run: Something else")
    home.run("PRAGMA writable_schema=ON")
    home.run("UPDATE sqlite_master SET rootpage = 999999 WHERE name = 'delivery_obligations'")
    home.database.close()

    told = imported(home.path)

    assert told.deliveries == ["delivered"]
    assert told.found == [("unreadable-in-source", "delivery_obligations")]


# --- the log -----------------------------------------------------------------------------------------


def test_an_answer_whose_length_the_log_has_was_delivered(home: HermesHome) -> None:
    asked_and_answered(home)
    home.ready(len(ANSWER), took=3.0)
    home.sending(len(ANSWER))
    home.logs("gateway.run: Something else")

    told = imported(home.path)

    assert told.deliveries == ["delivered"]
    (attempted,) = told.of("DeliveryAttempted")
    assert (attempted.message, attempted.text) == ("2", ANSWER)
    assert attempted.imported_from == "gateway.log:2"


def test_what_the_ledger_has_is_not_told_again_by_the_log(home: HermesHome) -> None:
    asked_and_answered(home)
    home.ready(len(ANSWER), took=3.0)
    home.sending(len(ANSWER))
    home.owes(ANSWER)

    (attempted,) = imported(home.path).of("DeliveryAttempted")

    assert attempted.imported_from.startswith("delivery_obligations")


def test_an_answer_of_which_only_the_length_is_left_is_found(home: HermesHome) -> None:
    home.came_in("What is the weather?")
    home.user("What is the weather?")
    home.ready(72, took=2.0)
    home.sending(72)
    home.user("And tomorrow?")
    home.assistant("Rain.")

    told = imported(home.path)

    (fault,) = [fault for fault in told.of("SourceFaultFound") if "72 characters" in fault.detail]
    assert (fault.code, fault.turn) == ("content-unrecoverable", "1")
    assert fault.imported_from == "gateway.log:2"


@pytest.mark.parametrize("text", ["What is the weather?", "long " * 40])
def test_a_message_that_came_in_and_has_no_row_is_read_from_the_log(
    home: HermesHome, text: str
) -> None:
    asked_and_answered(home)
    home.ready(len(ANSWER), took=3.0)
    home.came_in(text)
    home.ready(10)
    home.came_in("And now?")
    home.user("And now?")
    home.assistant("Now!")

    told = imported(home.path)

    lost = text[:80]
    assert [said for role, said in told.rows if role == "user"] == [
        "What is the weather?", lost, "And now?",
    ]  # fmt: skip
    codes = [fault.code for fault in told.of("SourceFaultFound")]
    assert codes == ["content-unrecoverable" if len(text) > 80 else "gap", "content-unrecoverable"]


def test_a_message_that_is_being_answered_is_not_lost(home: HermesHome) -> None:
    asked_and_answered(home)
    home.ready(len(ANSWER), took=3.0)
    home.came_in("And now?")
    home.run("PRAGMA wal_checkpoint(TRUNCATE)")

    told = imported(home.path)

    assert [role for role, _ in told.rows] == ["user", "assistant"]
    assert told.of("SourceFaultFound") == []


@pytest.mark.parametrize("again", [True, False])
def test_a_turn_that_the_end_of_the_gateway_cut_is_found(home: HermesHome, again: bool) -> None:
    home.started()
    home.came_in("What is the weather?")
    home.user("What is the weather?")
    if again:
        home.started()
        home.run("PRAGMA wal_checkpoint(TRUNCATE)")

    told = imported(home.path)

    assert [code for code, _ in told.found] == ["content-unrecoverable"]


@pytest.mark.parametrize(
    ("lines", "delivery"),
    [
        (["[Telegram] Failed to deliver response after 2 retries: Forbidden"], "undelivered"),
        (["[Telegram] Failed to deliver response after 2 retries: Timed out"], "in_doubt"),
        (["[Telegram] Fallback send also failed: Forbidden"], "undelivered"),
        (["[Telegram] Send failed (attempt 1/2, retrying in 2.0s): x",
          "[Telegram] Send succeeded on retry 1"], "delivered"),
    ],
)  # fmt: skip
def test_a_send_that_the_log_says_failed_did(
    home: HermesHome, lines: list[str], delivery: str
) -> None:
    asked_and_answered(home)
    home.ready(len(ANSWER), took=3.0)
    home.sending(len(ANSWER))
    for line in lines:
        home.logs(f"gateway.platforms.base: {line}")

    assert imported(home.path).deliveries == [delivery]


@pytest.mark.parametrize("again", [True, False])
def test_an_answer_right_before_the_end_is_in_doubt(home: HermesHome, again: bool) -> None:
    asked_and_answered(home)
    home.ready(len(ANSWER), took=3.0)
    if again:
        home.started()
    home.run("PRAGMA wal_checkpoint(TRUNCATE)")

    assert imported(home.path).deliveries == ["in_doubt"]


def test_an_answer_that_streamed_before_it_was_ready_was_delivered(home: HermesHome) -> None:
    asked_and_answered(home)
    home.logs(
        "gateway.run: Suppressing normal final send for session agent:main:telegram:dm:c: "
        "final delivery already confirmed (streamed=True)"
    )
    home.ready(len(ANSWER), took=4.0)

    assert imported(home.path).deliveries == ["delivered"]


def test_an_answer_that_was_held_back_is_no_delivery(home: HermesHome) -> None:
    asked_and_answered(home)
    home.ready(len(ANSWER), took=3.0)
    home.logs(
        "gateway.platforms.base: [Telegram] Suppressing stale response for interrupted session"
    )

    assert imported(home.path).of("DeliveryAttempted") == []


def test_rotated_logs_are_read_oldest_first_and_known_again(home: HermesHome) -> None:
    home.came_in("What is the weather?", file="gateway.log.1")
    home.user("What is the weather?")
    home.ready(72, took=2.0)
    home.logs("gateway.run: Something else")
    before = imported(home.path)
    logs = home.path / "logs"
    (logs / "gateway.log.1").rename(logs / "gateway.log.2")
    (logs / "gateway.log").rename(logs / "gateway.log.1")

    after = imported(home.path)

    assert [r.id for r in before.records] == [r.id for r in after.records]
    (fault,) = after.of("SourceFaultFound")
    assert (fault.code, fault.imported_from) == ("content-unrecoverable", "gateway.log.1:1")


def test_the_logs_time_zone_is_found_by_its_messages(home: HermesHome, far_away: None) -> None:
    home.came_in("What is the weather?", at=home.now - 5 * 3600)
    home.user("What is the weather?")
    home.assistant(ANSWER)
    home.ready(len(ANSWER), took=2.0, at=home.now - 5 * 3600)
    home.logs("gateway.run: Something else", at=home.now - 5 * 3600)

    (attempted,) = [r for r in imported(home.path).records if r.type == "DeliveryAttempted"]

    assert attempted.recorded_at.timestamp() == home.now


def test_a_log_beside_the_database_and_broken_lines_are_read(home: HermesHome) -> None:
    asked_and_answered(home)
    home.ready(72, took=3.0)
    log = home.path / "logs" / "gateway.log"
    text = log.read_bytes()
    (home.path / "gateway.log").write_bytes(b"\xff\xfe gateway. x\n" + text + b"2026-11-30 01:0")
    log.unlink()

    told = imported(home.path / "state.db")

    assert "content-unrecoverable" in [code for code, _ in told.found]


def test_an_answer_that_was_broken_off_while_it_streamed_is_in_doubt(home: HermesHome) -> None:
    home.came_in("Tell me a story")
    home.user("Tell me a story")
    home.assistant("Once there was")
    home.logs("gateway.platforms.base: [Telegram] Sending command '/stop' response (41 chars) to c")

    assert imported(home.path).deliveries == ["in_doubt"]


def test_an_answer_that_is_stored_twice_was_sent_once(home: HermesHome) -> None:
    home.came_in("Remember the milk")
    home.user("Remember the milk")
    home.assistant("It is on your list.", "c1")
    home.tool("c1", "{}")
    home.assistant("It is on your list.")
    home.ready(19, took=5.0)
    home.logs("gateway.run: Something else")

    told = imported(home.path)

    assert told.deliveries[0] == "delivered"
    assert [code for code, _ in told.found] == ["duplicate-in-source"]
