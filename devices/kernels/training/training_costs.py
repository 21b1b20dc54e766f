"""Costs of the updates of an optimiser, which are bound by memory: constants times the size of the variable."""

from __future__ import annotations

from collections.abc import Mapping

from ..op_cost import CostContext, bytes_moved, flops

# Op name without its prefix -> (operations per element, buffers of the variable's size that are read or written).
# Counted from the update formulas in the ops' public documentation; reads are the gradient, the variable and its slots,
# writes the variable and its slots.
_UPDATES: Mapping[str, tuple[int, int]] = {
    "ApplyGradientDescent": (2, 3),
    "ApplyMomentum": (4, 5),
    "ApplyKerasMomentum": (4, 5),
    "ApplyAdagrad": (5, 5),
    "ApplyAdagradV2": (6, 5),
    "ApplyAdadelta": (12, 7),
    "ApplyAdam": (12, 7),
    "ApplyAdaMax": (9, 7),
    "ApplyRMSProp": (9, 7),
    "ApplyFtrl": (14, 7),
}


_UPDATE_OPS = [*(f"Resource{op}" for op in _UPDATES), *(op for op in _UPDATES if op != "ApplyKerasMomentum")]


def _gradient(c: CostContext) -> int:
    """The index of the gradient: the largest input that is held by value (resource handles are scalars)."""
    return max(range(len(c.inputs)), key=lambda i: (c.bytes_in(i), i))


@flops(*_UPDATE_OPS)
def update(c: CostContext) -> int:
    """Operations per element times elements of the gradient."""
    return _UPDATES[c.op.removeprefix("Resource")][0] * c.elements_in(_gradient(c))


@bytes_moved(*_UPDATE_OPS)
def update_bytes(c: CostContext) -> int:
    """Buffers that are read or written, times the bytes of the gradient."""
    return _UPDATES[c.op.removeprefix("Resource")][1] * c.bytes_in(_gradient(c))
