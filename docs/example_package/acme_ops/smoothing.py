"""Smooth: the mean of each element of a vector and its `reach` neighbours on either side.

At the ends the mean is over the elements that there are: Smooth([3, 0, 6], reach=1) = [1.5, 3, 3].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from partita.devices import Construction, CostContext, flops, kernel
from partita.graph import Forward, ShapeContext, Tensor, gradient, register_op, shape_fn, with_rank

Vector = npt.NDArray[np.floating[Any]]

register_op("""
    Smooth
    input values: T
    input reach: int32          # a scalar, at least 0
    output smoothed: T
    attr T: {float, double} = float
""")
register_op("""
    SmoothGrad
    input grad: T
    input reach: int32
    output backprop: T
    attr T: {float, double} = float
""")


def _counts(size: int, reach: int) -> npt.NDArray[np.intp]:
    """How many elements each mean is over."""
    index = np.arange(size)
    return np.minimum(index + reach, size - 1) - np.maximum(index - reach, 0) + 1


def _window_sums(values: Vector, reach: int) -> Vector:
    """The sum of each element and its neighbours: differences of the running sum."""
    size = len(values)
    running = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    index = np.arange(size)
    sums: Vector = running[np.minimum(index + reach + 1, size)] - running[np.maximum(index - reach, 0)]
    return sums


@kernel("Smooth", kinds=["CPU", "NPU"], host_args=["reach"])
def smooth(node: Construction) -> Any:
    """Kernel of Smooth; `reach` stays in host memory on every device."""
    return lambda values, reach: (_window_sums(values, int(reach)) / _counts(len(values), int(reach))).astype(
        values.dtype
    )


@kernel("SmoothGrad", kinds=["CPU", "NPU"], host_args=["reach"])
def smooth_grad(node: Construction) -> Any:
    """Kernel of SmoothGrad: each element was part of the means around it."""
    return lambda grad, reach: _window_sums(grad / _counts(len(grad), int(reach)), int(reach)).astype(grad.dtype)


@shape_fn("Smooth", "SmoothGrad")
def same_shape(c: ShapeContext) -> Any:
    """A vector as long as the first input."""
    return [with_rank(c.inputs[0], 1)]


@flops("Smooth", "SmoothGrad")
def smooth_flops(c: CostContext) -> int:
    """An addition for the running sum, a subtraction and a division per element."""
    return 3 * c.elements_in(0)


@gradient("Smooth")
def smooth_gradient(op: Forward, grad: Tensor) -> Any:
    """Of `values`; nothing flows back into `reach`."""
    return op.make("SmoothGrad", grad, op.inputs[1]), None
