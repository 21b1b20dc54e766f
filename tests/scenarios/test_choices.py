"""The texts of --trips and --branch: numbers by name, or a clear error."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.scenarios.commands.choices import read_choices
from partita.scenarios.commands.failure import ConfigurationError

NAMES = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=1)
NUMBERS = st.integers(0, 2**31 - 1)


@given(st.dictionaries(NAMES, NUMBERS | st.lists(NUMBERS, min_size=2)))
def test_what_is_written_is_read(choices: dict[str, int | list[int]]) -> None:
    """Any name, even with "=" in it; one number, or one for each iteration of the loop around it."""
    texts = [f"{name}={str(value).strip('[]')}" for name, value in choices.items()]
    assert read_choices(texts, []).trip_counts == choices
    assert read_choices([], texts).branches == choices


@pytest.mark.parametrize(
    "text", ["x", "x=", "=3", "x=-1", "x=1.5", "x=three", "x=1,,2", "x=1;2", "x=2147483648", "x=³"]
)
def test_other_texts_are_refused(text: str) -> None:
    """The error repeats the flag as written and shows one that is right."""
    with pytest.raises(ConfigurationError, match=r"^--trips .* is not FRAME=N; .* such as --trips (x|frame)=3"):
        read_choices([text], [])
    with pytest.raises(ConfigurationError, match=r"^--branch .* is not NODE=K; .* such as --branch (x|node)=3"):
        read_choices([], [text])


def test_a_name_is_given_once() -> None:
    """Two numbers for one loop are a list in one flag."""
    with pytest.raises(ConfigurationError, match="--trips: 'w' is given twice"):
        read_choices(["w=1", "w=2"], [])
