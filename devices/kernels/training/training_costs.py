"""Costs of the updates of an optimiser, which are bound by memory: constants times the size of the variable."""

from __future__ import annotations

from collections.abc import Mapping

from ....graph.ops.registry import lookup_op
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


# The same of updates that are not bound to one of the kinds above, dense and by rows: operations per element of the
# gradient, buffers of its size. Rows are read and written where the gradient has some, with their indices.
_OTHER_UPDATES: Mapping[str, tuple[int, int]] = {
    "ApplyAdagradDA": (12, 6),
    "ApplyAdamWithAmsgrad": (14, 9),
    "ApplyAddSign": (9, 5),
    "ApplyCenteredRMSProp": (13, 9),
    "ApplyFtrlV2": (16, 7),
    "ApplyPowerSign": (9, 5),
    "ApplyProximalAdagrad": (10, 5),
    "ApplyProximalGradientDescent": (8, 3),
}
_BY_ROWS: Mapping[str, tuple[int, int]] = {
    name: numbers
    for name, numbers in {**_UPDATES, **_OTHER_UPDATES}.items()
    if name.removeprefix("Apply")
    in {
        *("Adadelta", "Adagrad", "AdagradDA", "AdagradV2", "CenteredRMSProp", "Ftrl", "FtrlV2", "KerasMomentum"),
        *("Momentum", "ProximalAdagrad", "ProximalGradientDescent", "RMSProp"),
    }
}
_MORE: Mapping[str, tuple[int, int]] = {
    **{f"Resource{name}": numbers for name, numbers in _OTHER_UPDATES.items()},
    **{name: numbers for name, numbers in _OTHER_UPDATES.items() if name != "ApplyAdamWithAmsgrad"},
    **{f"ResourceSparse{name}": numbers for name, numbers in _BY_ROWS.items()},
    **{f"Sparse{name}": numbers for name, numbers in _BY_ROWS.items() if name != "ApplyKerasMomentum"},
}


def _gradient_of(c: CostContext) -> int:
    """The index of the gradient, which the arguments name."""
    return [arg.name for arg in lookup_op(c.op).input_args].index("grad")


@flops(*_MORE)
def other_update(c: CostContext) -> int:
    """Operations per element times elements of the gradient."""
    return _MORE[c.op][0] * c.elements_in(_gradient_of(c))


@bytes_moved(*_MORE)
def other_update_bytes(c: CostContext) -> int:
    """Buffers that are read or written, times the bytes of the gradient, and the indices of rows."""
    gradient = _gradient_of(c)
    return _MORE[c.op][1] * c.bytes_in(gradient) + (c.bytes_in(gradient + 1) if "Sparse" in c.op else 0)
