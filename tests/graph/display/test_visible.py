"""No text that is shown can steer a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from partita.graph.display.visible import shortened, visible, visible_lines

ANY = st.text(st.characters())  # halves of surrogate pairs too


@given(ANY)
def test_what_is_visible_can_be_printed_anywhere(text: str) -> None:
    """No control character, mark of direction or half of a pair is left, and UTF-8 can write it."""
    shown = visible(text)
    assert shown.isprintable()
    assert not {unicodedata.category(letter) for letter in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    shown.encode()


@given(st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"))))
def test_letters_stay(text: str) -> None:
    """Letters of any language, marks on them, and symbols."""
    assert visible(text) == text


@given(st.lists(ANY))
def test_only_line_feeds_end_lines(lines: list[str]) -> None:
    """The lines of a text are those between its line feeds."""
    text = "\n".join(lines)
    assert visible_lines(text).split("\n") == [visible(line) for line in text.split("\n")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb", "a\\u202eb"),
        ("a\nb\tc\x07", "a\\nb\\tc\\x07"),
        ("\udcff", "\\udcff"),
        ("größer 層 שלום", "größer 層 שלום"),
    ],
)
def test_examples(text: str, shown: str) -> None:
    """Colours, a CSI of one byte, an override, a bell, a byte that is no UTF-8; Hebrew letters may stay."""
    assert visible(text) == shown


@given(st.text(), st.integers(4, 50))
def test_a_shortened_text_has_begin_and_end(text: str, most: int) -> None:
    """At most so many letters; a short text stays."""
    cut = shortened(text, most)
    assert len(cut) <= most
    assert cut == text if len(text) <= most else text.startswith(cut.partition("…")[0])
