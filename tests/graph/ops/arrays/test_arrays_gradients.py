"""Gradients of array ops (layout, patches, slices, gathers, partitions) are the slopes of the values."""

from __future__ import annotations

import pytest

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Operation, Tensor
from tests.graph.gradients.numeric import Example, complex_normal, distinct, example, known, normal, single


def later(b: GraphBuilder, value: object) -> Tensor:
    """A value that is unknown before the run."""
    return b.op("Cast", known(b, value, "float64"), DstT="int32")[0]


PERM = [2, 0, 1]
SQUARE_BLOCKS = normal(4, 2, 4, 3)

LAYOUT = {
    "reshape": example(lambda b, x: b.op("Reshape", x, known(b, [4, -1])), normal(2, 3, 4)),
    "expand": example(lambda b, x: b.op("ExpandDims", x, known(b, 1)), normal(2, 3)),
    "squeeze": example(lambda b, x: b.op("Squeeze", x), normal(2, 1, 3)),
    "transpose": example(lambda b, x: b.op("Transpose", x, known(b, PERM)), normal(2, 3, 4)),
    "transpose later": example(lambda b, x: b.op("Transpose", x, later(b, PERM)), normal(2, 3, 4)),
    "adjoint": example(lambda b, x: b.op("ConjugateTranspose", x, known(b, PERM)), complex_normal(2, 3, 4)),
    "reverse": example(lambda b, x: b.op("ReverseV2", x, known(b, [0, 2])), normal(2, 3, 4)),
    "reverse old": example(lambda b, x: b.op("Reverse", x, known(b, [True, False], "bool")), normal(2, 3)),
    "reverse sequence": example(
        lambda b, x: b.op("ReverseSequence", x, known(b, [1, 3, 2]), seq_dim=0, batch_dim=1), normal(4, 3, 2)
    ),
    "roll": example(lambda b, x: b.op("Roll", x, known(b, [1, -2]), known(b, [0, 2])), normal(2, 3, 4)),
    "space to depth": example(lambda b, x: b.op("SpaceToDepth", x, block_size=2), normal(2, 4, 6, 3)),
    "depth to space": example(lambda b, x: b.op("DepthToSpace", x, block_size=2), normal(2, 3, 2, 8)),
    "space to batch": example(
        lambda b, x: b.op("SpaceToBatch", x, known(b, [[0, 1], [1, 0]]), block_size=2), normal(2, 3, 5, 3)
    ),
    "batch to space": example(
        lambda b, x: b.op("BatchToSpace", x, known(b, [[0, 1], [1, 0]]), block_size=2), normal(8, 2, 3, 3)
    ),
    "space to batch nd": example(
        lambda b, x: b.op("SpaceToBatchND", x, known(b, [3, 2]), known(b, [[0, 1], [1, 0]])), normal(2, 5, 5, 3)
    ),
    "batch to space nd": example(
        lambda b, x: b.op("BatchToSpaceND", x, known(b, [3, 2]), known(b, [[0, 1], [1, 0]])), normal(6, 2, 3, 3)
    ),
    "broadcast": example(lambda b, x: b.op("BroadcastTo", x, known(b, [2, 3, 4])), normal(3, 1)),
    "broadcast later": example(lambda b, x: b.op("BroadcastTo", x, later(b, [2, 3, 4])), normal(3, 1)),
    "fill": example(lambda b, x: b.op("Fill", known(b, [2, 3]), x), normal()),
    "tile": example(lambda b, x: b.op("Tile", x, known(b, [2, 1, 3])), normal(2, 3, 2)),
    "band part": example(lambda b, x: b.op("MatrixBandPart", x, known(b, 1), known(b, 0)), normal(2, 4, 4)),
    "diag": example(lambda b, x: b.op("Diag", x), normal(2, 3)),
    "diag part": example(lambda b, x: b.op("DiagPart", x), normal(2, 3, 2, 3)),
    "matrix diag": example(lambda b, x: b.op("MatrixDiag", x), normal(2, 3)),
    "matrix diag part": example(lambda b, x: b.op("MatrixDiagPart", x), normal(2, 4, 3)),
    "matrix set diag": example(lambda b, x, d: b.op("MatrixSetDiag", x, d), normal(2, 4, 3), normal(2, 3)),
    "ensure shape": example(lambda b, x: b.op("EnsureShape", x, shape=(2, None)), normal(2, 3)),
    "matrix diag v2": example(
        lambda b, x: b.op("MatrixDiagV2", x, known(b, 1), known(b, -1), known(b, -1), known(b, 0, "float64")),
        normal(2, 3),
    ),
    "matrix diag v3": example(
        lambda b, x: b.op("MatrixDiagV3", x, known(b, [-1, 1]), known(b, -1), known(b, -1), known(b, 0, "float64")),
        normal(2, 3, 4),
    ),
    "matrix diag part v2": example(
        lambda b, x: b.op("MatrixDiagPartV2", x, known(b, -1), known(b, 0, "float64")), normal(2, 4, 3)
    ),
    "matrix diag part v3": example(
        lambda b, x: b.op("MatrixDiagPartV3", x, known(b, [-1, 1]), known(b, 0, "float64"), align="LEFT_RIGHT"),
        normal(2, 4, 3),
    ),
    "matrix set diag v2": example(
        lambda b, x, d: b.op("MatrixSetDiagV2", x, d, known(b, 1)), normal(2, 4, 3), normal(2, 2)
    ),
    "matrix set diag v3": example(
        lambda b, x, d: b.op("MatrixSetDiagV3", x, d, known(b, [-1, 0])), normal(2, 4, 3), normal(2, 2, 3)
    ),
}

