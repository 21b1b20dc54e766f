"""Words of a stream are read once and in order, and integers below a bound are those of the plain loop."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from partita.devices.kernels.random import philox
from partita.devices.kernels.random.philox import Position
from partita.devices.kernels.random.words import Words, below, below_wide

KEY = st.integers(0, 2**64 - 1)
COUNT = st.integers(0, 9) | st.integers(60, 70)  # few and many are drawn in different ways


@given(KEY, st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=8))
def test_words_come_in_order(key: int, reads: list[tuple[bool, int]]) -> None:
    """Peeking does not move on; what is taken is the stream."""
    words, stream, position = Words(Position(key, 0)), philox.stream(Position(key, 0), 20).reshape(-1), 0
    for is_taken, count in reads:
        drawn = words.take(count) if is_taken else words.peek(count)
        np.testing.assert_array_equal(drawn, stream[position : position + count])
        position += count * is_taken


@given(KEY, st.integers(1, 2**32 - 1), COUNT)
def test_integers_below_a_bound_are_those_of_the_plain_loop(key: int, bound: int, count: int) -> None:
    """The lowest words are redrawn, so that the others are a multiple of the bound."""
    stream, expected = iter(philox.stream(Position(key, 0), 200).reshape(-1).tolist()), list[int]()
    while len(expected) < count:
        word = next(stream)
        if word >= 2**32 % bound:
            expected.append(word % bound)
    words = Words(Position(key, 0))
    assert below(words, bound, count).tolist() == expected
    assert words.take(1)[0] == next(stream)


@given(KEY, st.integers(1, 2**63 - 1), COUNT)
def test_wide_integers_take_two_words(key: int, bound: int, count: int) -> None:
    """The first word of a pair is the lower half."""
    stream = philox.stream(Position(key, 0), 200).reshape(-1).astype(object)
    numbers = [int(low) | int(high) << 32 for low, high in zip(stream[0::2], stream[1::2], strict=True)]
    expected = [number % bound for number in numbers if number >= 2**64 % bound][:count]
    assert list(below_wide(Words(Position(key, 0)), bound, count)) == expected
