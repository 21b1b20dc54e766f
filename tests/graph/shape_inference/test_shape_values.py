"""Integer values that are known before a run are those that a run computes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.graph import DataType
from partita.graph.analysis.value_rules import MAX_ELEMENTS, VALUES, evaluate, is_partial, known_sizes
from partita.graph.dtypes import Array, Shape
from partita.graph.ops.properties import properties_of
from partita.graph.ops.registry import lookup_op

INT32 = DataType.INT32


def values(op: str, *inputs: object, shapes: list[Shape] | None = None, **attrs: Any) -> list[Array | None]:
    """Known outputs of an op on int32 inputs, None standing for an unknown input."""
    known = [None if x is None else np.asarray(x, np.int32) for x in inputs]
    inferred: list[Shape] = shapes or [None if x is None else x.shape for x in known]
    return evaluate(properties_of(op, {"T": INT32, **attrs}), inferred, known)


def only(outputs: list[Array | None]) -> Any:
    """The single output as nested lists."""
    (value,) = outputs
    return None if value is None else value.tolist()


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "expected"),
    [
        ("Pack", (2, 3), {"N": 2, "axis": 0}, [2, 3]),
        ("ConcatV2", ([1, 2], [3], 0), {"N": 2}, [1, 2, 3]),
        ("Prod", ([2, 3, 4], [0]), {}, 24),
        ("Sum", ([[1, 2], [3, 4]], [1]), {"keep_dims": True}, [[3], [7]]),
        ("GatherV2", ([5, 6, 7], [2, 0], 0), {"Tparams": INT32, "Tindices": INT32, "Taxis": INT32}, [7, 5]),
        ("StridedSlice", ([1, 2, 3, 4], [1], [4], [2]), {"Index": INT32}, [2, 4]),
        ("StridedSlice", ([1, 2, 3], [-1], [0], [1]), {"Index": INT32, "shrink_axis_mask": 1}, 3),
        ("StridedSlice", ([1, 2, 3], [9], [9], [-1]), {"Index": INT32, "begin_mask": 1, "end_mask": 1}, [3, 2, 1]),
        ("Slice", ([1, 2, 3], [1], [-1]), {"Index": INT32}, [2, 3]),
        ("FloorDiv", (-7, 2), {}, -4),
        ("ExpandDims", (4, 0), {}, [4]),
        ("Fill", ([2], 7), {"index_type": INT32}, [7, 7]),
    ],
)
def test_known_values(op: str, inputs: tuple[object, ...], attrs: dict[str, Any], expected: object) -> None:
    """By example, for the ops that shape arithmetic is made of."""
    assert only(values(op, *inputs, **attrs)) == expected


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-3, 3).filter(bool))
def test_range(start: int, limit: int, delta: int) -> None:
    """As Python counts."""
    assert only(values("Range", start, limit, delta, Tidx=INT32)) == list(range(start, limit, delta))


@given(st.lists(st.integers(0, 9) | st.none(), max_size=4))
def test_shape_of_a_partly_known_shape(sizes: list[int | None]) -> None:
    """The rank is known at once, each size as soon as it is, their product only when all are."""
    shape = tuple(sizes)
    known = None not in sizes
    assert only(values("Rank", None, shapes=[shape])) == len(sizes)
    (value,) = values("Shape", None, shapes=[shape], out_type=INT32)
    if sizes and sizes.count(None) == len(sizes):
        assert value is None
    else:
        assert value is not None
        assert known_sizes(value) == shape
        assert is_partial(value) != known
    assert only(values("Size", None, shapes=[shape], out_type=INT32)) == (
        prod(size or 0 for size in sizes) if known else None
    )


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([2, 3], [2, 3], [[], []]),
        ([1, 3], [2, 3], [[0], []]),
        ([1, 3], [1, 3], [[], []]),
        ([3], [2, 3], [[0], []]),
        ([1, 1], [1, 3], [[0, 1], [0]]),
        ([], [2], [[0], []]),
        ([1], [1, 1], [[0, 1], [0, 1]]),
        ([5, 1, 3], [1, 3], [[1], [0, 1]]),
    ],
)
def test_axes_a_gradient_sums_over(a: list[int], b: list[int], expected: list[list[int]]) -> None:
    """TensorFlow 2.21's answers."""
    axes = values("BroadcastGradientArgs", a, b)
    assert [value.tolist() for value in axes if value is not None] == expected


