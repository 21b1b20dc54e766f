"""Kernels that reverse and rotate axes."""

from __future__ import annotations

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.arrays.strided import IndexEntry
from ..registry import Construction, Kernel, kernel, simple

_BACKWARD = slice(None, None, -1)
_WHOLE = slice(None)


def reverse(x: Array, dims: Array) -> Array:
    """A view, reversed along each axis whose flag in `dims` is set."""
    if dims.ndim != 1:
        raise InvalidArgumentError(f"'dims' must be 1-dimension, not {dims.ndim}")
    if dims.size != x.ndim:
        raise InvalidArgumentError(
            "'dims' must have the same number of values as 'input' has dimensions. "
            f"'input' has {x.ndim}'dims' has {dims.size} values"
        )
    if x.shape[:1] == (0,):
        raise InvalidArgumentError("Invalid input first dimension. Found 0.")
    index: list[IndexEntry] = [_BACKWARD if turned else _WHOLE for turned in dims.tolist()]
    return x[(*index, ...)]


def reverse_v2(x: Array, axes: Array) -> Array:
    """A view, reversed along the listed axes; for an input without axes TensorFlow ignores the list."""
    if x.ndim == 0 or x.size == 0:
        return x
    if axes.ndim != 1:
        raise InvalidArgumentError(f"'dims' must be 1-dimension, not {axes.ndim}")
    index: list[IndexEntry] = [_WHOLE] * x.ndim
    for i, axis in enumerate(axes.tolist()):
        if not -x.ndim <= axis < x.ndim:
            raise InvalidArgumentError(f"'axis'[{i}] = {axis} is out of valid range [0, {x.ndim - 1}")
        if index[axis] is _BACKWARD:
            raise InvalidArgumentError(f"axis {axis % x.ndim} specified more than once.")
        index[axis] = _BACKWARD
    return x[(*index, ...)]


simple("Reverse", reverse)
simple("ReverseV2", reverse_v2)


@kernel("ReverseSequence")
def reverse_sequence(node: Construction) -> Kernel:
    """For each batch entry the first `seq_lengths` elements along `seq_dim` reversed, the others unchanged."""
    batch_dim, seq_dim = node.attrs["batch_dim"], node.attrs["seq_dim"]

    def run(x: Array, seq_lengths: Array) -> Array:
        _check_sequences(x, seq_lengths, batch_dim, seq_dim)
        place = np.arange(x.shape[seq_dim])
        ends = np.asarray(seq_lengths, np.int64)[:, None]
        turned = np.where(place < ends, ends - 1 - place, place)
        if batch_dim > seq_dim:
            turned = turned.T
        sizes = [x.shape[k] if k in (batch_dim, seq_dim) else 1 for k in range(x.ndim)]
        return np.take_along_axis(x, turned.reshape(sizes), axis=seq_dim)

    return run


def _check_sequences(x: Array, seq_lengths: Array, batch_dim: int, seq_dim: int) -> None:
    for name, dim in (("batch_dim", batch_dim), ("seq_dim", seq_dim)):
        if dim < 0:
            raise InvalidArgumentError(f"Invalid {name} {dim}")
    if seq_lengths.ndim != 1:
        raise InvalidArgumentError(f"seq_lens input must be 1-dim, not {seq_lengths.ndim}")
    if batch_dim == seq_dim:
        raise InvalidArgumentError(f"batch_dim == seq_dim == {seq_dim}")
    for name, dim in (("seq_dim", seq_dim), ("batch_dim", batch_dim)):
        if dim >= x.ndim:
            raise InvalidArgumentError(f"{name} must be < input rank ( {dim} vs. {x.ndim})")
    if seq_lengths.size != x.shape[batch_dim]:
        raise InvalidArgumentError(
            f"Length of seq_lengths != input.dims({batch_dim}), ({seq_lengths.size} vs. {x.shape[batch_dim]})"
        )
    for i, length in enumerate(seq_lengths.tolist()):
        if length < 0:
            raise InvalidArgumentError(f"seq_lens({i}) < 0")
        if length > x.shape[seq_dim]:
            raise InvalidArgumentError(f"seq_lens({i}) > input.dims({seq_dim})")


def roll(x: Array, shift: Array, axis: Array) -> Array:
    """The input rotated by `shift` positions along each `axis`."""
    if x.ndim == 0:
        raise InvalidArgumentError("input must be 1-D or higher")
    for name, value in (("shift", shift), ("axis", axis)):
        if value.ndim > 1:
            raise InvalidArgumentError(f"{name} must be a scalar or a 1-D vector. Found: {shape_text(value.shape)}")
    shifts, axes = shift.reshape(-1).tolist(), axis.reshape(-1).tolist()
    if len(shifts) != len(axes):
        raise InvalidArgumentError("shift and axis must have the same size")
    for place in axes:
        if not -x.ndim <= place < x.ndim:
            raise InvalidArgumentError(f"axis {place} is out of range")
    return np.roll(x, shifts, axes)


simple("Roll", roll)
