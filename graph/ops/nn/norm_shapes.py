"""Shape functions of normalisations and their gradients; per-channel vectors are as long as the tensor has channels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, merge, merge_dims, shape_fn, with_rank
from ...dtypes import Shape


def _tensor(c: ShapeContext, x: Shape, vectors: Iterable[Shape]) -> tuple[Shape, int | None]:
    """The tensor's shape and its channels, merged with the lengths of the vectors."""
    channels: int | None = None
    for vector in vectors:
        channels = merge_dims(channels, with_rank(vector, 1)[0])
    if x is None:
        x = (None,) * len(c.attrs["data_format"])
    if len(x) not in (4, 5):
        raise InvalidArgumentError(f"Shape must be at least rank 4 but is rank {len(x)}")
    axis = 1 if c.attrs["data_format"].startswith(b"NC") else len(x) - 1
    channels = merge_dims(channels, x[axis])
    return (*x[:axis], channels, *x[axis + 1 :]), channels


@shape_fn("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(c: ShapeContext) -> Sequence[Shape]:
    """The tensor's shape, four vectors of its channels, and for V3 one of unknown size (a scalar on a CPU)."""
    replaced = c.attrs["is_training"] and c.attrs.get("exponential_avg_factor", 1) == 1
    known = 3 if replaced else 5  # in training, mean and variance may be empty: the batch's replace them
    shape, channels = _tensor(c, c.inputs[0], c.inputs[1:known])
    return (shape, *(((channels,),) * 4), *((None,) if c.op == "FusedBatchNormV3" else ()))


def _channels(c: ShapeContext, x: Shape) -> Shape:
    """The shape of a per-channel vector of a tensor of shape `x`."""
    if x is None:
        return None
    return (x[1 if c.attrs["data_format"].startswith(b"NC") else len(x) - 1],)


@shape_fn("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_grad(c: ShapeContext) -> Sequence[Shape]:
    """The tensor's shape, two vectors of its channels, and two empty ones."""
    shape, channels = _tensor(c, c.inputs[0], (_channels(c, c.inputs[1]), *c.inputs[2:5]))
    return (shape, (channels,), (channels,), (0,), (0,))


@shape_fn("LRN")
def lrn(c: ShapeContext) -> Sequence[Shape]:
    return (with_rank(c.inputs[0], 4),)


@shape_fn("LRNGrad")
def lrn_grad(c: ShapeContext) -> Sequence[Shape]:
    """The merged shape of the three inputs."""
    return (with_rank(merge(merge(c.inputs[0], c.inputs[1]), c.inputs[2]), 4),)


@shape_fn("BatchNormWithGlobalNormalization")
def batch_norm_with_global_normalization(c: ShapeContext) -> Sequence[Shape]:
    """The tensor's shape; the last size may also be known from the vectors."""
    x, channels = with_rank(c.inputs[0], 4), None
    for vector in c.inputs[1:5]:
        channels = merge_dims(channels, with_rank(vector, 1)[0])
    return ((*x[:3], merge_dims(x[3], channels)),)
