"""Whether a part of a delivery follows on what its attempt holds."""

from __future__ import annotations

from onrecord.transcript.errors import OffsetMismatch
from onrecord.transcript.events import DeliveryAttempted, Event


class DeliveryOffsets:
    """Where each delivery of one session stands: its latest attempt, and the length of its text.

    Within an attempt parts follow on without gap or overlap. The next attempt starts over at an
    offset that the earlier text reaches: its text is the earlier one up to there, and its own after.
    """

    def __init__(self) -> None:
        self._ends: dict[str, tuple[int, int]] = {}

    def check(self, session: str, event: DeliveryAttempted) -> None:
        """Raise OffsetMismatch if the part doesn't follow on."""
        attempt, end = self._ends.get(event.delivery, (0, 0))
        follows = event.attempt == attempt and event.offset == end
        restarts = event.attempt == attempt + 1 and 0 <= event.offset <= end
        if follows or restarts:
            return
        if event.attempt == attempt or event.attempt == attempt + 1:
            hint = f"attempt {attempt} goes on at {end}"
            if attempt == 0:
                hint = "the first attempt starts at 0"
            elif event.attempt == attempt + 1:
                hint = f"attempt {event.attempt} may start at 0 to {end}"
        else:
            hint = f"attempt {max(attempt, 1)} is the latest, {attempt + 1} would be the next"
        raise OffsetMismatch(
            f"delivery {event.delivery!r} of session {session!r}, attempt {event.attempt}: a part at "
            f"offset {event.offset} doesn't follow on; {hint}",
            delivery=event.delivery, attempt=event.attempt, offset=event.offset, expected=end,
        )  # fmt: skip

    def __contains__(self, delivery: str) -> bool:
        return delivery in self._ends

    def attempt(self, delivery: str) -> int:
        """Return the latest attempt of a delivery, 1 before the first."""
        return self._ends.get(delivery, (1, 0))[0]

    def reached(self, event: DeliveryAttempted) -> bool:
        """Tell whether the delivery already holds some text at the whole of the part's place."""
        attempt, end = self._ends.get(event.delivery, (0, 0))
        if event.attempt == attempt:
            return 0 <= event.offset < end and event.offset + len(event.text) <= end
        return 0 < event.attempt < attempt

    def evolve(self, event: Event) -> None:
        """Take an event in, in log order."""
        if isinstance(event, DeliveryAttempted):
            self._ends[event.delivery] = (event.attempt, event.offset + len(event.text))


def holds(part: DeliveryAttempted, event: DeliveryAttempted) -> bool:
    """Tell whether a stored part says what the event says: chunks are joined before they are stored."""
    start = event.offset - part.offset
    return (
        (part.turn, part.message, part.kind) == (event.turn, event.message, event.kind)
        and part.text[start : start + len(event.text)] == event.text
        and bool(event.text or not part.text)
    )
