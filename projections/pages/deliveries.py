"""What a person sees of deliveries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from onrecord.projections.deliveries import DeliveryHistory
from onrecord.projections.pages.terminal import console, mark, plain, table


def show_deliveries(told: Sequence[DeliveryHistory]) -> None:
    """Print a delivery history, a delivery a row."""
    if not told:
        console().print("nothing was sent in this session")
        return
    grid = table("delivery", "what", "status", "text and what is known")
    for one in told:
        facts = [plain(attempt) for attempt in _attempts(one)] or ["(nothing attempted)"]
        if one.target:
            facts.append(f"to {plain(one.target.platform)} {plain(one.target.chat)}")
        if one.platform_messages:
            facts.append("platform ids " + plain(", ".join(one.platform_messages)))
        for failure in one.failures:
            kind = "refused" if failure.definite else "unclear"
            facts.append(f"{kind} from {failure.offset}: {plain(failure.reason)}")
        body = Text("\n".join(facts))
        grid.add_row(Text(plain(one.delivery)), one.kind, mark(one.status), body)
    console().print(grid)


def _attempts(one: DeliveryHistory) -> Iterator[str]:
    """Tell the attempts, each with what the platform took of it where it isn't all."""
    for attempt in one.attempts:
        number = f"{attempt.attempt}: " if len(one.attempts) > 1 else ""
        size = len(attempt.text)
        known = "" if attempt.taken >= size else f"  [{attempt.taken} of {size} taken]"
        yield f"{number}{attempt.text}{known}{'  [replaced]' if attempt.replaced else ''}"
