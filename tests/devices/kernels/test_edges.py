"""TensorFlow's answers for empty inputs and unusual arguments."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import run
from tests.devices.kernels.random_arrays import ints, same

F = np.float32
EMPTY = np.zeros((2, 0), F)


def zeros(*shape: int) -> Any:
    """A float32 array of zeros."""
    return np.zeros(shape, F)


ANSWERS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], Any]] = {
    "axes of nothing are not looked at": ("ReverseV2", (EMPTY, ints(0, 0, 9)), {}, EMPTY),
    "nor those of a scalar": ("ReverseV2", (F(1), ints(3)), {}, np.array(1, F)),
    "empty slices have no indices out of range": (
        "GatherV2",
        (zeros(1, 3, 0), ints(-1), np.int32(0)),
        {},
        zeros(1, 3, 0),
    ),
    "a vector of one fills as a scalar does": ("Fill", (ints(2), np.ones(1, F)), {}, np.ones(2, F)),
    "the first of a vector of indices is a place": (
        "ScatterNdNonAliasingAdd",
        (zeros(4), ints(1, 2), np.ones(2, F)),
        {},
        np.array([0, 1, 0, 0], F),
    ),
    "no data, no segment out of range": ("UnsortedSegmentMin", (zeros(0, 1), np.int32(2), np.int32(2)), {}, None),
    "no rows, no rows to add to": (
        "SparseSegmentSumGrad",
        (np.ones((3, 2), F), ints(0, 0), ints(0, 1), np.int32(0)),
        {},
        zeros(0, 2),
    ),
    "half types count their steps": (
        "Range",
        tuple(np.array(x, ml_dtypes.bfloat16) for x in (0, 3, 2)),
        {},
        np.array([0, 2], ml_dtypes.bfloat16),
    ),
    "volume windows leave half of the rest in front": (
        "ExtractVolumePatches",
        (np.arange(5, dtype=F).reshape(1, 5, 1, 1, 1),),
        {"ksizes": (1, 1, 1, 1, 1), "strides": (1, 4, 1, 1, 1), "padding": b"SAME"},
        np.array([0, 4], F).reshape(1, 2, 1, 1, 1),
    ),
    "also where they are less than half": (
        "ExtractVolumePatches",
        (np.arange(3, dtype=F).reshape(1, 3, 1, 1, 1),),
        {"ksizes": (1, 1, 1, 1, 1), "strides": (1, 3, 1, 1, 1), "padding": b"SAME"},
        np.array([1], F).reshape(1, 1, 1, 1, 1),
    ),
}


@pytest.mark.parametrize(("op", "inputs", "attrs", "expected"), ANSWERS.values(), ids=ANSWERS.keys())
def test_values_at_the_edges(op: str, inputs: tuple[Any, ...], attrs: dict[str, Any], expected: Any) -> None:
    actual = run(op, *inputs, **attrs)
    if expected is not None:
        assert same(np.asarray(actual), expected)


REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("Reverse", (zeros(0, 2), np.array([True, False])), {}, "Invalid input first dimension. Found 0."),
    ("ReverseSequence", (zeros(2, 3), ints(1, 1)), {"seq_dim": 1, "batch_dim": -2}, "Invalid batch_dim -2"),
    ("ReverseSequence", (zeros(2, 3), ints(1, 1)), {"seq_dim": -1, "batch_dim": 0}, "Invalid seq_dim -1"),
    (
        "ScatterNd",
        (ints(0), np.ones(1, F), ints(1, 1)),
        {},
        "Dimensions [1,2) of input[shape=[1,1]] must match dimensio",
    ),
    ("TensorScatterAdd", (zeros(4, 2), ints(1), np.ones(2, F)), {}, "Dimensions [0,1) of indices[shape=[1]] = 1 must"),
    ("ScatterNdNonAliasingAdd", (zeros(3), ints().reshape(0, 0), zeros(0, 3)), {}, "Only indices.shape[-1] values bet"),
    ("ScatterNd", (ints().reshape(0, 0), zeros(0), ints()), {}, "Output must be at least 1-D, got shape: []"),
    ("Fill", (ints(2), np.ones((1, 1), F)), {}, "value must represent a scalar, got shape [1,1]"),
    ("Bitcast", (np.zeros(3, np.int8),), {"type": DataType.COMPLEX64}, "Cannot bitcast from 6 to 8"),
    ("MatrixDiagPartV3", (zeros(3, 0), ints(1, 0), F(0)), {}, "lower_diag_index is out of bound: 1. It must be"),
    ("MatrixSetDiagV3", (zeros(2, 3, 3), zeros(3), ints(0, 1)), {}, "Diagonal tensor rank must be large enough"),
    ("MatrixSetDiagV3", (zeros(2, 3, 3), zeros(2, 3), ints(0, 1)), {}, "The number of diagonals provided in `diag`"),
    (
        "SparseSegmentSumWithNumSegments",
        (zeros(3), ints(0), ints(0), ints(3)),
        {},
        "num_segments should be a scalar, not shape [1]",
    ),
    ("SparseSegmentSumGrad", (zeros(3), ints(0), ints(0), ints(3)), {}, "output_dim0 should be a scalar."),
    (
        "RaggedTensorToTensor",
        (np.int32(-1), zeros(3, 2), zeros(7), [ints(0, 3)]),
        {"row_partition_types": (b"ROW_SPLITS",)},
        "default_value.shape[-1] = 7 but rt_input.flat_values.shape[-1] = 2",
    ),
    (
        "RaggedTensorToTensor",
        (np.int32(-1), zeros(3, 2), zeros(1, 2), [ints(0, 3)]),
        {"row_partition_types": (b"ROW_SPLITS",)},
        "default_value.rank = 2  must be less than rt_input.flat_values.rank = 2",
    ),
]


@pytest.mark.parametrize(("op", "inputs", "attrs", "message"), REFUSED)
def test_refusals_at_the_edges(op: str, inputs: tuple[Any, ...], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run(op, *inputs, **attrs)
    assert message in caught.value.message
