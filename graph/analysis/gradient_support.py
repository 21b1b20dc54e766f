"""Helpers that gradient rules of several families share: shapes and parts of them, undoing a broadcast, conjugates.

A size that is known before the run becomes a constant; for others nodes are added that compute it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..dtypes import DataType
from .gradient_rules import Forward, Gradients
from .sizes import static

if TYPE_CHECKING:
    from ..builder.handles import Tensor

COMPLEX = frozenset({DataType.COMPLEX64, DataType.COMPLEX128})


def shape_of(op: Forward, port: int, dtype: DataType = DataType.INT32) -> Tensor:
    """The shape of input `port` as a tensor of rank 1."""
    sizes = op.input_sizes(port)
    known = static(sizes)
    if known is not None:
        return op.g.constant(known, dtype, name="shape")
    attrs = {} if dtype is DataType.INT32 else {"out_type": dtype}
    if sizes is None:
        return op.make("Shape", op.inputs[port], **attrs)
    return op.once(("Shape", sizes, dtype), lambda: op.make("Shape", op.inputs[port], **attrs))


def rank_of(op: Forward, port: int) -> Tensor:
    """The rank of input `port` as an int32 scalar."""
    sizes = op.input_sizes(port)
    return op.g.constant(len(sizes), DataType.INT32) if isinstance(sizes, tuple) else op.make("Rank", op.inputs[port])


def reshape_like(op: Forward, grad: Tensor, port: int) -> Tensor:
    """`grad` in the shape of input `port`."""
    return op.make("Reshape", grad, shape_of(op, port))


def zeros_like(op: Forward, port: int) -> Tensor:
    """Zeros of the shape and type of input `port`."""
    return op.make("ZerosLike", op.inputs[port])


def element(op: Forward, vector: Tensor, index: int) -> Tensor:
    """One element of a tensor of rank 1, as a scalar."""
    g = op.g
    ends = [g.constant([number], DataType.INT32) for number in (index, index + 1 if index != -1 else 0, 1)]
    return op.make("StridedSlice", vector, *ends, shrink_axis_mask=1)


def span(op: Forward, vector: Tensor, begin: int | Tensor, end: int | Tensor | None) -> Tensor:
    """Elements from `begin` up to `end` of a tensor of rank 1; all the rest if `end` is None."""
    g = op.g

    def bound(value: int | Tensor) -> Tensor:
        if isinstance(value, int):
            return g.constant([value], DataType.INT32)
        return op.make("Reshape", value, g.constant([1], DataType.INT32))

    last = bound(0 if end is None else end)
    return op.make("StridedSlice", vector, bound(begin), last, bound(1), end_mask=int(end is None))


def joined(op: Forward, parts: Sequence[Tensor], axis: Tensor | int = 0) -> Tensor:
    """The concatenation of tensors along an axis; a single tensor is returned unchanged."""
    return parts[0] if len(parts) == 1 else op.make("ConcatV2", list(parts), axis)


def number(op: Forward, value: complex, like: Tensor) -> Tensor:
    """A scalar of the type of `like`."""
    return op.g.constant(value, like.dtype)


def conjugate(op: Forward, tensor: Tensor) -> Tensor:
    """The complex conjugate; a real tensor is returned unchanged."""
    return op.make("Conj", tensor) if tensor.dtype in COMPLEX else tensor


def where(op: Forward, condition: Any, then: Any, otherwise: Any) -> Tensor:
    """Elementwise choice; the three arguments broadcast."""
    return op.make("SelectV2", condition, then, otherwise)


def masked(op: Forward, mask: Any, grad: Tensor) -> Tensor:
    """`grad` where `mask` is true, 0 elsewhere (a product would turn infinities into NaN)."""
    return where(op, mask, grad, number(op, 0, grad))


def undo_broadcast(op: Forward, dx: Callable[[], Tensor], dy: Callable[[], Tensor]) -> Gradients:
    """The gradients of inputs 0 and 1 of an op that broadcasts: summed over the axes along which each was broadcast.

    `dx` and `dy` make the gradients of the broadcast inputs; neither is called for an input whose gradient is unused.
    """
    axes = [_stretched(op, port) if op.wants(port) else _NOT_STRETCHED for port in (0, 1)]
    computed: Sequence[Tensor | None] = (None, None)
    if None in axes:
        sizes = op.input_sizes(0), op.input_sizes(1)
        computed = op.once(
            ("stretched", *sizes), lambda: op.make_all("BroadcastGradientArgs", shape_of(op, 0), shape_of(op, 1))
        )
    return [
        _summed(op, make(), port, axes[port], computed[port]) if op.wants(port) else None
        for port, make in enumerate((dx, dy))
    ]


def unstretch(op: Forward, grad: Tensor, port: int, output: int = 0) -> Tensor:
    """Sums `grad`, of the shape of an output, to the shape of input `port`, which was broadcast to it."""
    axes = _stretched(op, port, output)
    computed = op.make("BroadcastGradientArgs", shape_of(op, port), op.g.op("Shape", grad)) if axes is None else None
    return _summed(op, grad, port, axes, computed)


_NOT_STRETCHED: tuple[int, tuple[int, ...]] = (0, ())


def _stretched(op: Forward, port: int, output: int = 0) -> tuple[int, tuple[int, ...]] | None:
    """How many leading axes input `port` lacks, and along which others it was broadcast; None if that is unknown."""
    own, full = op.input_sizes(port), op.output_sizes(output)
    if own is not None and own == full:
        return _NOT_STRETCHED
    if not isinstance(own, tuple) or not isinstance(full, tuple):
        return None
    new = len(full) - len(own)
    kept = [(axis, mine) for axis, mine in enumerate(own, new) if mine != full[axis]]
    if any(mine < 0 for _, mine in kept):
        return None
    return new, tuple([axis for axis, _ in kept])


def _summed(
    op: Forward, grad: Tensor, port: int, axes: tuple[int, tuple[int, ...]] | None, computed: Tensor | None
) -> Tensor:
    g = op.g
    if axes is None:
        return reshape_like(op, g.op("Sum", grad, computed)[0], port)
    new, kept = axes
    if not new and not kept:
        return grad
    summed = g.op("Sum", grad, g.constant((*range(new), *kept), DataType.INT32), keep_dims=not new)[0]
    return reshape_like(op, summed, port) if new and kept else summed
