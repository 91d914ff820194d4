"""`show --at` takes a version or a time, and `--sources` points back into what was imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from onrecord.transcript import events as e

FIRST = "messages 1"


@pytest.fixture
def imported(log: Any) -> None:
    """A session whose rows were imported, but for the last."""
    log.append(
        "s",
        e.UserMessageReceived(message="u1", turn="t1", text="Hi", imported_from=FIRST),
        e.DeliveryAttempted(
            delivery="d1", turn="t1", text="Hello.", imported_from="gateway.log:7",
            writer="import:hermes",
        ),
        e.DeliveryConfirmed(delivery="d1", imported_from="gateway.log:8"),
        e.UserMessageEdited(message="u1", text="Hi!", imported_from=FIRST),
        e.UserMessageReceived(message="u2", turn="t2", text="Bye"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("at", "version"),
    [
        ("3", 3),
        ("0", 0),
        ("2026-06-11 09:00:02", 3),
        ("2026-06-11T09:00:02.999Z", 3),
        ("2026-06-11 09:00:02 UTC", 3),
        ("2026-06-11T11:00:02+02:00", 3),
        ("2026-06-11 09:00", 1),
        ("2020-01-01 00:00", 0),
        ("2026-06-12", 8),
        ("1s", 8),
        ("2030-01-01 00:00", 8),
    ],
)
def test_a_point_is_a_version_or_a_time_in_utc(
    command: Callable[..., Any], scenario: Callable[[str], Any], at: str, version: int
) -> None:
    scenario("killed-mid-stream")

    done = command("show", "killed-mid-stream", "--at", at, "--json")

    assert (done.code, done.json["version"]) == (0, version)


def test_a_page_says_which_time_was_meant(
    command: Callable[..., Any], scenario: Callable[[str], Any]
) -> None:
    scenario("killed-mid-stream")

    done = command("show", "killed-mid-stream", "--at", "2026-06-11T11:00+02:00")

    heading = "killed-mid-stream, version 1, as of 2026-06-11 09:00:00 UTC"
    assert done.out.splitlines()[0] == heading


@pytest.mark.parametrize(
    "at",
    [
        "noon",
        "-1",
        "2026-06-31",
        "2026-06-11 25:00",
        "12.5",
        "",
        "9" * 5000,
        "२",
        "2026-06-11T09:00:02+99:00",
    ],
)
def test_what_is_no_point_is_told_in_one_line(
    command: Callable[..., Any], scenario: Callable[[str], Any], at: str
) -> None:
    scenario("killed-mid-stream")

    done = command("show", "killed-mid-stream", f"--at={at}")

    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("onrecord: --at ")


@pytest.mark.usefixtures("imported")
def test_json_rows_say_where_they_stood_in_the_source(command: Callable[..., Any]) -> None:
    rows = command("show", "s", "--json").json["rows"]

    assert [row.get("sources") for row in rows] == [
        [FIRST],
        ["gateway.log:7", "gateway.log:8"],
        None,
    ]


@pytest.mark.usefixtures("imported")
def test_a_page_tells_the_sources_where_it_is_asked_to(command: Callable[..., Any]) -> None:
    assert "from " not in command("show", "s").out
    page = command("show", "s", "--sources").out
    assert [line.rstrip() for line in page.splitlines()[2:]] == [
        "user                  Hi!",
        "                      from messages 1",
        "assistant  delivered  Hello.",
        "                      from gateway.log:7, gateway.log:8",
        "user                  Bye",
    ]
