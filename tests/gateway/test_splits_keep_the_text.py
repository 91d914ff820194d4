"""A split loses nothing, keeps to the limit, and cuts no grapheme."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from onrecord.gateway.platform import utf16_units
from onrecord.gateway.splitting import split, steady

FAMILY = "👨‍👩‍👧‍👦"
PIECES = st.sampled_from(
    [
        "a",
        "word ",
        "Sentence. ",
        "\n",
        "\n\n",
        " ",
        "é",
        "e\u0301",
        FAMILY,
        "🇩🇪",
        "漢字",
        "。",
        "ก็",
        "x" * 9,
    ]
)
TEXTS = st.lists(PIECES, max_size=60).map("".join)


@given(TEXTS, st.integers(24, 60), st.sampled_from([len, utf16_units]))
def test_any_text(text: str, limit: int, count: object) -> None:
    pieces = split(text, limit, count)  # type: ignore[arg-type]

    assert "".join(pieces) == text
    assert all(count(piece.strip()) <= limit for piece in pieces)  # type: ignore[operator]
    ends = {0}
    for grapheme in regex.findall(r"\X", text):
        ends.add(max(ends) + len(grapheme))
    at = 0
    for piece in pieces:
        at += len(piece)
        # A cut after blank space is one between words, whatever a mark on the blank would make of it.
        assert at in ends or piece[-1].isspace()
    for piece in pieces[1:]:
        assert not piece[0].isspace()


@given(TEXTS, st.integers(24, 60), st.integers(0, 24))
def test_what_is_out_stays_in_the_first_piece(text: str, limit: int, out: int) -> None:
    out = min(out, len(text))

    pieces = split(text, limit, at_least=out)

    assert "".join(pieces) == text
    assert not text or len(pieces[0]) >= out


@given(TEXTS)
def test_a_steady_beginning_is_whole_graphemes(text: str) -> None:
    end = steady(text)

    assert regex.findall(r"\X", text[:end]) == regex.findall(r"\X", text)[:-1]


def test_paragraphs_before_lines_before_sentences_before_words() -> None:
    assert split("aa bb.\n\ncc dd. ee", 12) == ["aa bb.\n\n", "cc dd. ee"]
    assert split("aa bb. cc\ndd ee ff", 12) == ["aa bb. cc\n", "dd ee ff"]
    assert split("aaa bb. cc dd ee", 12) == ["aaa bb. ", "cc dd ee"]
    assert split("aaa bbb ccc ddd", 12) == ["aaa bbb ccc ", "ddd"]
    assert split("a" * 25, 12) == ["a" * 12, "a" * 12, "a"]


def test_telegram_counts_utf16() -> None:
    assert utf16_units("a😀") == 3
    assert [len(p) for p in split("😀" * 5, 4, utf16_units)] == [2, 2, 1]


def test_a_grapheme_over_the_limit_is_the_one_thing_that_is_cut() -> None:
    assert "".join(split(FAMILY, 3)) == FAMILY


def test_blank_space_over_the_limit_stays_with_what_is_before_it() -> None:
    assert split("ab" + " " * 20 + "cd", 4) == ["ab" + " " * 20, "cd"]


def test_blank_space_at_the_start_is_no_piece() -> None:
    assert split(" \n three. four", 6) == [" \n three. ", "four"]


def test_a_limit_that_takes_nothing() -> None:
    with pytest.raises(ValueError, match="limit"):
        split("a", 0)
