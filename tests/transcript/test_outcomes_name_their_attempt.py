"""An outcome that names no attempt is of the latest one, also where its id is made."""

from __future__ import annotations

from onrecord.projections.transcript import build
from onrecord.transcript.events import DeliveryAttempted, StreamChunkDelivered
from onrecord.transcript.log import TranscriptLog

TAKEN = StreamChunkDelivered(delivery="d", through=3)


def test_the_same_part_taken_of_two_attempts_is_two_records() -> None:
    with TranscriptLog.open("sqlite://") as log:
        log.append("s", DeliveryAttempted(delivery="d", turn="t", text="Sun"))
        (first,) = log.append("s", TAKEN)
        log.append("s", DeliveryAttempted(delivery="d", turn="t", text="Fog", attempt=2))
        (second,) = log.append("s", TAKEN)
        (again,) = log.append("s", TAKEN)
        (named,) = log.append("s", StreamChunkDelivered(delivery="d", through=3, attempt=1))

        seen = [(row.text, row.delivery) for row in build(log, "s").rows]

    assert [first.version, second.version, again.version, named.version] == [2, 4, 4, 2]
    assert sorted(seen) == [("Fog", "delivered"), ("Sun", "delivered")]
