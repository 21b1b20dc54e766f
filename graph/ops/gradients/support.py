"""What rules of several families share: undoing a broadcast, shapes, zeros.

Flows in: handles. Flows out: handles of added nodes. Always holds: no shape is assumed; nodes compute them as they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dtypes import DataType
from .registry import Forward

if TYPE_CHECKING:
    from ...handles import Tensor

COMPLEX = frozenset({DataType.COMPLEX64, DataType.COMPLEX128})


def shape_of(op: Forward, tensor: Tensor) -> Tensor:
    """The shape of a tensor as an int32 tensor."""
    return op.g.op("Shape", tensor)[0]


def undo_broadcast(op: Forward, dx: Tensor, dy: Tensor) -> tuple[Tensor, Tensor]:
    """Sums what flows back into the two inputs of an op that broadcasts over the axes each was stretched along."""
    x, y = op.inputs
    sx, sy = shape_of(op, x), shape_of(op, y)
    rx, ry = op.g.op("BroadcastGradientArgs", sx, sy)
    return _summed(op, dx, rx, sx), _summed(op, dy, ry, sy)


def _summed(op: Forward, grad: Tensor, axes: Tensor, shape: Tensor) -> Tensor:
    return op.g.op("Reshape", op.g.op("Sum", grad, axes), shape)[0]


def conjugate(op: Forward, tensor: Tensor) -> Tensor:
    """The complex conjugate; of a real tensor itself."""
    return op.g.op("Conj", tensor)[0] if tensor.dtype in COMPLEX else tensor
