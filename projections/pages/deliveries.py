"""What a person sees of deliveries, and what programs get of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby, islice
from typing import Any, TextIO

import msgspec
from rich.text import Text

from onrecord.projections.delivered import Sent
from onrecord.projections.deliveries import DeliveryHistory
from onrecord.projections.pages.tabular import Column, Row
from onrecord.projections.pages.terminal import console, counted, mark, plain, table

COLUMNS = (
    Column("session", "text"),
    Column("user", "text"),
    Column("platform", "text"),
    Column("account", "text"),
    Column("chat", "text"),
    Column("thread", "text"),
    Column("attempted_at", "time"),
    Column("confirmed_at", "time"),
    Column("last_at", "time"),
    Column("status", "text"),
    Column("kind", "text"),
    Column("text", "text"),
    Column("platform_messages", "texts"),
    Column("attempts", "number"),
    Column("failures", "text"),
    Column("evidence", "texts"),
    Column("complete", "flag"),
    Column("deleted", "flag"),
    Column("delivery", "text"),
    Column("turn", "text"),
    Column("message", "text"),
    Column("versions", "numbers"),
)
"""Of a table for other programs."""
AT_ONCE = 200
"""Deliveries of a session that are laid out together."""
SHOWN = 280
"""Characters of a text that a list of all sessions shows."""

_encode = msgspec.json.Encoder().encode


def delivery_row(sent: Sent) -> Row:
    """Return a delivery as a row for these columns."""
    target = sent.target
    failures = (f"{_kind(one.definite)}: {one.reason}" for one in sent.failures)
    return (
        sent.session,
        sent.user,
        target.platform if target else "",
        target.account if target else "",
        target.chat if target else "",
        (target.thread or "") if target else "",
        sent.at,
        sent.confirmed_at,
        sent.last_at,
        sent.status,
        sent.kind,
        sent.text,
        sent.platform_messages,
        len(sent.attempts),
        "; ".join(failures),
        sent.evidence,
        sent.complete,
        sent.deleted,
        sent.delivery,
        sent.turn,
        sent.message,
        sent.versions,
    )


def delivery_json(sent: Sent) -> tuple[str, bytes]:
    """Return the outcome of a delivery and its JSON shape."""
    return sent.status, _encode(sent)


def write_deliveries(
    told: Iterable[tuple[str, bytes]], session: str | None, out: TextIO
) -> Counter[str]:
    """Write deliveries as one JSON object, one by one, and then how many have which outcome."""
    counts: Counter[str] = Counter()
    out.write("{" if session is None else f'{{"session":{_encode(session).decode()},')
    between = '"deliveries":['
    for status, shape in told:
        counts[status] += 1
        out.write(between + shape.decode())
        between = ","
    if not counts:
        out.write(between)
    out.write(f'],"counts":{_encode(dict(sorted(counts.items()))).decode()}}}\n')
    return counts


def show_deliveries(told: Sequence[DeliveryHistory]) -> None:
    """Print the delivery history of a session, a delivery a row."""
    if not told:
        console().print("nothing was sent in this session")
        return
    grid = table("delivery", "what", "status", "text and what is known")
    for one in told:
        facts = [plain(attempt) for attempt in _attempts(one)] or ["(nothing attempted)"]
        if one.target:
            facts.append(f"to {plain(one.target.platform)} {plain(one.target.chat)}")
        grid.add_row(
            Text(plain(one.delivery)), plain(one.kind), mark(one.status),
            Text("\n".join([*facts, *_known(one)])),
        )  # fmt: skip
    console().print(grid)


def show_all_deliveries(told: Iterable[Sent]) -> None:
    """Print what was sent, session by session, and how many have which outcome."""
    page = console()
    counts: Counter[str] = Counter()
    sessions = 0
    for session, group in groupby(told, key=lambda sent: sent.session):
        sessions += 1
        counts.update(_show_session(session, group))
    if not counts:
        page.print("nothing was sent that fits")
        return
    outcomes = ", ".join(f"{n:,} {status.replace('_', ' ')}" for status, n in counts.most_common())
    many = "delivery" if counts.total() == 1 else "deliveries"
    page.print(f"{counts.total():,} {many} in {counted(sessions, 'session')}: {outcomes}")


def _show_session(session: str, told: Iterator[Sent]) -> Counter[str]:
    """Print what was sent in a session, some at a time; return how many have which outcome."""
    page = console()
    counts: Counter[str] = Counter()
    while some := list(islice(told, AT_ONCE)):
        if not counts:
            user = Text(f"  {plain(some[0].user)}" if some[0].user else "", style="not bold")
            page.print(Text(plain(session), style="bold") + user)
        counts.update(sent.status for sent in some)
        page.print(_grid(some))
    return counts


def _grid(some: Sequence[Sent]) -> Any:
    grid = table("  attempted (UTC)", "to", "status", "text and what is known")
    grid.show_header = False
    grid.columns[0].no_wrap = grid.columns[2].no_wrap = True
    for sent in some:
        to = " ".join(filter(None, (sent.target.platform, sent.target.chat))) if sent.target else ""
        words = plain(sent.text[:SHOWN]) + (" …" if len(sent.text) > SHOWN else "")
        kind = "" if sent.kind == "answer" else f"[{plain(sent.kind)}] "
        facts = [kind + (words or "(nothing that the user can read)")]
        attempted, confirmed = _moment(sent.at), _moment(sent.confirmed_at)
        if confirmed not in ("", attempted):
            facts.append(f"confirmed {confirmed}")
        grid.add_row(
            f"  {attempted}", Text(plain(to)), mark(sent.status),
            Text("\n".join([*facts, *_known(sent)])),
        )  # fmt: skip
    return grid


def _moment(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}" if at else ""


def _kind(definite: bool) -> str:
    return "refused" if definite else "unclear"


def _known(one: DeliveryHistory) -> Iterator[str]:
    """Tell what is known of a delivery beside its text."""
    if one.platform_messages:
        yield "platform ids " + plain(", ".join(one.platform_messages))
    for failure in one.failures:
        yield f"{_kind(failure.definite)} from {failure.offset}: {plain(failure.reason)}"
    if one.deleted:
        yield "deleted since"


def _attempts(one: DeliveryHistory) -> Iterator[str]:
    """Tell the attempts, each with what the platform took of it where it isn't all."""
    for attempt in one.attempts:
        number = f"{attempt.attempt}: " if len(one.attempts) > 1 else ""
        whole = attempt.taken >= attempt.size
        known = "" if whole else f"  [{attempt.taken} of {attempt.size} taken]"
        yield f"{number}{attempt.text}{known}{'  [replaced]' if attempt.replaced else ''}"
