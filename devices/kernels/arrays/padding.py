"""Kernels that put a border around arrays, and the gradient of mirroring borders."""

from __future__ import annotations

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.arrays.strided import IndexEntry
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel, simple


def _widths(x: Array, paddings: Array, joint: str = "") -> list[list[int]]:
    if paddings.ndim != 2 or paddings.shape[1] != 2:
        raise InvalidArgumentError(f"paddings must be a matrix with 2 columns: {shape_text(paddings.shape)}")
    if paddings.shape[0] != x.ndim:
        raise InvalidArgumentError(
            "The first dimension of paddings must be the rank of inputs"
            f"{shape_text(paddings.shape)}{joint} {shape_text(x.shape)}"
        )
    widths: list[list[int]] = paddings.tolist()
    return widths


def _padded(x: Array, paddings: Array, filler: object) -> Array:
    widths = _widths(x, paddings)
    for before, after in widths:
        if before < 0 or after < 0:
            raise InvalidArgumentError(f"Paddings must be non-negative: {before} {after}")
    sizes = zip(x.shape, widths, strict=True)
    result = np.empty(output_shape([before + size + after for size, (before, after) in sizes], x.dtype), x.dtype)
    result.fill(filler)
    places = zip(x.shape, widths, strict=True)
    inside: list[IndexEntry] = [slice(before, before + size) for size, (before, _) in places]
    result[(*inside, ...)] = x
    return result


def pad(x: Array, paddings: Array) -> Array:
    """The input with a border of zeros, or of empty strings."""
    return _padded(x, paddings, b"" if x.dtype.kind == "O" else x.dtype.type(0))


def pad_v2(x: Array, paddings: Array, value: Array) -> Array:
    """The input with a border of one value."""
    if value.ndim:
        raise InvalidArgumentError(f"constant_values must be a scalar. Found: {shape_text(value.shape)}")
    return _padded(x, paddings, value.item() if x.dtype.kind == "O" else value)


simple("Pad", pad)
simple("PadV2", pad_v2)


def _mirror_places(size: int, before: int, after: int, offset: int) -> list[int]:
    """The index of the input element at each index of the padded axis."""
    return [
        *range(before - 1 + offset, offset - 1, -1),
        *range(size),
        *range(size - 1 - offset, size - 1 - offset - after, -1),
    ]


@kernel("MirrorPad")
def mirror_pad(node: Construction) -> Kernel:
    """The input with its own mirror image as a border; REFLECT leaves out the edge itself, SYMMETRIC repeats it."""
    offset = 1 if node.attrs["mode"] == b"REFLECT" else 0
    how, not_how = ("less than", "not less than") if offset else ("no greater than", "greater than")

    def run(x: Array, paddings: Array) -> Array:
        widths = _widths(x, paddings, ",")
        for axis, (before, after) in enumerate(widths):
            size = x.shape[axis]
            if before < 0 or after < 0:
                raise InvalidArgumentError(f"paddings must be non-negative: {before} {after}")
            if before > size - offset or after > size - offset:
                raise InvalidArgumentError(
                    f"paddings must be {how} the dimension size: {before}, {after} {not_how} {size}"
                )
        output_shape([size + before + after for size, (before, after) in zip(x.shape, widths, strict=True)], x.dtype)
        result = x
        for axis, (before, after) in enumerate(widths):
            size = x.shape[axis]
            if before or after:
                result = result.take(_mirror_places(size, before, after, offset), axis=axis)
        return result

    return run


@kernel("MirrorPadGrad")
def mirror_pad_grad(node: Construction) -> Kernel:
    """The gradient without its border, which is added to the elements that it mirrors."""
    offset = 1 if node.attrs["mode"] == b"REFLECT" else 0

    def run(dy: Array, paddings: Array) -> Array:
        result = dy
        for axis, (before, after) in enumerate(_widths(dy, paddings, ",")):
            size = dy.shape[axis] - before - after
            _check_fold(dy.shape[axis], size, before, after, offset)
            if before or after:
                result = _folded(result.swapaxes(0, axis), size, before, after, offset).swapaxes(0, axis)
        return result

    return run


def _check_fold(total: int, size: int, before: int, after: int, offset: int) -> None:
    if before < 0 or after < 0:
        raise InvalidArgumentError(f"Paddings must be non-negative: {before}, {after}")
    if size <= 0:
        raise InvalidArgumentError(
            f"Total paddings must be less than the input dimension size: {before + after} was not less than {total}"
        )
    if before > size - offset or after > size - offset:
        how, not_how = ("less than", "not less than") if offset else ("no greater than", "greater than")
        raise InvalidArgumentError(
            f"paddings must be {how} the output dimension size: {before}, {after} {not_how} {size}"
        )


def _folded(x: Array, size: int, before: int, after: int, offset: int) -> Array:
    result = x[before : before + size].copy()
    result[offset : offset + before] += x[:before][::-1]
    if after:
        result[size - after - offset : size - offset] += x[before + size :][::-1]
    return result
