"""Columns of features equal what protobuf's own parser finds, in every encoding of a list."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from partita.graph.ops.parsing.feature_columns import NONE, column_of, features_of, sequence_of, steps_of
from tests.devices.kernels.parsing.records import example, floats, ints, sequence, texts

WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300)


@given(st.lists(st.none() | st.lists(WHOLE, max_size=70), max_size=5))
def test_whole_numbers_survive(rows: list[list[int] | None]) -> None:
    """Varints of every length, records without the feature and empty lists."""
    column = column_of([None if row is None else ints(*row).SerializeToString() for row in rows], DataType.INT64)
    assert column.values.tolist() == [value for row in rows for value in row or []]
    assert column.counts.tolist() == [len(row or []) for row in rows]
    assert [kind == NONE for kind in column.kinds] == [row is None for row in rows]
    assert column.wrong() is None


@given(st.lists(st.lists(st.floats(width=32), max_size=40), max_size=5))
def test_floats_survive(rows: list[list[float]]) -> None:
    """Bit by bit."""
    column = column_of([floats(*row).SerializeToString() for row in rows], DataType.FLOAT)
    expected = np.array([value for row in rows for value in row], np.float32)
    np.testing.assert_array_equal(column.values, expected)
    assert column.values.flags.writeable
    assert column.counts.tolist() == list(map(len, rows))


@given(st.lists(st.lists(st.binary(max_size=5) | st.binary(min_size=120, max_size=140), max_size=3), max_size=4))
def test_texts_survive(rows: list[list[bytes]]) -> None:
    """Of any length."""
    column = column_of([texts(*row).SerializeToString() for row in rows], DataType.STRING)
    assert column.values.tolist() == [value for row in rows for value in row]
    assert column.counts.tolist() == list(map(len, rows))


@pytest.mark.parametrize(
    "body",
    [
        b"\x0a\x02\x05\x06",
        b"\x08\x05\x08\x06",
        b"\x0a\x01\x05\x0a\x01\x06",
        b"\x0a\x01\x05\x08\x06",
        b"\x0a\x02\x05\x06\x12\x00",
    ],
)
def test_lists_are_packed_or_not(body: bytes) -> None:
    """In one field, in many, in several packed ones, and with unknown fields behind."""
    column = column_of([b"\x1a" + bytes([len(body)]) + body], DataType.INT64)
    assert column.values.tolist() == [5, 6]


def test_floats_may_be_unpacked() -> None:
    """Each in a field of its own."""
    body = b"".join(b"\x0d" + struct.pack("<f", value) for value in (1, 2))
    assert column_of([b"\x12" + bytes([len(body)]) + body], DataType.FLOAT).values.tolist() == [1, 2]


def test_other_types_are_told() -> None:
    """The first record of another type is named; an empty feature has none."""
    pieces = [b"", ints(1).SerializeToString(), texts(b"a", b"b").SerializeToString()]
    column = column_of(pieces, DataType.INT64)
    assert (column.wrong(), column.values.tolist()) == (2, [1])
    assert column_of(pieces, DataType.STRING).wrong() == 1
    assert column_of(pieces, DataType.FLOAT).wrong() == 1


@pytest.mark.parametrize("piece", [b"\x1a\x03\x0a\x01\x85", b"\x12\x05\x0a\x03abc", b"abc", b"\x0a\x07"])
def test_damaged_features_are_refused(piece: bytes) -> None:
    """An unfinished number, three quarters of a float, and what is no message."""
    with pytest.raises(InvalidArgumentError, match="Unsupported datatype"):
        column_of([piece], DataType.FLOAT if piece[0] == 0x12 else DataType.INT64)


def test_records_fall_into_features() -> None:
    """Of two entries of one name the later one counts."""
    features = features_of(example(a=ints(1)) + example(a=ints(2), b=texts(b"x")))
    assert features["a"] == ints(2).SerializeToString()
    assert set(features) == {"a", "b"}
    with pytest.raises(InvalidArgumentError, match="Could not parse example input, value: 'abc'"):
        features_of(b"abc")


def test_sequences_fall_into_context_and_steps() -> None:
    """None for what does not parse."""
    parsed = sequence_of(sequence({"c": ints(1)}, {"f": [ints(1), texts()]}))
    assert parsed is not None
    assert parsed[0]["c"] == ints(1).SerializeToString()
    assert steps_of(parsed[1]["f"]) == [ints(1).SerializeToString(), texts().SerializeToString()]
    assert sequence_of(b"abc") is None
