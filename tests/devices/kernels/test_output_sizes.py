"""Outputs whose size an input states are refused before there is memory for them."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.stats.qmc  # noqa: F401 - SobolSample imports it, which takes memory

from partita.devices.kernels import output_size
from partita.errors import ResourceExhaustedError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import run
from tests.devices.kernels.random_arrays import ints

F, N = np.float32, 2**21 + 5
MEMORY = 4 << 20
FLOATS = {"dtype": DataType.FLOAT}
SEED, IMAGE, ONE = np.array([1, 2]), np.ones((1, 2, 2, 1), F), np.ones(1, F)
LARGE = ints(2000, 1200)
COLUMN, ROW = np.ones((2000, 1), F), np.ones((1, 1200), F)
TRUTHS, BITS = (np.ones((3000, 1), bool), np.ones((1, 3000), bool)), (ints(*[1] * 2000)[:, None], ints(*[1] * 1200))
CLASSES = {"num_true": 1, "num_sampled": N, "unique": False, "range_max": 9}
WINDOWS = {"strides": [1, 1, 1, 1], "padding": "SAME"}
BROADCAST = [
    *(
        "Add",
        "AddV2",
        "Atan2",
        "Complex",
        "Div",
        "DivNoNan",
        "FloorDiv",
        "FloorMod",
        "Maximum",
        "Minimum",
        "Mod",
        "Mul",
    ),
    *("NextAfter", "Pow", "RealDiv", "SquaredDifference", "Sub", "Xdivy", "Xlogy", "Zeta"),
]

STATED: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Fill", (ints(N), F(1)), {}),
    ("BroadcastTo", (ONE, ints(N)), {}),
    ("Range", (np.int32(0), np.int32(N), np.int32(1)), {}),
    ("Tile", (ONE, ints(N)), {}),
    ("Pad", (ONE, ints(0, N)[None]), {}),
    ("PadV2", (ONE, ints(0, N)[None], F(2)), {}),
    ("OneHot", (ints(1, 2), np.int32(N), F(1), F(0)), {}),
    ("LinSpace", (F(0), F(1), np.int32(N)), {}),
    ("Empty", (ints(N),), FLOATS),
    ("RandomUniform", (ints(N),), FLOATS),
    ("RandomStandardNormal", (ints(N),), FLOATS),
    ("TruncatedNormal", (ints(N),), FLOATS),
    ("RandomUniformInt", (ints(N), np.int32(0), np.int32(9)), {}),
    ("RandomGamma", (ints(N), F(1)), {}),
    ("RandomPoissonV2", (ints(N), F(1)), {}),
    ("StatelessRandomUniform", (ints(N), SEED), FLOATS),
    ("StatelessRandomNormal", (ints(N), SEED), FLOATS),
    ("StatelessRandomBinomial", (ints(N), SEED, F(3), F(0.5)), FLOATS),
    ("StatelessRandomGammaV2", (ints(N), SEED, F(1)), {}),
    ("Multinomial", (np.zeros((1, 3), F), np.int32(N)), {}),
    ("SobolSample", (np.int32(2), np.int32(N), np.int32(0)), {}),
    ("ResizeBilinear", (IMAGE, LARGE), {}),
    ("ResizeNearestNeighbor", (IMAGE, LARGE), {}),
    ("ResizeBicubic", (IMAGE, LARGE), {}),
    ("ResizeArea", (IMAGE, LARGE), {}),
    ("ScaleAndTranslate", (IMAGE, LARGE, np.ones(2, F), np.zeros(2, F)), {}),
    ("CropAndResize", (IMAGE, np.ones((1, 4), F), ints(0), LARGE), {}),
    ("ExtractGlimpse", (IMAGE, LARGE, np.zeros((1, 2), F)), {}),
    ("SparseToDense", (SEED[:1, None], np.array([N]), ONE, F(0)), {}),
    ("Bincount", (ints(1), np.int32(N), ONE), {}),
    ("DenseBincount", (ints(1), np.int32(N), ONE), {}),
    ("SegmentSum", (ONE, ints(N)), {}),
    ("UnsortedSegmentSum", (ONE, ints(0), np.int32(N)), {}),
    ("UnsortedSegmentMax", (ONE, ints(0), np.int32(N)), {}),
    ("SparseSegmentSumWithNumSegments", (ONE, ints(0), ints(0), np.int32(N)), {}),
    ("ScatterNd", (ints(1)[None], ONE, ints(N)), {}),
    ("StridedSliceGrad", (ints(N), ints(0), ints(1), ints(1), ONE), {}),
    ("MatrixDiag", (np.ones(2000, F),), {}),
    ("Diag", (np.ones(2000, F),), {}),
    ("DecodePaddedRaw", (np.array([b"ab"], object), np.int32(4 * N)), {"out_type": DataType.UINT8}),
    ("TensorListReserve", (ints(2), np.int32(N)), {"element_dtype": DataType.FLOAT}),
    *[(op, (COLUMN, ROW), {}) for op in BROADCAST],
    *[(op, BITS, {}) for op in ("BitwiseAnd", "LeftShift", "RightShift", "TruncateDiv")],
    *[(op, (np.ones((3000, 1), F), np.ones(3000, F)), {}) for op in ("Equal", "Less", "NotEqual")],
    ("LogicalAnd", TRUTHS, {}),
    ("SelectV2", (TRUTHS[0][:2000], COLUMN, ROW), {}),
    *[(op, (COLUMN, ROW), {}) for op in ("MatMul", "BatchMatMul", "BatchMatMulV2", "SparseMatMul")],
    ("Einsum", ([COLUMN[:, 0], ROW[0]],), {"equation": "i,j->ij"}),
    ("SparseTensorDenseMatMul", (np.zeros((1, 2), np.int64), ONE, np.array([2000, 1]), ROW), {}),
    ("QuantizedMatMul", (COLUMN.astype("u1"), ROW.astype("u1"), F(0), F(1), F(0), F(1)), {}),
    ("MirrorPad", (np.zeros((512, 512), F), ints(511, 511, 511, 511).reshape(2, 2)), {"mode": b"REFLECT"}),
    ("Gather", (ROW, np.zeros(2000, np.int32)), {}),
    ("GatherV2", (COLUMN, np.zeros(1200, np.int32), np.int32(1)), {}),
    ("GatherNd", (ROW, np.zeros((2000, 1), np.int32)), {}),
    ("UnravelIndex", (np.zeros(1 << 18, np.int32), np.ones(8, np.int32)), {}),
    ("AudioSpectrogram", (np.zeros((5000, 1), F),), {"window_size": 512, "stride": 1}),
    ("ExtractImagePatches", (np.ones((1, 100, 100, 1), F),), WINDOWS | {"ksizes": [1, 20, 20, 1]}),
    (
        "Conv2DBackpropInput",
        (ints(1, 2000, 1200, 1), np.ones((1, 1, 1, 1), F), np.ones((1, 1, 1, 1), F)),
        WINDOWS | {"strides": [1, 2000, 1200, 1]},
    ),
    (
        "Conv2DBackpropFilter",
        (np.ones((1, 1, 1, 1), F), ints(2000, 1200, 1, 1), np.ones((1, 1, 1, 1), F)),
        WINDOWS,
    ),
    *[(op, (np.array([[1]]),), CLASSES) for op in ("UniformCandidateSampler", "LearnedUnigramCandidateSampler")],
    ("AllCandidateSampler", (np.array([[1]]),), {k: v for k, v in CLASSES.items() if k != "range_max"}),
    *[(op, (np.ones(2000, F), *ints(0, -1, -1), F(0)), {}) for op in ("MatrixDiagV2", "MatrixDiagV3")],
    ("RaggedTensorToTensor", (np.array([N, N]), ONE, F(0), [ints(0, 1)]), {"row_partition_types": [b"ROW_SPLITS"]}),
    ("XlaPad", (ONE, F(0), np.array([N]), np.array([0]), np.array([0])), {}),
    ("XlaRngBitGenerator", (np.int32(1), np.zeros(2, np.uint64), ints(N)), {"dtype": DataType.UINT32}),
]


@pytest.mark.parametrize(("op", "inputs", "attrs"), STATED, ids=[op for op, *_ in STATED])
def test_what_does_not_fit_is_not_allocated(
    op: str, inputs: tuple[Array, ...], attrs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """RESOURCE_EXHAUSTED, with less memory taken than the output would have."""
    monkeypatch.setattr(output_size, "MEMORY", MEMORY)
    tracemalloc.start()
    try:
        with pytest.raises(ResourceExhaustedError, match="OOM when allocating tensor with shape"):
            run(op, *inputs, **attrs)
        assert tracemalloc.get_traced_memory()[1] < 2 * MEMORY
    finally:
        tracemalloc.stop()
