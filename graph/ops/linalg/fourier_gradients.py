"""Gradients of Fourier transforms.

A transform is linear, y = F x with F symmetric, so that d x = conj(F) g: the inverse transform without its factor 1 /
n. Half transforms of real tensors leave out the frequencies that follow from the others: in the gradient of the inverse
these count twice, in that of the transform they are zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import element, shape_of, span
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


def _count(op: Forward, dims: int, dtype: DataType) -> Tensor:
    """The number of elements of one transform."""
    sizes = span(op, op.make("Shape", op.outputs[0]), -dims, None)
    return op.make("Cast", op.make("Prod", sizes, op.g.constant(0, DataType.INT32)), DstT=dtype)


def _full(suffix: str, dims: int) -> None:
    @gradient(f"FFT{suffix}")
    def of_forward(op: Forward, grad: Tensor) -> Gradients:
        return (op.make(f"IFFT{suffix}", grad) * _count(op, dims, grad.dtype),)

    @gradient(f"IFFT{suffix}")
    def of_inverse(op: Forward, grad: Tensor) -> Gradients:
        return (op.make(f"FFT{suffix}", grad) / _count(op, dims, grad.dtype),)


def _half(suffix: str, dims: int) -> None:
    @gradient(f"RFFT{suffix}")
    def of_forward(op: Forward, grad: Tensor) -> Gradients:
        lengths = op.inputs[1]
        whole = op.make(f"IFFT{suffix}", _fitted(op, grad, op.make("Shape", grad), lengths, dims))
        number = op.make("Prod", lengths, op.g.constant(0, DataType.INT32))
        real = op.make("Real", whole, Tout=op.input_types[0]) * op.make("Cast", number, DstT=op.input_types[0])
        own = span(op, shape_of(op, 0), -dims, None)
        return _fitted(op, real, op.make("Shape", real), own, dims), None

    @gradient(f"IRFFT{suffix}")
    def of_inverse(op: Forward, grad: Tensor) -> Gradients:
        lengths = op.inputs[1]
        half = op.make(f"RFFT{suffix}", grad, lengths, Tcomplex=op.input_types[0])
        weights = _weights(op, element(op, lengths, -1), grad.dtype)
        number = op.make("Prod", lengths, op.g.constant(0, DataType.INT32))
        scale = op.make("Cast", weights / op.make("Cast", number, DstT=grad.dtype), DstT=half.dtype)
        scaled = half * scale
        own = span(op, shape_of(op, 0), -dims, None)
        return _fitted(op, scaled, op.make("Shape", scaled), own, dims), None


def _weights(op: Forward, length: Tensor, dtype: DataType) -> Tensor:
    """How often each frequency of a half transform occurs in the whole one: 0 and the middle once, all others twice."""
    middle = op.make("FloorDiv", length, 2)
    frequency = op.make("Range", 0, middle + 1, 1)
    mirrored = op.make("FloorMod", length - frequency, length)
    twice = op.make("NotEqual", frequency, mirrored)
    return op.make("Cast", twice, DstT=dtype) + 1


def _fitted(op: Forward, tensor: Tensor, shape: Tensor, target: Tensor, dims: int) -> Tensor:
    """`tensor` with its last `dims` axes cut, or padded with zeros at their ends, to the sizes in `target`."""
    outer = span(op, shape, 0, -dims)
    sizes = span(op, shape, -dims, None)
    common = op.make("ConcatV2", [outer, op.make("Minimum", sizes, target)], 0)
    cut = op.make("Slice", tensor, op.make("ZerosLike", common), common)
    missing = op.make("Maximum", target - sizes, 0)
    behind = op.make("ConcatV2", [op.make("ZerosLike", outer), missing], 0)
    return op.make("Pad", cut, op.make("Pack", [op.make("ZerosLike", behind), behind], axis=1))


for _suffix, _dims in (("", 1), ("2D", 2), ("3D", 3)):
    _full(_suffix, _dims)
    _half(_suffix, _dims)
