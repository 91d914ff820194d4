"""Whatever a message says, in an HTML document it is text: nothing runs, loads, leads or hides."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings

from hostile_texts import HOSTILE, hostile, hostile_document
from onrecord.projections.documents import html
from onrecord.projections.documents.document import visible

TAGS = {
    "html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "p", "section",
    "article", "b", "bdi", "span", "time", "div", "details", "summary", "code", "pre",
}  # fmt: skip
ATTRIBUTES = {"charset", "http-equiv", "content", "name", "class", "dir", "datetime"}
VOID = {"meta"}
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)


class Page(HTMLParser):
    """What a document consists of: its tags, their attributes and the texts of what was said."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.said: list[str] = []
        self.open: list[tuple[str, str]] = []
        self.other: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag not in VOID:
            self.open.append((tag, str(dict(attrs).get("class"))))
        if self.open[-1] == ("div", "text"):
            self.said.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == ("div", "text"):
            self.said[-1] += data

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    def unknown_decl(self, data: str) -> None:
        self.other.append(data)

    def handle_pi(self, data: str) -> None:
        self.other.append(data)


def check(text: str) -> None:
    whole = "".join(html(hostile_document(text)))
    page = Page(whole)

    assert page.tags <= TAGS
    assert page.attributes <= ATTRIBUTES
    assert (page.open, page.other) == ([], [])
    assert not UNSEEN.search(whole)
    assert whole.count("<style>") == 1
    assert visible(text).strip("\n") in page.said or not text.strip()


@settings(max_examples=150)
@given(hostile)
def test_no_text_becomes_an_element_and_none_is_lost(text: str) -> None:
    check(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_each_trick_alone_stays_text(text: str) -> None:
    check(text)


def test_a_browser_is_told_to_load_and_run_nothing() -> None:
    whole = "".join(html(hostile_document("hi")))

    policy = "default-src 'none'; style-src 'unsafe-inline'"
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in whole
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in whole
    assert "prefers-color-scheme: dark" in whole
    assert "url(" not in whole
    assert "@import" not in whole


def test_what_acts_unseen_is_spelled_out_and_scripts_stay_whole() -> None:
    assert visible("a\u202eb\x1b\u2066\x00\ufeff\U000e0041") == (
        "a\\u202eb\\x1b\\u2066\\x00\\ufeff\\U000e0041"
    )
    for whole in (
        "👩\u200d💻 \u2764\ufe0f",
        "می\u200cروم",
        "世\u3000界\xa0x",
        "line\n\tnext",
        "ठीक है",
    ):
        assert visible(whole) == whole
