"""General products and convolutions: which axes are contracted, batched or spatial is stated by an attr."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ....graph.ops.linalg.einsum_shapes import Equation
from ....graph.ops.nn.windows import WindowAxis
from ....graph.ops.xla.dimension_numbers import DotNumbers, conv_numbers, dot_numbers
from ..checks import require, scalar_of, vector_of
from ..half_types import in_float32
from ..linalg.einsum import contraction
from ..nn.conv_arithmetic import convolve
from ..nn.sliding import Sweep
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from .slices import ends_of, pad


@kernel("XlaDot", "XlaDotV2")
def dot(node: Construction) -> Kernel:
    """The product of two operands in the type of the result."""
    numbers, dtype = dot_numbers(node.attrs["dimension_numbers"]), numpy_dtype(node.output_types[0])

    @lru_cache(maxsize=16)
    def product_of(left_rank: int, right_rank: int) -> Kernel:
        return in_float32(contraction(dot_equation(numbers, left_rank, right_rank)), node.output_types[0])

    def product(left: Array, right: Array) -> Array:
        result = product_of(left.ndim, right.ndim)(left.astype(dtype, copy=False), right.astype(dtype, copy=False))
        return np.asarray(result)

    return product


def dot_equation(numbers: DotNumbers, left_rank: int, right_rank: int) -> Equation:
    """The dot as an einsum: axes that belong together have one label."""
    left = [chr(0x4E00 + axis) for axis in range(left_rank)]
    right = [chr(0x5E00 + axis) for axis in range(right_rank)]
    for a, b in zip(
        numbers.left_contracted + numbers.left_batch, numbers.right_contracted + numbers.right_batch, strict=True
    ):
        require(a < left_rank and b < right_rank, f"axes {a} and {b} of a dot of ranks {left_rank} and {right_rank}")
        right[b] = left[a]
    batch = [left[axis] for axis in numbers.left_batch]
    free = [label for label in left if label not in right] + [label for label in right if label not in left]
    return Equation(("".join(left), "".join(right)), "".join(batch + free))


@kernel("XlaConv", "XlaConvV2")
def conv(node: Construction) -> Kernel:
    """A convolution with any strides, dilations, borders (dropped cells too) and groups of features or of images."""
    numbers, dtype = conv_numbers(node.attrs["dimension_numbers"]), numpy_dtype(node.output_types[0])
    batch_groups = int(node.attrs.get("batch_group_count", 1))
    to_image = (numbers.image[0], *numbers.image[2:], numbers.image[1])
    to_window = (*numbers.window[2:], numbers.window[1], numbers.window[0])
    from_result = np.argsort((numbers.result[0], *numbers.result[2:], numbers.result[1]))

    def convolution(
        x: Array, w: Array, strides: Array, padding: Array, dilation: Array, window_dilation: Array, groups: Array
    ) -> Array:
        for name, operand in (("lhs", x), ("rhs", w)):
            require(
                operand.ndim == len(to_image), f"{name} must have rank {len(to_image)}, not {shape_text(operand.shape)}"
            )
        x, w = x.transpose(to_image).astype(dtype, copy=False), w.transpose(to_window).astype(dtype, copy=False)
        _check_groups(x.shape, w.shape, scalar_of(groups, "feature_group_count"), batch_groups)
        rank = x.ndim - 2
        window = XlaWindow(
            _distances(strides, rank, "window_strides"), _distances(window_dilation, rank, "rhs_dilation")
        )
        x = spread(x, np.array(ends_of(padding, rank)), np.array(_distances(dilation, rank, "lhs_dilation")))
        images, features = np.split(x, batch_groups), np.split(w, batch_groups, axis=-1)
        parts = [window.convolve(image, feature) for image, feature in zip(images, features, strict=True)]
        result: Array = parts[0] if batch_groups == 1 else np.concatenate(parts, axis=-1)
        return result.transpose(from_result)

    return in_float32(convolution, node.output_types[0])


def _distances(x: Array, rank: int, what: str) -> tuple[int, ...]:
    """One positive number per spatial axis, ones if none are given."""
    given = vector_of(x, what)
    fits = len(given) in (0, rank) and all(size > 0 for size in given)
    require(fits, f"{what} must be {rank} positive numbers, or none: {shape_text(given)}")
    return tuple(given) or (1,) * rank


def _check_groups(image: Sequence[int], window: Sequence[int], groups: int, batch_groups: int) -> None:
    """InvalidArgumentError unless features, and images, can be cut into as many groups; features are the last axes."""
    depth, *_, inner, outer = image[-1], *window
    require(groups > 0, f"feature_group_count must be a positive number, got {groups}")
    require(depth == inner * groups, f"Expected the input features {depth} to be {groups} times the filter's {inner}")
    parts = groups * batch_groups
    require(outer % parts == 0, f"Expected the output features {outer} to be a multiple of the {parts} groups")
    require(
        image[0] % batch_groups == 0, f"Expected the batch of {image[0]} to be a multiple of the {batch_groups} groups"
    )


class XlaWindow:
    """A window that moves by `strides` and whose cells are `dilations` apart, over an array with its border."""

    def __init__(self, strides: tuple[int, ...], dilations: tuple[int, ...]) -> None:
        self.strides, self.dilations = strides, dilations

    def convolve(self, x: Array, w: Array) -> Array:
        """[batch, output..., features] of x [batch, spatial..., channels] and w [window..., channels, features]."""
        window = w.shape[:-2]
        reaches = [(k - 1) * d + 1 if k else 0 for k, d in zip(window, self.dilations, strict=True)]
        counts = [
            0 if n < reach else (n - reach) // s + 1
            for n, reach, s in zip(x.shape[1:-1], reaches, self.strides, strict=True)
        ]
        output_shape((x.shape[0], *counts, w.shape[-1]), x.dtype)
        return convolve(x, w, Sweep(window, self.strides, self.dilations, tuple(WindowAxis(n, 0, 0) for n in counts)))


def spread(x: Array, padding: Array, dilation: Array) -> Array:
    """`x` with zeros between its cells and around them; the first and the last axis stay.

    `padding` has the widths (low, high) and `dilation` the distance of the cells for each axis between these.
    """
    if not padding.any() and (dilation == 1).all():
        return x
    ends = np.concatenate([[[0, 0]], padding.reshape(-1, 2), [[0, 0]]]).astype(np.int64)
    between = np.concatenate([[0], dilation - 1, [0]]).astype(np.int64)
    return pad(x, np.zeros((), x.dtype), ends[:, 0], ends[:, 1], between)
