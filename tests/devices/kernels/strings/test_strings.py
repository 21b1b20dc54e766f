"""Strings: joined, cut, cased."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, OutOfRangeError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.random_arrays import ints, texts
from tests.devices.kernels.strings.text_tensors import scalar, vectors

MATRIX = np.array([[b"a", b"b"], [b"c", b"d"]], object)


characters = st.lists(st.text(max_size=5), max_size=4).map(lambda values: texts(*(v.encode() for v in values)))


@given(vectors, st.binary(max_size=2))
def test_joining_puts_the_separator_between_and_scalars_everywhere(x: Array, separator: bytes) -> None:
    actual = check_shapes("StringJoin", [x, scalar(b"!"), x], separator=separator)
    assert actual.tolist() == [separator.join((v, b"!", v)) for v in x.tolist()]
    one = check_shapes("ReduceJoin", x, ints(0), separator=separator)
    assert one.item() == separator.join(x.tolist())


def test_reduce_join_runs_fastest_along_the_axis_listed_first() -> None:
    assert check_shapes("ReduceJoin", MATRIX, ints(0, 1), separator="-").item() == b"a-c-b-d"
    assert check_shapes("ReduceJoin", MATRIX, ints(-1, 0), keep_dims=True).tolist() == [[b"abcd"]]
    with pytest.raises(OutOfRangeError, match="Invalid reduction dimension 2 for input with 2"):
        run("ReduceJoin", MATRIX, ints(2))
    with pytest.raises(InvalidArgumentError, match="Duplicate reduction dimension 0"):
        run("ReduceJoin", MATRIX, ints(0, 0))


@given(characters, st.integers(-6, 6), st.integers(0, 4))
def test_characters_are_cut_and_counted_as_python_does(x: Array, first: int, count: int) -> None:
    strings = [v.decode() for v in x.tolist()]
    assert check_shapes("StringLength", x, unit="UTF8_CHAR").tolist() == [len(v) for v in strings]
    assert check_shapes("StringLength", x).tolist() == [len(v) for v in x.tolist()]
    if all(-len(v) <= first <= len(v) for v in strings):
        starts = [first + len(v) if first < 0 else first for v in strings]
        expected = [v[s : s + count].encode() for v, s in zip(strings, starts, strict=True)]
        actual = check_shapes("Substr", x, np.int32(first), np.int32(count), unit="UTF8_CHAR")
        assert actual.tolist() == expected


def test_a_position_outside_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="pos 10 out of range for string b'hello' at index 0"):
        run("Substr", texts(b"hello"), np.int32(10), np.int32(1))
    with pytest.raises(InvalidArgumentError, match="pos and len should have the same shape"):
        run("Substr", texts(b"hello"), ints(0, 1), ints(1))


def test_case_changes_ascii_letters_or_all_of_utf8() -> None:
    x = texts("aÉß".encode(), b"\xffA")
    assert check_shapes("StringLower", x).tolist() == ["aÉß".encode(), b"\xffa"]
    assert check_shapes("StringUpper", x, encoding="utf-8").tolist() == ["AÉSS".encode(), "\ufffdA".encode()]
    assert check_shapes("StringStrip", texts(b" \ta b\n", "\u00a0x ".encode())).tolist() == [b"a b", "\u00a0x".encode()]


def test_segments_and_ngrams_join_neighbours() -> None:
    x = texts(b"a", b"b", b"c")
    assert check_shapes("UnsortedSegmentJoin", x, ints(1, 0, 1), np.int32(3), separator="-").tolist() == [
        b"b",
        b"a-c",
        b"",
    ]
    grams, splits = check_shapes(
        "StringNGrams",
        x,
        np.array([0, 2, 3]),
        separator="|",
        ngram_widths=[2],
        left_pad="L",
        right_pad="R",
        pad_width=-1,
        preserve_short_sequences=False,
    )
    assert grams.tolist() == [b"L|a", b"a|b", b"b|R", b"L|c", b"c|R"]
    assert splits.tolist() == [0, 3, 5]


def test_shapes_of_tokens_are_open() -> None:
    assert shapes("StringSplitV2", (3,), ()) == [(None, 2), (None,), (2,)]
    assert shapes("StringJoin", [(None,), (3,)]) == [(3,)]
    assert shapes("ReduceJoin", (2, 3), (1,)) == [None]


def test_padding_alone_makes_no_ngrams() -> None:
    attrs: dict[str, Any] = {
        "separator": b"|",
        "left_pad": b"L",
        "right_pad": b"R",
        "pad_width": -1,
        "preserve_short_sequences": False,
    }
    grams, splits = run("StringNGrams", texts(), ints(0, 0), ngram_widths=(2,), **attrs)
    assert grams.tolist() == []
    assert splits.tolist() == [0, 0]
    grams, splits = run("StringNGrams", texts(b"a"), ints(0, 0, 1), ngram_widths=(2,), **attrs)
    assert grams.tolist() == [b"L|R", b"L|a", b"a|R"]
    assert splits.tolist() == [0, 1, 3]
    with pytest.raises(InvalidArgumentError, match="ngram_widths must contain positive values"):
        run("StringNGrams", texts(), ints(0, 0), ngram_widths=(0,), **attrs)
