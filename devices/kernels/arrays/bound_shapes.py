"""Kernels of nodes that change shapes, permute, repeat or gather, whose sizes and axes are constants of their plan.

They are worked out once, for the latest shape of the tensor where they depend on that; a run only applies them.
"""

from __future__ import annotations

from ....graph.analysis.dims import expanded, reshaped
from ....graph.dtypes import Array
from ..registry import Construction, Kernel, binding
from .gather import gather_v2, take
from .latest import for_latest_shape
from .shape_ops import reshape, tile, tiling, transpose


@binding("Reshape", 1)
def reshape_to(node: Construction, sizes: Array) -> Kernel:
    """The elements of any tensor in order under the same sizes."""
    requested = tuple(sizes.tolist())
    if sizes.ndim != 1 or min(requested, default=0) < -1:
        return lambda x: reshape(x, sizes)

    def run(x: Array) -> Array:
        try:
            return x.reshape(requested)
        except ValueError:
            return x.reshape(reshaped(x.shape, requested))

    return run


@binding("ExpandDims", 1)
def expand_dims_at(node: Construction, axis: Array) -> Kernel:
    """Any tensor with a size of one inserted in the same place."""
    place = axis.item()
    shape_for = for_latest_shape(lambda shape: expanded(shape, place))
    return lambda x: x.reshape(shape_for(x.shape))


@binding("Transpose", 1)
def transpose_by(node: Construction, perm: Array) -> Kernel:
    """Any tensor under the same permutation."""
    axes = tuple(perm.tolist())
    if not axes:
        return lambda x: transpose(x, perm)

    def run(x: Array) -> Array:
        try:
            return x.transpose(axes)
        except ValueError:
            return transpose(x, perm)

    return run


@binding("Tile", 1)
def tile_by(node: Construction, multiples: Array) -> Kernel:
    """Any tensor repeated as often."""
    forms_for = for_latest_shape(lambda shape: tiling(shape, multiples))
    return lambda x: tile(x, forms_for(x.shape))


@binding("GatherV2", 2)
def gather_along(node: Construction, axis: Array) -> Kernel:
    """The slices of any tensor, along the same axis, that indices name."""
    ordinary = gather_v2(node)
    if node.attrs["batch_dims"] or axis.ndim or axis.item():
        return lambda params, indices: ordinary(params, indices, axis)

    def run(params: Array, indices: Array) -> Array:
        return take(params, indices, 0) if params.ndim else ordinary(params, indices, axis)

    return run
