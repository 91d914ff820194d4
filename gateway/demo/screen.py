"""The demo's last page: what the user read, beside what two stores know of it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from onrecord.gateway.demo.play import Ending, Message
from onrecord.projections.pages import console, plain
from onrecord.projections.rows import Row

DELIVERY_STYLES = {"delivered": "green", "in_doubt": "yellow", "partial": "yellow"}


def show(ending: Ending, kept: Path | None) -> bool:
    """Print the page; tell whether all that the platform holds is on record."""
    page = console()
    page.print()
    page.print(_beside(ending))
    page.print()
    page.print(_audit(ending))
    said = [row.text for row in ending.rows if row.role in ("user", "assistant")]
    saved = [text for _, text in ending.ledger]
    total = sum(len(message.text) for message in _replies(ending.platform))
    lost, lost_there = missing(ending.platform, said), missing(ending.platform, saved)
    page.print()
    page.print(_verdict(page, total, lost, lost_there, ending))
    if kept is not None:
        page.print(
            f"Kept in {plain(str(kept))}: try `onrecord --db sqlite:///{kept}/log.db sessions`."
        )
    return lost == 0 and not ending.fault and _once(said)


def missing(platform: Sequence[Message], texts: Sequence[str]) -> int:
    """Return how many characters of the replies that the platform holds stand in no text."""
    return sum(
        len(message.text)
        for message in _replies(platform)
        if not any(message.text.strip() in text for text in texts)
    )


def _replies(platform: Sequence[Message]) -> list[Message]:
    return [message for message in platform if message.role == "assistant" and not message.notice]


def _once(texts: Sequence[str]) -> bool:
    return len(set(texts)) == len(texts)


def _beside(ending: Ending) -> Table:
    table = Table(expand=True, show_lines=True, header_style="bold")
    for name in ("what the user read", "saved at the turn's end", "on record"):
        table.add_column(name, ratio=1, overflow="fold")
    saved = [text for _, text in ending.ledger]
    for message in ending.platform:
        table.add_row(_said(message), _saved(message, saved), _recorded(message, ending.rows))
    return table


def _said(message: Message) -> Text:
    style = "cyan" if message.role == "user" else ""
    return Text(plain(message.text), style="dim" if message.notice else style)


def _saved(message: Message, saved: Sequence[str]) -> Text:
    if message.notice:
        return Text("(a notice)", style="dim")
    found = next((text for text in saved if message.text.strip() in text), None)
    if found is None:
        return Text("✗ nothing", style="bold red")
    return Text(plain(found), style="cyan" if message.role == "user" else "")


def _recorded(message: Message, rows: Sequence[Row]) -> Text | Group:
    if message.notice:
        return Text("(in the delivery history)", style="dim")
    found = next(
        (r for r in rows if r.role == message.role and message.text.strip() in r.text), None
    )
    if found is None:
        return Text("✗ nothing", style="bold red")
    text = Text(plain(found.text), style="cyan" if found.role == "user" else "")
    if not found.delivery:
        return text
    style = DELIVERY_STYLES.get(found.delivery, "red")
    return Group(text, Text(f"[{found.delivery.replace('_', ' ')}]", style=style))


def _audit(ending: Ending) -> Text:
    lines = Text("audit", style="bold")
    lines.append(f": {ending.records} events, ")
    if ending.fault:
        lines.append(f"the evidence doesn't hold: {plain(ending.fault)}", style="bold red")
    else:
        lines.append("their evidence holds", style="green")
    for finding in ending.findings:
        lines.append(f"\n  {finding.code}", style="yellow")
        detail = textwrap.wrap(plain(finding.detail), 74)
        lines.append("".join(f"\n    {line}" for line in detail), style="default")
    if not ending.findings:
        lines.append("\n  nothing found")
    return lines


def _verdict(page: Console, total: int, lost: int, lost_there: int, ending: Ending) -> Text:
    width = page.width
    said = Text(f"The user read {total} characters of replies. ")
    said.append(
        f"Saved at the end of the turn: {lost_there} lost. ", style="red" if lost_there else ""
    )
    said.append(f"On record: {lost} lost.", style="bold red" if lost else "bold green")
    said.append(f" ({ending.seconds:.1f} s)", style="dim")
    said.truncate(width * 4)
    return said
