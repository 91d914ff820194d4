"""Whatever a message says, in a Markdown document it is text: no structure, no link, no HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from markdown_it import MarkdownIt
from markdown_it.token import Token

from hostile_texts import HOSTILE, hostile, hostile_document
from onrecord.projections.documents import markdown
from onrecord.projections.documents.document import visible
from onrecord.projections.documents.markdown import prose, quote

PARSERS = {
    "commonmark": MarkdownIt("commonmark"),
    "github": MarkdownIt("gfm-like"),  # with tables, strikethrough and links of bare addresses
}
SHAPE = "".join(markdown(hostile_document("plain")))
TEXT = {"text", "text_special", "softbreak", "hardbreak", "code_inline"}


def blocks(tokens: list[Token]) -> list[tuple[str, int]]:
    """Return the structure without the paragraphs of quotes, of which a text may have any number."""
    return [
        (token.type, token.level)
        for token in tokens
        if not token.type.startswith("paragraph") and token.type != "inline"
    ]


def inlines(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        if token.type == "inline":
            yield from token.children or ()


@pytest.mark.parametrize("parser", PARSERS.values(), ids=list(PARSERS))
@settings(max_examples=150)
@given(hostile.filter(str.strip))
def test_the_structure_is_that_of_any_other_text(parser: MarkdownIt, text: str) -> None:
    check(parser, text)


@pytest.mark.parametrize("parser", PARSERS.values(), ids=list(PARSERS))
@pytest.mark.parametrize("text", [text for text in HOSTILE if text.strip()])
def test_each_trick_alone_stays_text(parser: MarkdownIt, text: str) -> None:
    check(parser, text)


def check(parser: MarkdownIt, text: str) -> None:
    tokens = parser.parse("".join(markdown(hostile_document(text))))

    assert blocks(tokens) == blocks(parser.parse(SHAPE))
    marks = [t.type for t in inlines(tokens) if t.type not in TEXT]
    assert marks == [t.type for t in inlines(parser.parse(SHAPE)) if t.type not in TEXT]


@settings(max_examples=200)
@given(hostile)
def test_no_word_is_lost(text: str) -> None:
    tokens = PARSERS["github"].parse(quote(text))

    ends = {"softbreak", "hardbreak"}
    read = [" " if t.type in ends else t.content for t in inlines(tokens)]
    assert re.sub(r"\s", "", "".join(read)) == re.sub(r"\s", "", visible(text))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("See https://e.example.", "See https\\://e.example."),
        ("www.e.example", "www\\.e.example"),
        ("bob@e.example, @team", "`bob@e.example,` `@team`"),
        ("`@`", "`` `@` ``"),
        ("1. first", "1\\. first"),
        ("It's 1.5 - fine, really!", "It's 1.5 - fine, really!"),
        ("  indented", "\xa0\xa0indented"),
        ("a_b * c", "a\\_b \\* c"),
    ],
)  # fmt: skip
def test_ordinary_text_stays_readable(text: str, told: str) -> None:
    assert prose(text) == told


def test_lines_and_paragraphs_stay_as_they_were() -> None:
    assert quote("one\ntwo\n\nthree") == "> one\\\n> two\n>\n> three"