def test_an_unknown_input_gives_nothing() -> None:
    """Nor does an op that is not listed, an impossible value, or one that is too large."""
    assert only(values("Pack", 2, None, N=2, axis=0)) is None
    assert only(values("BitwiseAnd", 2, 3)) is None
    assert only(values("FloorDiv", 1, 0)) is None
    assert only(values("Reshape", [1, 2, 3], [2])) is None
    assert only(values("Range", 0, MAX_ELEMENTS + 1, 1, Tidx=INT32)) is None
    assert only(values("Fill", [MAX_ELEMENTS + 1], 1, index_type=INT32)) is None
    assert only(values("Size", None, shapes=[(1 << 20, 1 << 20)])) is None  # beyond int32


def test_every_listed_op_exists() -> None:
    """In the op registry."""
    assert all(lookup_op(op).name == op for op in VALUES)


def test_floats_are_not_followed() -> None:
    """Shapes are not computed from them."""
    const = properties_of("Const", {"dtype": DataType.FLOAT, "value": np.ones(3, np.float32)})
    assert evaluate(const, [], []) == [None]


def partial(*numbers: int | None) -> Array:
    """A vector of which only some numbers are known."""
    return np.array([np.nan if number is None else number for number in numbers])


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "expected"),
    [
        ("StridedSlice", (partial(None, 3, 4), [1], [3], [1]), {"Index": INT32}, (3, 4)),
        ("StridedSlice", (partial(None, 3, 4), [0], [2], [1]), {"Index": INT32}, (None, 3)),
        ("ConcatV2", (partial(None, 3), [5], 0), {"N": 2}, (None, 3, 5)),
        ("Mul", (partial(None, 3), [2, 2]), {}, (None, 6)),
        ("Mul", (partial(None, 3), [0, 0]), {}, (None, 0)),
        ("Maximum", (partial(None, 3), [5, 5]), {}, (None, 5)),
        (
            "GatherV2",
            (partial(None, 3, 4), [2, 0], 0),
            {"Tparams": INT32, "Tindices": INT32, "Taxis": INT32},
            (4, None),
        ),
        ("Prod", (partial(None, 3), [0]), {}, None),
        ("StridedSlice", (partial(None, 3), [0], partial(None), [1]), {"Index": INT32}, None),
    ],
)
def test_unknown_numbers_stay_unknown(
    op: str, inputs: Any, attrs: Any, expected: tuple[int | None, ...] | None
) -> None:
    """Known numbers are followed past unknown ones; slice positions must be fully known."""
    known = [x if isinstance(x, np.ndarray) else np.asarray(x, np.int32) for x in inputs]
    (value,) = evaluate(properties_of(op, {"T": INT32, **attrs}), [x.shape for x in known], known)
    assert (None if value is None else known_sizes(value)) == expected
    assert value is None or is_partial(value) or value.dtype == np.int32


def test_a_shape_packed_of_known_and_unknown_numbers() -> None:
    """An input of known shape and unknown value is an unknown number among known ones."""
    (value,) = values("Pack", None, 7, shapes=[(), ()], N=2, axis=0)
    assert value is not None
    assert known_sizes(value) == (None, 7)
    assert values("Pack", None, None, shapes=[(), ()], N=2, axis=0) == [None]
    assert values("Pack", None, 7, shapes=[None, ()], N=2, axis=0) == [None]
