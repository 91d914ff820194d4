"""The command `onrecord demo`. What it needs is imported when it runs."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer


def demo(
    keep: Annotated[
        Path | None,
        typer.Option(help="Keep the log and the other files in this folder, made if need be."),
    ] = None,
) -> None:
    """Watch a conversation survive a broken stream and a kill.

    A gateway streams a model's reply to a chat platform, each a process on this machine. The model's
    stream breaks; later the gateway is killed between send and acknowledgement, starts again and
    recovers. Then: what the platform holds, what a store that saves at the end of a turn has of it,
    and what is on record. Exit 0 if nothing was lost.

    Example: onrecord demo
    """
    from onrecord.gateway.demo.play import perform, performed_in
    from onrecord.gateway.demo.screen import show

    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that can't show a character shows a question mark, and the demo goes on.
        sys.stdout.reconfigure(errors="replace")
    try:
        with performed_in(keep) as folder:
            kept_promise = show(perform(folder), folder if keep else None)
    except (RuntimeError, OSError) as error:
        print(f"onrecord demo: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    raise typer.Exit(0 if kept_promise else 1)
