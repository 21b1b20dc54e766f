"""Costs of reductions, normalisations, losses, updates of variables, and of ops that only move data.

Flows in: shapes. Flows out: operation and byte counts. Always holds: a count is a small constant times a number of
elements; each docstring says which steps the constant adds up.
"""

from __future__ import annotations

from collections.abc import Mapping

from .op_cost import CostContext, bytes_moved, flops, output_bytes

# Operations per output element of functions that hardware computes in steps: what TensorFlow's cost model answers
# for them (2.21, calibration runs: 1.814 ms and 2.016 ms for 2,097,152 elements at 41.6 operations per ns).
_STEPS: Mapping[str, int] = {"Tanh": 36, "Sigmoid": 40}


@flops(*_STEPS)
def stepwise(c: CostContext) -> int:
    """Operations of one element times elements."""
    return _STEPS[c.op] * c.elements_out()


@flops(
    *("All", "Any", "ArgMax", "ArgMin", "BiasAddGrad", "Cumprod", "Cumsum", "Max", "Mean", "Min", "Prod", "Sum"),
    *("EuclideanNorm", "SegmentSum", "SegmentMean", "SegmentMax", "UnsortedSegmentSum", "SparseSegmentSum"),
)
def reduction(c: CostContext) -> int:
    """One addition or comparison per element read."""
    return c.elements_in()


@flops("L2Loss")
def l2_loss(c: CostContext) -> int:
    """A square and an addition per element."""
    return 2 * c.elements_in()


@flops("AddN", "AccumulateNV2")
def add_n(c: CostContext) -> int:
    """One addition per element of every input after the first."""
    return max(1, len(c.inputs) - 1) * c.elements_out()


@flops("Softmax", "LogSoftmax")
def softmax(c: CostContext) -> int:
    """Per element: maximum, subtraction, exponential, sum, division (or subtraction of the logarithm)."""
    return 5 * c.elements_in()


@flops("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits")
def cross_entropy(c: CostContext) -> int:
    """Softmax (5), product with the labels, its sum, and the gradient's subtraction, per logit."""
    return 8 * c.elements_in()


def _is_training(c: CostContext) -> bool:
    return bool(c.attrs.get("is_training", True))


@flops("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(c: CostContext) -> int:
    """Per element: scale and shift (2); in training also the sum (1) and the squared deviations (3)."""
    return (6 if _is_training(c) else 2) * c.elements_in()


@flops("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def batch_norm_gradient(c: CostContext) -> int:
    """Per element: normalise (2), its product with the gradient and both sums (3), and the input's gradient (6)."""
    return 11 * c.elements_in()


@flops("LRN")
def local_response_norm(c: CostContext) -> int:
    """Per element: a square, a window of 2 * radius + 1 additions, a power and a division."""
    return (2 * int(c.attrs.get("depth_radius", 5)) + 4) * c.elements_in()


_MOVERS = (
    *("BatchToSpace", "BatchToSpaceND", "BroadcastTo", "Cast", "Concat", "ConcatV2", "DepthToSpace", "Fill"),
    *("Gather", "GatherNd", "GatherV2", "MirrorPad", "OneHot", "Pack", "ParallelConcat", "Pad", "PadV2"),
    *("ResourceGather", "ResourceGatherNd", "Reverse", "ReverseV2", "Slice", "SpaceToBatch", "SpaceToBatchND"),
    *("SpaceToDepth", "Split", "SplitV", "StridedSlice", "Tile", "Transpose", "Unpack", "Unique", "ZerosLike"),
    *("OnesLike", "Assign", "StridedSliceGrad", "DynamicStitch", "DynamicPartition", "Snapshot", "DeepCopy"),
)


@flops(*_MOVERS)
def move(c: CostContext) -> int:
    """Nothing is computed."""
    return 0


@bytes_moved("Gather", "GatherNd", "GatherV2", "ResourceGather", "ResourceGatherNd")
def gather_bytes(c: CostContext) -> int:
    """The rows that are picked are read and written; the indices are read. The rest of the table is not touched."""
    return 2 * c.bytes_out() + c.bytes_in(1)


@bytes_moved("Slice", "StridedSlice")
def slice_bytes(c: CostContext) -> int:
    """Only what is cut out is read and written."""
    return 2 * c.bytes_out()


@bytes_moved("Fill", "ZerosLike", "OnesLike")
def fill_bytes(c: CostContext) -> int:
    """Only written."""
    return output_bytes(c)


@bytes_moved("Assign")
def assign_bytes(c: CostContext) -> int:
    """The value is read and the variable written; the variable's old value is not."""
    return 2 * c.bytes_in(1)


_SCATTER_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Min", "Max")
_SCATTER_KINDS = ("Update", *_SCATTER_ARITHMETIC)


@flops(*(f"{prefix}Scatter{kind}" for prefix in ("", "Resource") for kind in _SCATTER_KINDS))
def scatter(c: CostContext) -> int:
    """One operation per element of the updates (input 2), none where they replace."""
    return 0 if c.op.endswith("Update") else c.elements_in(2)


@bytes_moved(*(f"{prefix}Scatter{kind}" for prefix in ("", "Resource") for kind in _SCATTER_KINDS))
def scatter_bytes(c: CostContext) -> int:
    """Updates are read, the rows they hit are read and written, the indices are read."""
    return 3 * c.bytes_in(2) + c.bytes_in(1)


@flops("AssignAddVariableOp", "AssignSubVariableOp", "AssignAdd", "AssignSub")
def assign_add(c: CostContext) -> int:
    """One addition per element of the value (input 1)."""
    return c.elements_in(1)


@bytes_moved("AssignAddVariableOp", "AssignSubVariableOp", "AssignAdd", "AssignSub")
def assign_add_bytes(c: CostContext) -> int:
    """The value and the variable are read, the variable is written."""
    return 3 * c.bytes_in(1)


# Op name without its prefix -> (operations per element, buffers of the variable's size that are read or written).
# Counted from the update formulas in the ops' public documentation; reads are the gradient, the variable and its slots,
# writes the variable and its slots.
_UPDATES: Mapping[str, tuple[int, int]] = {
    "ApplyGradientDescent": (2, 3),
    "ApplyMomentum": (4, 5),
    "ApplyKerasMomentum": (4, 5),
    "ApplyAdagrad": (5, 5),
    "ApplyAdagradV2": (6, 5),
    "ApplyAdadelta": (12, 7),
    "ApplyAdam": (12, 7),
    "ApplyAdaMax": (9, 7),
    "ApplyRMSProp": (9, 7),
    "ApplyFtrl": (14, 7),
}


_UPDATE_OPS = [*(f"Resource{op}" for op in _UPDATES), *(op for op in _UPDATES if op != "ApplyKerasMomentum")]


def _gradient(c: CostContext) -> int:
    """Index of the gradient: the largest input that is held by value (resource handles are scalars)."""
    return max(range(len(c.inputs)), key=lambda i: (c.bytes_in(i), i))


@flops(*_UPDATE_OPS)
def update(c: CostContext) -> int:
    """Operations per element times elements of the gradient."""
    return _UPDATES[c.op.removeprefix("Resource")][0] * c.elements_in(_gradient(c))


@bytes_moved(*_UPDATE_OPS)
def update_bytes(c: CostContext) -> int:
    """Buffers touched times bytes of the gradient: updates of variables are bound by memory."""
    return _UPDATES[c.op.removeprefix("Resource")][1] * c.bytes_in(_gradient(c))
