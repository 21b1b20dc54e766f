"""Kernels that move elements between batch, space and depth, and that cut images into patches."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.arrays.strided import IndexEntry
from ....graph.ops.nn.windows import walk
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel, simple
from .slicing import empty_of


def _blocks_and_widths(
    x: Array, block_shape: Array, widths: Array, name: str, word: str
) -> tuple[list[int], list[list[int]]]:
    if block_shape.ndim != 1:
        raise InvalidArgumentError(f"block_shape rank should be 1 instead of {block_shape.ndim}")
    count = block_shape.size
    if x.ndim < 1 + count:
        raise InvalidArgumentError(f"input rank should be >= {1 + count} instead of {x.ndim}")
    if widths.shape != (count, 2):
        raise InvalidArgumentError(f"{name} should have shape [{count}, 2] instead of {shape_text(widths.shape)}")
    blocks = block_shape.tolist()
    for i, block in enumerate(blocks):
        if block < 1:
            raise InvalidArgumentError(f"All values in block_shape must be positive, got value, {block} at index {i}.")
    if widths.size and widths.min() < 0:
        raise InvalidArgumentError(f"{word} must be non-negative")
    return blocks, widths.tolist()


def space_to_batch_nd(x: Array, block_shape: Array, paddings: Array) -> Array:
    """The input, padded with zeros, cut into blocks along its spatial axes; positions in a block become batches."""
    blocks, widths = _blocks_and_widths(x, block_shape, paddings, "paddings", "Paddings")
    sizes = [size + sum(pair) for size, pair in zip(x.shape[1:], widths, strict=False)]
    for i, (size, block) in enumerate(zip(sizes, blocks, strict=True)):
        if size % block:
            raise InvalidArgumentError(f"padded_shape[{i}]={size} is not divisible by block_shape[{i}]={block}")
    count, rest = len(blocks), x.shape[1 + len(blocks) :]
    padded = empty_of((x.shape[0], *sizes, *rest), x.dtype)
    places = zip(widths, x.shape[1:], strict=False)
    inside: list[IndexEntry] = [slice(before, before + size) for (before, _), size in places]
    padded[(slice(None), *inside, ...)] = x
    split = [part for size, block in zip(sizes, blocks, strict=True) for part in (size // block, block)]
    axes = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, 2 * count + 1 + len(rest))]
    moved = padded.reshape(x.shape[0], *split, *rest).transpose(axes)
    outer = [size // block for size, block in zip(sizes, blocks, strict=True)]
    return moved.reshape(x.shape[0] * prod(blocks), *outer, *rest)


def batch_to_space_nd(x: Array, block_shape: Array, crops: Array) -> Array:
    """Undoes SpaceToBatchND: batches become positions in a block, then the borders are cropped."""
    blocks, widths = _blocks_and_widths(x, block_shape, crops, "crops", "Crops")
    count, volume = len(blocks), prod(blocks)
    if x.shape[0] % volume:
        raise InvalidArgumentError(
            f"Input batch dimension ({x.shape[0]}) is not divisible by product of block sizes ({volume})"
        )
    batch, outer, rest = x.shape[0] // volume, x.shape[1 : 1 + count], x.shape[1 + count :]
    sizes = [size * block for size, block in zip(outer, blocks, strict=True)]
    for i, (size, (before, after)) in enumerate(zip(sizes, widths, strict=True)):
        if size < before + after:
            raise InvalidArgumentError(f"cropped_shape[{i}]={size - before - after} must be non-negative")
    pairs = [axis for i in range(count) for axis in (count + 1 + i, i)]
    axes = [count, *pairs, *range(2 * count + 1, 2 * count + 1 + len(rest))]
    whole = x.reshape(*blocks, batch, *outer, *rest).transpose(axes).reshape(batch, *sizes, *rest)
    places = zip(widths, sizes, strict=True)
    inside: list[IndexEntry] = [slice(before, size - after) for (before, after), size in places]
    cropped: Array = whole[(slice(None), *inside, ...)]
    return cropped


simple("SpaceToBatchND", space_to_batch_nd)
simple("BatchToSpaceND", batch_to_space_nd)


def _square(node: Construction, rearrange: Kernel) -> Kernel:
    block = np.full(2, node.attrs["block_size"], np.int32)

    def run(x: Array, widths: Array) -> Array:
        if x.ndim != 4:
            raise InvalidArgumentError(f"Input rank should be: 4instead of: {x.ndim}")
        result: Array = rearrange(x, block, widths)
        return result

    return run


@kernel("SpaceToBatch")
def space_to_batch(node: Construction) -> Kernel:
    """SpaceToBatchND for images and square blocks."""
    return _square(node, space_to_batch_nd)


@kernel("BatchToSpace")
def batch_to_space(node: Construction) -> Kernel:
    """BatchToSpaceND for images and square blocks."""
    return _square(node, batch_to_space_nd)


def _block_of_images(node: Construction) -> tuple[int, bool]:
    layout = node.attrs["data_format"]
    if layout not in (b"NHWC", b"NCHW"):
        raise UnimplementedError(f"{node.op} in layout {layout.decode()} has no kernel; use NHWC or NCHW")
    return node.attrs["block_size"], layout == b"NCHW"


def _check_image(x: Array, colon: str = "") -> None:
    if x.ndim != 4:
        raise InvalidArgumentError(f"Input rank should be{colon} 4 instead of{colon} {x.ndim}")


@kernel("SpaceToDepth")
def space_to_depth(node: Construction) -> Kernel:
    """Each square block of pixels becomes one pixel with the channels of all of them."""
    block, channels_first = _block_of_images(node)

    def run(x: Array) -> Array:
        _check_image(x)
        n, h, w, c = (x.shape[i] for i in ((0, 2, 3, 1) if channels_first else (0, 1, 2, 3)))
        if h % block or w % block:
            raise InvalidArgumentError(f"Image width {w} and height {h} should be divisible by block_size: {block}")
        rows, columns, depth = h // block, w // block, c * block * block
        if channels_first:
            blocks = x.reshape(n, c, rows, block, columns, block).transpose(0, 3, 5, 1, 2, 4)
            return blocks.reshape(n, depth, rows, columns)
        return x.reshape(n, rows, block, columns, block, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, rows, columns, depth)

    return run


@kernel("DepthToSpace")
def depth_to_space(node: Construction) -> Kernel:
    """Undoes SpaceToDepth."""
    block, channels_first = _block_of_images(node)

    def run(x: Array) -> Array:
        _check_image(x, ":")
        n, h, w, depth = (x.shape[i] for i in ((0, 2, 3, 1) if channels_first else (0, 1, 2, 3)))
        if depth % (block * block):
            raise InvalidArgumentError(f"Input depth dimension {depth} should be divisible by: {block * block}")
        c = depth // (block * block)
        if channels_first:
            pixels = x.reshape(n, block, block, c, h, w).transpose(0, 3, 4, 1, 5, 2)
            return pixels.reshape(n, c, h * block, w * block)
        return x.reshape(n, h, w, block, block, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, h * block, w * block, c)

    return run


def _patches(
    x: Array, sizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str, centred: bool
) -> Array:
    """Windows over all inner axes of `x`: [batch, positions..., elements of the window * channels].

    If the strides leave elements that no window reaches, `centred` windows skip half of them at the start.
    """
    walks = [walk(*axis, padding) for axis in zip(x.shape[1:-1], sizes, strides, rates, strict=True)]
    shape = output_shape((x.shape[0], *[w.output for w in walks], prod(sizes) * x.shape[-1]), x.dtype)
    padded = empty_of(
        (x.shape[0], *(s + w.before + w.after for s, w in zip(x.shape[1:-1], walks, strict=True)), x.shape[-1]), x.dtype
    )
    inside: list[IndexEntry] = [slice(w.before, w.before + s) for s, w in zip(x.shape[1:-1], walks, strict=True)]
    padded[(slice(None), *inside, ...)] = x
    windows = padded
    for i, (w, size, stride, rate) in enumerate(zip(walks, sizes, strides, rates, strict=True)):
        uncovered = windows.shape[1 + i] - (w.output - 1) * stride - (size - 1) * rate - 1
        first = uncovered // 2 if centred and uncovered > 0 else 0
        places = first + np.arange(w.output)[:, None] * stride + np.arange(size) * rate
        windows = np.moveaxis(windows.take(places, axis=1 + i), 2 + i, -2)
    return windows.reshape(shape)


@kernel("ExtractImagePatches", "ExtractVolumePatches")
def extract_patches(node: Construction) -> Kernel:
    """All windows of an image or volume, each flattened into the depth of one output position."""
    sizes, strides = node.attrs["ksizes"], node.attrs["strides"]
    rates = node.attrs.get("rates", (1,) * len(sizes))
    padding = node.attrs["padding"].decode()
    centred = node.op == "ExtractVolumePatches" and padding == "SAME"
    for name, values in (("ksizes", sizes), ("strides", strides), ("rates", rates)):
        if len(values) != len(sizes) or values[0] != 1 or values[-1] != 1:
            raise UnimplementedError(f"Only support {name} across space.")

    def run(x: Array) -> Array:
        if x.ndim != len(sizes):
            raise InvalidArgumentError(f"input must be {len(sizes)}-dimensional{shape_text(x.shape)}")
        return _patches(x, sizes[1:-1], strides[1:-1], rates[1:-1], padding, centred)

    return run
