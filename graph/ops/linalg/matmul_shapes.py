"""Shapes of matrix products.

Flows in: shapes of the operands and which of them are read transposed. Flows out: the shape of the product. Always
holds: contracted sizes must agree where both are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import (
    ShapeContext,
    broadcast,
    merge,
    merge_dims,
    shape_fn,
    with_rank,
    with_rank_at_least,
)
from ...dtypes import Shape


@shape_fn("MatMul", "SparseMatMul")
def matmul(c: ShapeContext) -> Sequence[Shape]:
    """[m, k] x [k, n] -> [m, n]."""
    a, b = with_rank(c.inputs[0], 2), with_rank(c.inputs[1], 2)
    rows, inner_a = a[::-1] if c.attrs["transpose_a"] else a
    inner_b, columns = b[::-1] if c.attrs["transpose_b"] else b
    merge_dims(inner_a, inner_b)
    return ((rows, columns),)


def _stacked(c: ShapeContext, x: Shape, y: Shape, join: bool) -> Sequence[Shape]:
    x, y = with_rank_at_least(x, 2), with_rank_at_least(y, 2)
    if x is None or y is None:
        return (None,)
    rows, inner_x = x[:-3:-1] if c.attrs["adj_x"] else x[-2:]
    inner_y, columns = y[:-3:-1] if c.attrs["adj_y"] else y[-2:]
    merge_dims(inner_x, inner_y)
    stack = broadcast(x[:-2], y[:-2]) if join else merge(x[:-2], y[:-2])
    return (None if stack is None else (*stack, rows, columns),)


@shape_fn("BatchMatMul")
def batch_matmul(c: ShapeContext) -> Sequence[Shape]:
    """[..., m, k] x [..., k, n] -> [..., m, n] with equal stacks."""
    x, y = c.inputs[0], c.inputs[1]
    if x is None:  # one known rank tells the other
        x = None if y is None else (None,) * len(y)
    if y is None:
        y = None if x is None else (None,) * len(x)
    return _stacked(c, x, y, join=False)


@shape_fn("BatchMatMulV2", "BatchMatMulV3")
def batch_matmul_v2(c: ShapeContext) -> Sequence[Shape]:
    """[..., m, k] x [..., k, n] -> [..., m, n] with stacks that broadcast."""
    return _stacked(c, c.inputs[0], c.inputs[1], join=True)


@dataclass(frozen=True, slots=True)
class Equation:
    """An einsum equation: one label string per input, and the output's. "..." stands for any number of axes."""

    inputs: tuple[str, ...]
    output: str


def parse_equation(text: str) -> Equation:
    """Reads "ab,bc->ac"; InvalidArgumentError without exactly one "->", or with more than two inputs."""
    sides = text.split("->")
    if len(sides) != 2:
        raise InvalidArgumentError(f"Expecting exactly one '->' in einsum equation: {text}")
    terms = tuple(term.strip() for term in sides[0].split(","))
    if len(terms) > 2:
        raise InvalidArgumentError(f"Expecting 1 or 2 input subscripts in equation '{text}' but got: {len(terms)}")
    output = sides[1].strip()
    missing = set(output) - set(sides[0])
    if missing:
        raise InvalidArgumentError(f"einsum equation '{text}' puts out {sorted(missing)}, which no input has")
    return Equation(terms, output)


def _fit_term(term: str, shape: tuple[int | None, ...], sizes: dict[str, int | None]) -> tuple[int | None, ...]:
    """Notes the size of each label of one input, and returns the sizes that its ellipsis covers."""
    head, dots, tail = term.partition("...")
    named = len(head) + len(tail)
    if len(shape) < named or (not dots and len(shape) != named):
        raise InvalidArgumentError(f"Expected input of rank {named} but got rank {len(shape)} for term {term!r}")
    pairs = [*zip(head, shape, strict=False), *zip(tail, shape[len(shape) - len(tail) :], strict=True)]
    for label, size in pairs:
        sizes[label] = merge_dims(sizes.get(label), size)
    return shape[len(head) : len(shape) - len(tail)]


@shape_fn("Einsum")
def einsum(c: ShapeContext) -> Sequence[Shape]:
    """The sizes of the output's labels; those of the ellipsis are the inputs' broadcast against each other."""
    equation = parse_equation(c.attrs["equation"].decode())
    if len(equation.inputs) != len(c.inputs):
        raise InvalidArgumentError(f"Expected {len(equation.inputs)} inputs but got: {len(c.inputs)}")
    sizes: dict[str, int | None] = {}
    covered: Shape = ()
    for term, shape in zip(equation.inputs, c.inputs, strict=True):
        if shape is None:
            covered = None if "..." in term else covered
            continue
        covered = broadcast(covered, _fit_term(term, shape, sizes))
    head, dots, tail = equation.output.partition("...")
    if dots and covered is None:
        return (None,)
    middle = covered or () if dots else ()
    return ((*(sizes.get(label) for label in head), *middle, *(sizes.get(label) for label in tail)),)
