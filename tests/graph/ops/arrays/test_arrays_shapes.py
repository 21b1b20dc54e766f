"""What TensorFlow's shape functions of array, sparse and string ops say, and refuse, before a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType, Shape
from tests.devices.kernels.harness import shapes
from tests.devices.kernels.random_arrays import ints

F = DataType.FLOAT
ONE = np.float32(1)

SHAPES: list[tuple[str, tuple[Any, ...], dict[str, Any], Shape]] = [
    ("MatrixSetDiag", ((None, 2, 3), (1, 2)), {"T": F}, (1, 2, 3)),
    ("MatrixSetDiag", (None, (None,)), {"T": F}, (None, None)),
    ("MatrixBandPart", ((3,), np.int64(0), np.int64(0)), {"T": F}, (3,)),
    ("Slice", ((2, 2), ints(0, 1), ints(2, 5)), {"T": F}, (2, 5)),
    ("TensorScatterAdd", ((None, 2, 1), ints(0, 0, 0, 0).reshape(1, 4), (1,)), {"T": F}, (None, 2, 1)),
    ("SpaceToBatchND", ((2, 3), ints(), ints().reshape(0, 2)), {"T": F}, (2, 3)),
]

REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("Reshape", ((1, 3), ints(1, 3).reshape(1, 2)), {"T": F}, "Shape must be rank 1 but is rank 2"),
    ("Reshape", ((1, 3), ints(-3)), {"T": F}, "Invalid value in tensor used for shape: -3"),
    ("ExpandDims", ((2,), ints(0, 1)), {"T": F}, "'dim' input must be a tensor with a single value"),
    ("Slice", ((2,), ints(5), ints(-1)), {"T": F}, "Negative dimension size caused by subtracting 5 from 2"),
    ("ReverseV2", ((2, 2), ints(0, -2)), {"T": F}, "axis 0 specified more than once."),
    ("EnsureShape", ((1, 1),), {"T": F, "shape": None}, "Shape must be rank -1 but is rank 2"),
    ("TensorScatterAdd", ((0, 3), ints(0, 0).reshape(2, 1), (2, 3)), {"T": F}, "specified for empty input"),
    ("StringFormat", ((),), {"T": (F,), "template": b"x", "placeholder": b"%s"}, "num placeholders in template"),
    ("NthElement", (None, np.int32(-1)), {"T": F}, "must be non-negative but is -1"),
]


@pytest.mark.parametrize(("op", "inputs", "attrs", "expected"), SHAPES)
def test_shapes_known_before_a_run(op: str, inputs: tuple[Any, ...], attrs: dict[str, Any], expected: Shape) -> None:
    assert shapes(op, *inputs, **attrs)[0] == expected


@pytest.mark.parametrize(("op", "inputs", "attrs", "message"), REFUSED)
def test_refusals_before_a_run(op: str, inputs: tuple[Any, ...], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        shapes(op, *inputs, **attrs)
    assert message in caught.value.message
