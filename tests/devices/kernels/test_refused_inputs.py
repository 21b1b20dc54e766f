"""Inputs of wrong ranks, sizes and values are refused in TensorFlow's words: no error of Python's comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import run
from tests.devices.kernels.random_arrays import ints

F = np.float32


def ones(*shape: int) -> Array:
    """A float32 array of ones."""
    return np.ones(shape, F)


def longs(*values: int) -> Array:
    """An int64 vector."""
    return np.array(values, np.int64)


PLACES = np.array([[0, 1], [1, 0]], np.int64)  # of the two values of a sparse matrix
SPARSE = (PLACES, ones(2), longs(2, 2))
LSTM = (ones(2, 3), ones(2, 4), ones(2, 4), ones(7, 16), ones(4), ones(4), ones(4), ones(16))
LSTM_GRAD = (*LSTM, *[ones(2, 4)] * 8)
GRU = (ones(2, 3), ones(2, 4), ones(7, 8), ones(7, 4), ones(8), ones(4))
BOXES = (ones(3, 4), ones(3), np.int32(2), F(0.5), F(0))
OVERLAPS = (ones(3, 3), ones(3), np.int32(2), F(0.5), F(0))
LABELS = (ones(3, 1, 4), PLACES[:1], ints(0), ints(3))
GLIMPSE = (ones(1, 4, 4, 1), ints(2, 2), ones(1, 2))
FRACTIONAL = (ones(1, 4, 4, 1), ones(1, 2, 2, 1), ones(1, 2, 2, 1), longs(0, 2, 4), longs(0, 2, 4))
NORM_GRAD = (ones(2, 2, 2, 3), ones(2, 2, 2, 3), ones(3), ones(3), ones(3), ones(3))
RANGES = (F(0), F(1), F(0), F(1))
BYTES = np.ones((2, 3), np.uint8)


def changed(inputs: Sequence[Any], port: int, value: Any) -> list[Any]:
    """The inputs with another value at one port."""
    return [value if i == port else old for i, old in enumerate(inputs)]


LSTM_ATTRS = {"use_peephole": False, "cell_clip": 0.0, "forget_bias": 1.0}
SETS = {"set_operation": "union"}

REFUSED: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("LSTMBlockCell", changed(LSTM, 0, F(1)), LSTM_ATTRS, "Rank of x must be 2, got 0"),
    ("LSTMBlockCell", changed(LSTM, 2, ones(2, 3)), LSTM_ATTRS, "h_prev.dims(1) != cell_size: 3 vs. 4"),
    (
        "LSTMBlockCellGrad",
        changed(LSTM_GRAD, 8, ones(2, 0)),
        {"use_peephole": False},
        "i.dims(1) != cell_size: 0 vs. 4",
    ),
    ("GRUBlockCell", changed(GRU, 4, ones(0)), {}, "b_ru.dims(0) != cell_size * 2: 0 vs. 8"),
    ("CTCGreedyDecoder", [ones(3, 1, 4), np.int32(3)], {}, "sequence_length is not a vector"),
    ("CTCBeamSearchDecoder", [ones(3, 1, 0), ints(3)], {"beam_width": 2, "top_paths": 1}, "inputs must not be empty"),
    ("CTCLoss", changed(LABELS, 1, longs(0, 1)), {}, "labels_indices is not a matrix"),
    ("CTCLoss", changed(LABELS, 2, np.int32(0)), {}, "labels_values is not a vector"),
    ("NonMaxSuppressionV3", changed(BOXES, 4, ones(0)), {}, "score_threshold must be 0-D, got shape [0]"),
    ("NonMaxSuppressionWithOverlaps", changed(OVERLAPS, 2, ints(2)), {}, "max_output_size must be 0-D, got shape [1]"),
    ("Conv3D", [ones(1, 2, 2, 2, 0), ones(1, 1, 1, 1, 2)], {"strides": [1] * 5, "padding": "SAME"}, "Number of channe"),
    ("ExtractGlimpse", changed(GLIMPSE, 1, ints(2)), {}, "input must be a vector of size 2 (height, width)[1]"),
    ("ExtractGlimpse", changed(GLIMPSE, 1, ints(2, -1)), {}, "Expected a non-negative size, got -1"),
    ("DrawBoundingBoxes", [F(1), ones(1, 1, 4)], {}, "The rank of the images should be 4"),
    (
        "FractionalMaxPoolGrad",
        changed(FRACTIONAL, 0, ones(4)),
        {},
        "orig_input should be a tensor of rank 4, got shape",
    ),
    ("FusedBatchNormGradV3", changed(NORM_GRAD, 3, ones(2)), {}, "reserve_space_1 must have the same number of eleme"),
    ("BandedTriangularSolve", [ones(0, 4), ones(4, 1)], {}, "In[0] must not be an empty tensor: [0,4]"),
    ("SetSize", changed(SPARSE, 1, F(1)), {}, "vals must be a vec, but got: []"),
    ("SetSize", changed(SPARSE, 2, longs(-1, 2)), {}, "Expected shape dimensions to be non-negative, got -1"),
    (
        "SparseToSparseSetOperation",
        [*changed(SPARSE, 0, PLACES[:1]), *SPARSE],
        SETS,
        "indices and values rows (indexing",
    ),
    (
        "SparseReduceSum",
        [*changed(SPARSE, 1, ones(3)), ints(0)],
        {},
        "indices and values rows (indexing dimension) must",
    ),
    ("SparseFillEmptyRows", [*changed(SPARSE, 2, np.int64(2)), F(0)], {}, "dense_shape must be a vector, saw: []"),
    (
        "SparseTensorDenseMatMul",
        [*changed(SPARSE, 0, longs(1)), ones(2, 2)],
        {},
        "indices and values rows (indexing di",
    ),
    ("SparseToDense", [PLACES, longs(2, -1), ones(2), F(0)], {}, "Dimension -1 must be >= 0"),
    ("RaggedFillEmptyRows", [longs(0), F(1), np.int64(2), F(0)], {}, "values must be a vector, saw: []"),
    (
        "QuantizedMul",
        [BYTES, BYTES[:, :2], *RANGES],
        {"T1": DataType.QUINT8, "T2": DataType.QUINT8},
        "Incompatible shap",
    ),
    ("SobolSample", [ints(1), np.int32(1), np.int32(1)], {}, "dim must be a scalar, got shape [1]"),
    (
        "DecodePaddedRaw",
        [np.array([b"ab"], object), ints(2)],
        {"out_type": DataType.UINT8},
        "k must be scalar, got shape",
    ),
    ("Fingerprint", [ones(2), np.array([], object)], {}, "`method` should be a scalar string: [0]"),
]


@pytest.mark.parametrize(("op", "inputs", "attrs", "message"), REFUSED)
def test_wrong_inputs_are_refused(op: str, inputs: list[Any], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run(op, *inputs, **attrs)
    assert message in caught.value.message


def test_what_tensorflow_computes_is_not_refused() -> None:
    """Images without channels, boxes and places that are no numbers, and triangles that cannot be inverted."""
    convolved = run("Conv2D", ones(1, 3, 3, 0), ones(1, 1, 2, 5), strides=[1, 1, 1, 1], padding="SAME")
    assert convolved.shape == (1, 3, 3, 5)
    assert not convolved.any()
    assert run("DrawBoundingBoxes", ones(1, 2, 2, 1), np.full((1, 1, 4), np.nan, F)).all()
    assert not run("ExtractGlimpse", ones(1, 2, 2, 1), ints(1, 1), np.full((1, 2), np.nan, F), noise="zero").any()
    assert not np.isfinite(run("CholeskyGrad", np.zeros((2, 2), F), ones(2, 2))).all()
    assert np.isnan(run("MatrixLogarithm", np.full((2, 2), np.nan, np.complex64))).all()


def test_only_the_triangle_of_a_factor_counts() -> None:
    """What lies above the diagonal of a Cholesky factor is not looked at."""
    factor = np.array([[2, 0], [1, 3]], F)
    np.testing.assert_array_equal(
        run("CholeskyGrad", factor + np.triu(ones(2, 2), 1), ones(2, 2)), run("CholeskyGrad", factor, ones(2, 2))
    )


def test_gamma_numbers_that_no_draw_would_give_are_nan() -> None:
    """A shape far below zero ended never."""
    drawn = run("StatelessRandomGammaV2", ints(2), ints(1, 2), np.array([-1, 1], F))
    assert np.isnan(drawn).tolist() == [True, False]
