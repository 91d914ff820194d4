"""Showing what was sent."""

from __future__ import annotations

from onrecord.projections.cli.command import Json, Session, app, known, open_log, print_json
from onrecord.projections.deliveries import deliveries as histories
from onrecord.projections.pages.deliveries import show_deliveries


@app.command(epilog="Example: onrecord deliveries chat-1")
def deliveries(session: Session, json: Json = False) -> None:
    """Show what was sent: attempts, what the platform took, failures and doubt."""
    with open_log() as log:
        known(log, session)
        told = histories(log.read(session))
    if json:
        print_json({"session": session, "deliveries": told})
    else:
        show_deliveries(told)
