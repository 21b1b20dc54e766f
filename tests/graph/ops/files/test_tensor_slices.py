"""Slices are parsed and printed as TensorFlow does."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.errors import InternalError, InvalidArgumentError, PartitaError
from partita.graph.ops.files.tensor_slices import TensorSlice, parse_shape_and_slice, parse_slice, slice_from_proto

LARGE = (1 << 62) - 1
EXTENTS = st.none() | st.tuples(st.integers(0, LARGE), st.integers(1, LARGE))
SLICES = st.lists(EXTENTS, max_size=4).map(lambda extents: TensorSlice(tuple(extents)))


@given(SLICES)
def test_texts_and_messages_say_the_same(part: TensorSlice) -> None:
    """Converting to text or to a message and back gives the same slice."""
    assert parse_slice(str(part)) == part
    assert slice_from_proto(part.to_proto()) == part


def test_a_specification_has_the_full_shape_and_the_part() -> None:
    """The text that the ops take."""
    shape, part = parse_shape_and_slice("6 4 0,3:-")
    assert (shape, part.extents, part.shape_in(shape)) == ((6, 4), ((0, 3), None), (3, 4))


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("x", InvalidArgumentError, "Need least two elements in shape_and_slice specification: x"),
        ("3 4", InvalidArgumentError, "Expected a pair of numbers or '-' but got '4': string = 4"),
        ("3 4 1:2", InvalidArgumentError, "Expected a pair of numbers or '-' but got '1': string = 1:2"),
        ("3 x -:-", InvalidArgumentError, "Non numerical dimension in shape_and_slice: 3 x -:-"),
        ("3 4  -:-", InvalidArgumentError, "Non numerical dimension in shape_and_slice: 3 4  -:-"),
        ("3 99999999999999999999 -:-", InvalidArgumentError, "Non numerical dimension in shape_and_slice: "),
        ("3 -4 -:-", InvalidArgumentError, "Non numerical dimension in shape_and_slice: 3 -4 -:-"),
        (
            "3 4 0,0:-",
            InvalidArgumentError,
            "Expected non-negative start and positive length but got start = 0, length = 0: string = 0,0:-",
        ),
        ("3 4 1,2", InternalError, "Mismatching ranks: shape = [3,4], slice = 1,2"),
        ("3 4 1,3:-", InternalError, "Extent in dimension 0 out of bounds: shape = [3,4], slice = 1,3:-"),
    ],
)
def test_wrong_specifications_are_refused(text: str, kind: type[PartitaError], message: str) -> None:
    """With TensorFlow's codes and words."""
    with pytest.raises(kind) as caught:
        parse_shape_and_slice(text)
    assert caught.value.message.startswith(message)
