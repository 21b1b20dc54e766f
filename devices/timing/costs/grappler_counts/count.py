"""What a rule returns, and what rules share: sizes of tensors, attrs as text, and the op that has no rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import NamedTuple

from ....kernels.op_cost import CostContext, input_bytes, output_bytes


class GrapplerCount(NamedTuple):
    """Operations of one run of an op, and the bytes that it reads and writes."""

    operations: int
    bytes: int


CountRule = Callable[[CostContext], GrapplerCount]


def all_bytes(c: CostContext) -> int:
    """Bytes of all inputs and outputs; strings, resources and variants have none."""
    return input_bytes(c) + output_bytes(c)


def counted(operations: int, c: CostContext) -> GrapplerCount:
    """So many operations, and every input and output moved once."""
    return GrapplerCount(operations, all_bytes(c))


def only_memory(c: CostContext) -> GrapplerCount:
    """Every input and output moved once: the cost of each op that TensorFlow has no rule for."""
    return counted(0, c)


def nothing(c: CostContext) -> GrapplerCount:
    """No cost: TensorFlow gives such an op a nanosecond, which is 0 in whole microseconds."""
    return GrapplerCount(0, 0)


def text(c: CostContext, name: str, default: str = "") -> str:
    """A string attr as text; `default` where the op has none of that name."""
    value = c.attrs.get(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)


def each(rule: CountRule, ops: Iterable[str]) -> dict[str, CountRule]:
    """The same rule for several ops."""
    return dict.fromkeys(ops, rule)


def broadcast_elements(c: CostContext) -> int:
    """Elements of all inputs broadcast together, whether or not the op would broadcast them.

    TensorFlow takes the larger size along each axis from the last one on: the bias of 64 channels before an image of
    [2,64,8,9] counts as [2,64,8,64].
    """
    rank = max(map(len, c.inputs))
    padded = [(1,) * (rank - len(dims)) + dims for dims in c.inputs]
    return prod(max(sizes) for sizes in zip(*padded, strict=True))
