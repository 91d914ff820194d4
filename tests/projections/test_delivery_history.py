"""The delivery history: what was attempted, what the platform took, and what came late."""

from __future__ import annotations

from msgspec.structs import replace

from histories import recorded
from onrecord.projections.deliveries import deliveries
from onrecord.transcript import events as e

TO = e.Target(platform="chat", chat="c1")


def test_attempts_failures_and_ids_are_told() -> None:
    (told,) = deliveries(
        recorded(
            [
                e.DeliveryAttempted(delivery="d", turn="t", text="One. ", target=TO, format="html"),
                e.StreamChunkDelivered(delivery="d", through=5, platform_message="p1"),
                e.DeliveryAttempted(delivery="d", turn="t", text="Two.", offset=5, target=TO),
                e.DeliveryFailed(delivery="d", offset=5, reason="429", evidence="answer"),
            ]
        )
    )

    assert (told.status, told.text, told.complete, told.target) == ("partial", "One. ", False, TO)
    assert [(a.attempt, a.text, a.taken, a.refused, a.format) for a in told.attempts] == [
        (1, "One. Two.", 5, True, "html")
    ]
    assert [(f.offset, f.reason, f.definite) for f in told.failures] == [(5, "429", True)]
    assert (told.platform_messages, told.evidence) == (["p1"], ["answer"])
    assert told.versions == [1, 2, 3, 4]


def test_statuses_follow_what_is_known() -> None:
    attempt = e.DeliveryAttempted(delivery="d", turn="t", text="Hi")
    known: dict[str, list[e.Event]] = {
        "in_doubt": [attempt],
        "delivered": [attempt, e.DeliveryConfirmed(delivery="d")],
        "failed": [attempt, e.DeliveryFailed(delivery="d")],
        "not_sent": [e.DeliveryConfirmed(delivery="d")],
    }

    for status, events in known.items():
        assert [told.status for told in deliveries(recorded(events))] == [status]


def test_what_a_fenced_process_wrote_is_late() -> None:
    records = recorded(
        [
            e.DeliveryAttempted(delivery="d", turn="t", text="Hi"),
            e.TurnFinalized(turn="t", outcome="abandoned"),
            e.DeliveryConfirmed(delivery="d"),
        ]
    )
    held = [replace(record, generation=g) for record, g in zip(records, (1, 2, 1), strict=True)]

    assert [told.late for told in deliveries(held)] == [[3]]
    assert [told.late for told in deliveries(records)] == [[]]
