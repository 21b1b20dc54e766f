"""The equation of an Einsum, parsed, and the shape of its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, broadcast, merge_dims, shape_fn
from ...dtypes import Shape


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
    """Enters the size of each label of one input into `sizes`, and returns the sizes that its ellipsis covers."""
    head, dots, tail = term.partition("...")
    named = len(head) + len(tail)
    if len(shape) < named or (not dots and len(shape) != named):
        raise InvalidArgumentError(f"Expected input of rank {named} but got rank {len(shape)} for term {term!r}")
    pairs = [*zip(head, shape, strict=False), *zip(tail, shape[len(shape) - len(tail) :], strict=True)]
    for label, size in pairs:
        sizes[label] = merge_dims(sizes.get(label), size)
    return shape[len(head) : len(shape) - len(tail)]


@shape_fn("Einsum", "XlaEinsum")
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
