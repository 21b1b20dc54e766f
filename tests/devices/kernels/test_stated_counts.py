"""Counts that ops state, by hand: what they compute and what they move."""

from __future__ import annotations

import pytest

from partita.devices.kernels.op_cost import CostContext, bytes_of, flops_of
from partita.graph import DataType
from partita.graph.dtypes import Dims

TYPES = {"f": DataType.FLOAT, "i": DataType.INT32, "b": DataType.BOOL, "l": DataType.INT64, "r": DataType.RESOURCE}
COUNTS: list[tuple[str, str, list[Dims], str, list[Dims], int, int]] = [
    ("Where", "b", [(100,)], "l", [(7, 1)], 100, 2 * 100 + 7 * 8),
    ("Roll", "fii", [(8, 8), (), ()], "f", [(8, 8)], 0, 2 * 256 + 8),
    ("Range", "fff", [(), (), ()], "f", [(50,)], 100, 200),
    ("ScatterNd", "ifi", [(3, 1), (3, 10), (2,)], "f", [(100, 10)], 30, 12 + 120 + 8 + 4000 + 240),
    ("TensorScatterAdd", "fif", [(100, 10), (3, 1), (3, 10)], "f", [(100, 10)], 30, 4000 + 12 + 120 + 4000 + 240),
    ("ResourceScatterNdAdd", "rif", [(), (3, 1), (3, 10)], "", [], 30, 3 * 120 + 12),
    ("TopKV2", "fi", [(10, 1000), ()], "fi", [(10, 8), (10, 8)], 10_000 * 4, 40_000 + 4 + 2 * 320),
    ("RandomUniform", "i", [(1,)], "f", [(100,)], 2700, 400),
    ("SparseTensorDenseMatMul", "lflf", [(5, 2), (5,), (2,), (9, 4)], "f", [(9, 4)], 40, 80 + 20 + 16 + 288),
    ("SparseSegmentMean", "fii", [(100, 10), (6,), (6,)], "f", [(3, 10)], 60 + 30, 4000 + 48 + 120),
    ("ResizeBilinear", "fi", [(1, 4, 4, 3), (2,)], "f", [(1, 8, 8, 3)], 9 * 192, 192 + 8 + 768),
    ("Qr", "f", [(20, 10)], "ff", [(20, 10), (10, 10)], 4 * 20 * 100, 4 * (200 + 200 + 100)),
    ("LookupTableFindV2", "rlf", [(), (6,), ()], "f", [(6,)], 60, 48 + 4 + 24),
    ("BarrierTakeMany", "ri", [(), ()], "lf", [(5,), (5, 3)], 0, 2 * (40 + 60)),
    ("AccumulatorTakeGradient", "ri", [(), ()], "f", [(5, 3)], 15, 120),
    ("ResourceSparseApplyAdagrad", "rrffi", [(), (), (), (4, 10), (4,)], "", [], 200, 5 * 160 + 16),
    ("TensorArrayGatherV3", "rif", [(), (4,), ()], "f", [(4, 25)], 0, 800),
    ("TensorListFromTensor", "fi", [(4, 25), (1,)], "", [], 0, 2 * 404),
    ("IteratorGetNext", "r", [()], "f", [(4, 25)], 0, 400),
]


@pytest.mark.parametrize(("op", "inputs", "shapes", "outputs", "results", "flops", "moved"), COUNTS)
def test_counts(
    op: str, inputs: str, shapes: list[Dims], outputs: str, results: list[Dims], flops: int, moved: int
) -> None:
    """None of these is an operation per output element."""
    types = (tuple(map(TYPES.__getitem__, inputs)), tuple(map(TYPES.__getitem__, outputs)))
    c = CostContext(op, {}, tuple(shapes), tuple(results), *types)
    assert (flops_of(c), bytes_of(c)) == (flops, moved)
