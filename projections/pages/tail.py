"""What a person sees of events as they come: one line each."""

from __future__ import annotations

import sys

from rich.text import Text

from onrecord.projections.pages.terminal import console, plain
from onrecord.projections.telling import lane_of, words_of
from onrecord.transcript.recorded import Recorded

STYLES = {"model": "green", "gateway": "cyan", "transcript": "yellow"}
"""Colours by who an event is of."""


class EventLines:
    """Prints events. `with_session`: each line says of which session it is."""

    def __init__(self, *, with_session: bool) -> None:
        self._with_session = with_session
        self._page = console()
        # Cut to a terminal's width; whole for whoever reads a pipe, who may look for something in it.
        self._cut = sys.stdout.isatty()

    def show(self, recorded: Recorded) -> None:
        """Print the line of an event: when it was recorded (UTC), session, type, turn, what it says."""
        event = recorded.event
        line = Text(f"{recorded.recorded_at:%Y-%m-%d %H:%M:%S}Z", style="dim")
        if self._with_session:
            line.append(f"  {_one_line(recorded.session)}", style="not dim bold")
        line.append(f"  {_one_line(recorded.type)}", style=f"not dim {STYLES[lane_of(event)]}")
        if turn := getattr(event, "turn", None):
            line.append(f"  {_one_line(turn)}", style="not dim")
        line.append(f"  {_one_line(words_of(event))}", style="not dim")
        self._page.print(
            line, no_wrap=self._cut, overflow="ellipsis" if self._cut else None,
            soft_wrap=not self._cut,
        )  # fmt: skip


def _one_line(text: str) -> str:
    return plain(" ".join(text.split()))
