"""Shape functions of the ops that move elements between batch, space and depth, and that cut images into patches.

A size that the block does not divide is refused as soon as it is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ....errors import InvalidArgumentError
from ...analysis.dims import integers, length
from ...analysis.shape_functions import ShapeContext, merge_dims, shape_fn, with_rank, with_rank_at_least
from ...dtypes import Shape
from ..nn.windows import joint_output_sizes


def _divided(size: int | None, block: int, what: str) -> int | None:
    if size is not None and size % block:
        raise InvalidArgumentError(f"Dimension size must be evenly divisible by {block} but is {size} ({what})")
    return None if size is None else size // block


def _space_to_batch(source: Shape, blocks: list[int], widths: list[int] | None) -> Shape:
    if source is None:
        return None
    pads = [None if widths is None else widths[2 * i] + widths[2 * i + 1] for i in range(len(blocks))]
    batch = None if source[0] is None else source[0] * prod(blocks)
    spatial = [
        None if size is None or pad is None else _divided(size + pad, block, "padded size")
        for size, pad, block in zip(source[1 : 1 + len(blocks)], pads, blocks, strict=True)
    ]
    return (batch, *spatial, *source[1 + len(blocks) :])


def _batch_to_space(source: Shape, blocks: list[int], widths: list[int] | None) -> Shape:
    if source is None:
        return None
    batch = _divided(source[0], prod(blocks), "batch")
    spatial: list[int | None] = []
    for i, (size, block) in enumerate(zip(source[1 : 1 + len(blocks)], blocks, strict=True)):
        cropped = None if size is None or widths is None else size * block - widths[2 * i] - widths[2 * i + 1]
        if cropped is not None and cropped < 0:
            raise InvalidArgumentError(f"cropped_shape[{i}]={cropped} must be non-negative")
        spatial.append(cropped)
    return (batch, *spatial, *source[1 + len(blocks) :])


def _nd(c: ShapeContext) -> tuple[Shape, list[int] | None, list[int] | None]:
    if c.inputs[1] is None or len(c.inputs[1]) != 1:
        raise InvalidArgumentError("block_shape must have rank 1.")
    count = merge_dims(length(c, 1), with_rank(c.inputs[2], 2)[0])
    if c.inputs[1] == (None,):
        raise InvalidArgumentError("block_shape must have known size.")
    source = c.inputs[0] if count is None else with_rank_at_least(c.inputs[0], 1 + count)
    blocks = [] if count == 0 else integers(c, 1)
    if blocks is not None and any(block < 1 for block in blocks):
        raise InvalidArgumentError(f"block_shape must be positive, got {blocks}")
    return source, blocks, integers(c, 2)


def _outside_blocks(c: ShapeContext, source: Shape) -> Shape:
    """The shape while the block sizes are unknown: only the sizes behind the blocked axes are known."""
    count = merge_dims(length(c, 1), with_rank(c.inputs[2], 2)[0])
    if source is None or count is None:
        return None if source is None else (None,) * len(source)
    return (None,) * (1 + count) + source[1 + count :]


@shape_fn("SpaceToBatchND")
def space_to_batch_nd(c: ShapeContext) -> Sequence[Shape]:
    """Spatial sizes divided by the blocks, the batch multiplied."""
    source, blocks, widths = _nd(c)
    if blocks is None:
        return (_outside_blocks(c, source),)
    return (_space_to_batch(source, blocks, widths),)


@shape_fn("BatchToSpaceND")
def batch_to_space_nd(c: ShapeContext) -> Sequence[Shape]:
    """Spatial sizes multiplied by the blocks and cropped, the batch divided."""
    source, blocks, widths = _nd(c)
    if blocks is None:
        return (_outside_blocks(c, source),)
    return (_batch_to_space(source, blocks, widths),)


def _square(c: ShapeContext) -> tuple[Shape, list[int], list[int] | None]:
    rows, columns = with_rank(c.inputs[1], 2)
    merge_dims(rows, 2), merge_dims(columns, 2)
    return with_rank(c.inputs[0], 4), [c.attrs["block_size"]] * 2, integers(c, 1)


@shape_fn("SpaceToBatch")
def space_to_batch(c: ShapeContext) -> Sequence[Shape]:
    """As SpaceToBatchND, for images and square blocks."""
    return (_space_to_batch(*_square(c)),)


@shape_fn("BatchToSpace")
def batch_to_space(c: ShapeContext) -> Sequence[Shape]:
    """As BatchToSpaceND, for images and square blocks."""
    return (_batch_to_space(*_square(c)),)


def _axes(c: ShapeContext) -> tuple[int, int, int]:
    """The places of height, width and channels."""
    return (2, 3, 1) if c.attrs["data_format"] == b"NCHW" else (1, 2, 3)


def _rescaled(c: ShapeContext, grow: bool) -> Sequence[Shape]:
    if c.attrs["data_format"] == b"NCHW_VECT_C":
        return ((None,) * 5,)
    block = c.attrs["block_size"]
    sizes = list(with_rank(c.inputs[0], 4))
    height, width, channels = _axes(c)
    smaller, larger = ((channels,), (height, width)) if grow else ((height, width), (channels,))
    for axis in smaller:
        sizes[axis] = _divided(sizes[axis], block * block if grow else block, f"axis {axis}")
    for axis in larger:
        size = sizes[axis]
        sizes[axis] = None if size is None else size * (block if grow else block * block)
    return (tuple(sizes),)


@shape_fn("SpaceToDepth")
def space_to_depth(c: ShapeContext) -> Sequence[Shape]:
    """Height and width divided by the block, the channels multiplied by its square."""
    return _rescaled(c, grow=False)


@shape_fn("DepthToSpace")
def depth_to_space(c: ShapeContext) -> Sequence[Shape]:
    """Height and width multiplied by the block, the channels divided by its square."""
    return _rescaled(c, grow=True)


@shape_fn("ExtractImagePatches", "ExtractVolumePatches")
def extract_patches(c: ShapeContext) -> Sequence[Shape]:
    """One position for each step of the window; its elements times the channels as depth."""
    sizes, strides = c.attrs["ksizes"], c.attrs["strides"]
    rates = c.attrs.get("rates", (1,) * len(sizes))
    source = with_rank(c.inputs[0], len(sizes))
    padding = c.attrs["padding"].decode()
    spatial = joint_output_sizes(source[1:-1], sizes[1:-1], strides[1:-1], rates[1:-1], padding)
    depth = None if source[-1] is None else source[-1] * prod(sizes[1:-1])
    return ((source[0], *spatial, depth),)