BOUNDS = [0, 1, 0], [2, 3, 0], [1, 1, 2]


def chosen(values: Operation | list[Tensor], *ports: int) -> list[Tensor]:
    """Some of several outputs: nothing flows back into the others."""
    return [values[port] for port in ports]


def updated(op: str) -> Example:
    """A tensor with something scattered into it; no index twice."""
    indices = [[0, 2], [1, 1], [1, 0]]
    return example(lambda b, x, u: b.op(op, x, known(b, indices), u), normal(2, 3, 2), normal(3, 2, seed=3))


CUTS = {
    "pack": example(lambda b, x, y: b.op("Pack", [x, y, x], axis=1), normal(2, 3), normal(2, 3, seed=1)),
    "unpack": example(lambda b, x: chosen(b.op("Unpack", x, num=3, axis=-1), 0, 2), normal(2, 3)),
    "concat": example(lambda b, x, y: b.op("Concat", known(b, 1), [x, y]), normal(2, 3), normal(2, 1)),
    "concat v2": example(lambda b, x, y: b.op("ConcatV2", [x, y, y], known(b, -1)), normal(2, 3), normal(2, 1)),
    "concat later": example(lambda b, x, y: b.op("ConcatV2", [x, y], later(b, -1)), normal(2, 3), normal(2, 1)),
    "split": example(lambda b, x: chosen(b.op("Split", known(b, 1), x, num_split=3), 0, 2), normal(2, 6)),
    "split in one": example(lambda b, x: b.op("Split", known(b, 1), x, num_split=1), normal(2, 6)),
    "split v": example(
        lambda b, x: chosen(b.op("SplitV", x, known(b, [1, -1, 2]), known(b, 1), num_split=3), 1, 2), normal(2, 6)
    ),
    "slice": example(lambda b, x: b.op("Slice", x, known(b, [0, 1]), known(b, [-1, 2])), normal(2, 4)),
    "strided slice": example(
        lambda b, x: b.op("StridedSlice", x, *(known(b, bound) for bound in BOUNDS), end_mask=4, shrink_axis_mask=2),
        normal(3, 4, 5),
    ),
    "strided slice update": example(
        lambda b, x, v: b.op("TensorStridedSliceUpdate", x, *(known(b, n) for n in ([1, 0], [3, 4], [1, 2])), v),
        normal(3, 4),
        normal(2, 2),
    ),
    "strided slice grad": example(
        lambda b, g: b.op("StridedSliceGrad", known(b, [3, 4]), *(known(b, n) for n in ([1, 0], [3, 4], [1, 2])), g),
        normal(2, 2),
    ),
    "pad": example(lambda b, x: b.op("Pad", x, known(b, [[1, 0], [2, 3]])), normal(2, 3)),
    "pad v2": example(lambda b, x: b.op("PadV2", x, known(b, [[1, 0], [2, 3]]), known(b, 7, "float64")), normal(2, 3)),
    "mirror": example(lambda b, x: b.op("MirrorPad", x, known(b, [[1, 0], [2, 1]]), mode="REFLECT"), normal(2, 4)),
    "mirror grad": example(
        lambda b, x: b.op("MirrorPadGrad", x, known(b, [[1, 0], [2, 1]]), mode="SYMMETRIC"), normal(4, 7)
    ),
}

