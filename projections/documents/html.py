"""A document as one HTML file: no script, no link, nothing that is loaded.

It is put together as a tree of elements, so that no text can become an element of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from xml.etree.ElementTree import Element, tostring

from onrecord.projections.documents.document import (
    WHY_OUT,
    Call,
    Document,
    Message,
    Turn,
    visible,
)
from onrecord.projections.documents.style import STYLE

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser lets the file do: be looked at."""
_CLOSING = ("</main>", "</body>", "</html>")


def html(document: Document) -> Iterator[str]:
    """Yield the document in pieces, a turn each."""
    yield "<!DOCTYPE html>\n" + _opening(document)
    if document.summary is not None:
        yield _text_of(_message(document.summary))
    for turn in document.turns:
        yield _text_of(_turn(turn))
    if not document.turns and document.summary is None:
        yield _text_of(_element("p", "Nothing was said."))
    yield "".join(_CLOSING) + "\n"


def _opening(document: Document) -> str:
    """Return all that stands before the turns."""
    title = visible(document.session)
    head = _element(
        "head",
        _element("meta", charset="utf-8"),
        _element("meta", **{"http-equiv": "Content-Security-Policy", "content": POLICY}),
        _element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        _element("meta", name="color-scheme", content="light dark"),
        _element("meta", name="referrer", content="no-referrer"),
        _element("title", title),
        _element("style", STYLE),
    )
    facts = f"Version {document.version}. All times are UTC."
    header = _element("header", _element("h1", _isolated(title)), _element("p", facts))
    whole = _element("html", head, _element("body", _element("main", header)))
    return _text_of(whole).removesuffix("".join(_CLOSING))


def _turn(turn: Turn) -> Element:
    section = _element("section", **({"class": f"out {turn.out}"} if turn.out else {}))
    section.append(_element("h2", _isolated(turn.name)))
    if turn.out:
        section.append(_element("p", WHY_OUT[turn.out], **{"class": "note"}))
    section.extend(_message(message) for message in turn.messages)
    return section


def _message(message: Message) -> Element:
    row = message.row
    synthetic = " synthetic" if row.origin == "synthetic" else ""
    article = _element("article", **{"class": f"{row.role}{synthetic}"})
    head = _element("p", _element("b", row.role.capitalize()), " ", _time(message.at))
    head.set("class", "head")
    if message.seen:
        seen = _element("span", message.seen, **{"class": row.delivery or "note"})
        head.extend(_spaced(seen))
        if row.delivery and message.until != message.at:
            head.extend(_spaced(_time(message.until, "%H:%M:%S")))
    article.append(head)
    if row.text.strip():
        article.append(_said(row.text))
    if row.produced:
        article.append(_details("The model's own words", _said(row.produced)))
    article.extend(_call(call) for call in message.calls)
    return article


def _call(call: Call) -> Element:
    result = call.result
    state = "no result" if result is None else "failed" if result.is_error else "answered"
    title = _element(
        "span", _element("b", _isolated(call.call.name)), " ",
        _element("code", _isolated(call.call.id)), f" {state}",
    )  # fmt: skip
    shown = [_code(call.call.arguments)]
    if result is not None:
        shown.append(_code(result.text))
    return _details(title, *shown)


def _details(title: str | Element, *shown: Element) -> Element:
    return _element("details", _element("summary", title), *shown)


def _said(text: str) -> Element:
    """Return what was said, in the direction of its own first letters."""
    return _element("div", visible(text).strip("\n"), **{"class": "text", "dir": "auto"})


def _code(text: str) -> Element:
    return _element("pre", _isolated(text), dir="ltr")


def _isolated(text: str) -> Element:
    """Return a text whose direction turns nothing beside it around."""
    return _element("bdi", visible(text))


def _time(at: datetime, form: str = "%Y-%m-%d %H:%M:%S") -> Element:
    return _element("time", f"{at:{form}}", datetime=at.isoformat())


def _spaced(element: Element) -> Iterator[Element]:
    yield _element("span", " · ", **{"class": "dot"})
    yield element


def _element(tag: str, *inside: str | Element, **attributes: str) -> Element:
    """Return an element; each string inside is text."""
    made = Element(tag, attributes)
    for part in inside:
        if isinstance(part, Element):
            made.append(part)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + part
        else:
            made.text = (made.text or "") + part
    return made


def _text_of(element: Element) -> str:
    return tostring(element, encoding="unicode", method="html")