LOOK_UPS = {
    "gather": example(lambda b, x: b.op("Gather", x, known(b, [[1, 0], [1, 2]])), normal(3, 2)),
    "gather v2": example(lambda b, x: b.op("GatherV2", x, known(b, [1, 0, 1]), known(b, 0)), normal(3, 2)),
    "gather scalar": example(lambda b, x: b.op("GatherV2", x, known(b, 1), known(b, 0)), normal(3, 2)),
    "gather axis": example(lambda b, x: b.op("GatherV2", x, known(b, [[1, 0], [1, 1]]), known(b, -1)), normal(2, 2, 3)),
    "gather axis later": example(lambda b, x: b.op("GatherV2", x, known(b, [1, 0]), later(b, 1)), normal(2, 2, 3)),
    "gather batch": example(
        lambda b, x: b.op("GatherV2", x, known(b, [[1, 0, 1], [2, 2, 0]]), known(b, 2), batch_dims=1),
        normal(2, 2, 3, 2),
    ),
    "gather two batches": example(
        lambda b, x: b.op("GatherV2", x, known(b, [[1], [2]], "int64"), known(b, 2), batch_dims=-1), normal(2, 2, 3, 2)
    ),
    "gather twice": example(
        lambda b, x: b.op("AddN", [b.op("Gather", x, known(b, i))[0] for i in ([1, 0], [1, 1])]), normal(3, 2)
    ),
    "gather nd": example(lambda b, x: b.op("GatherNd", x, known(b, [[1, 0], [1, 0]])), normal(3, 2, 2)),
    "scatter nd": example(
        lambda b, x: b.op("ScatterNd", known(b, [[1, 0], [1, 0]]), x, known(b, [3, 2, 2])), normal(2, 2)
    ),
    "scatter add": updated("TensorScatterAdd"),
    "scatter sub": updated("TensorScatterSub"),
    "scatter update": updated("TensorScatterUpdate"),
    "scatter max": updated("TensorScatterMax"),
    "scatter min": updated("TensorScatterMin"),
    "scatter aliased": updated("ScatterNdNonAliasingAdd"),
    "top k": example(lambda b, x: b.op("TopKV2", x, known(b, 2))[0], distinct(2, 3, 4)),
    "top k of columns": example(
        lambda b, x: b.op("ApproxTopK", x, k=2, reduction_dimension=1)[0],
        single(distinct(2, 3, 4)),
        step=0.01,
        rtol=1e-3,
        atol=1e-3,
        open_shapes=True,
    ),
    "top k old": example(lambda b, x: b.op("TopK", x, k=2)[0], distinct(3, 4)),
    "nth": example(lambda b, x: b.op("NthElement", x, known(b, 2)), distinct(2, 5)),
}


GROUPS = {
    "partition": example(
        lambda b, x: chosen(b.op("DynamicPartition", x, known(b, [1, 0, 1, 2, 0]), num_partitions=3), 0, 1),
        normal(5, 2),
    ),
    "stitch": example(
        lambda b, x, y: b.op("DynamicStitch", [known(b, [3, 0]), known(b, [1, 2])], [x, y]),
        normal(2, 2),
        normal(2, 2, seed=1),
    ),
    "parallel stitch": example(
        lambda b, x, y: b.op("ParallelDynamicStitch", [known(b, [3, 0]), known(b, [[1], [2]])], [x, y]),
        normal(2, 2),
        normal(2, 1, 2, seed=1),
    ),
}

PATCHES = {
    "patches": example(
        lambda b, x: b.op(
            "ExtractImagePatches", x, ksizes=[1, 2, 3, 1], strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding="SAME"
        ),
        normal(2, 4, 5, 2),
    ),
    "volumes": example(
        lambda b, x: b.op("ExtractVolumePatches", x, ksizes=[1, 2, 1, 3, 1], strides=[1, 1, 2, 1, 1], padding="VALID"),
        normal(2, 3, 4, 5, 2),
    ),
}

EXAMPLES = PATCHES | LAYOUT | CUTS | LOOK_UPS | GROUPS


@pytest.mark.parametrize("open_shapes", [False, True])
@pytest.mark.parametrize("name", EXAMPLES)
async def test_elements_flow_back_to_where_they_came_from(name: str, open_shapes: bool) -> None:
    """With known shapes and with shapes that are unknown before the run."""
    await EXAMPLES[name].check(open_shapes=open_shapes)
