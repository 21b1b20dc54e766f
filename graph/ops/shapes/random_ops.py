"""Shapes of random tensors.

Flows in: the value of the shape input where it is known, and its length. Flows out: that shape. Always holds: seeds,
keys and counters do not decide a shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import Shape
from .dims import shape_from
from .registry import ShapeContext, scalar, shape_fn, unchanged, with_rank


@shape_fn(
    "RandomUniform",
    "RandomStandardNormal",
    "TruncatedNormal",
    "RandomUniformInt",
    *(
        f"Stateless{name}{version}"
        for name in ("RandomUniform", "RandomNormal", "TruncatedNormal", "RandomUniformInt", "RandomUniformFullInt")
        for version in ("", "V2")
    ),
)
def random(c: ShapeContext) -> Sequence[Shape]:
    """The shape that the first input spells out, or as many unknown sizes as it is long."""
    with_rank(c.inputs[0], 1)
    return (shape_from(c, 0),)


shape_fn("RandomShuffle")(unchanged)
shape_fn("StatelessRandomGetAlg")(scalar)


@shape_fn("StatelessRandomGetKeyCounter")
def key_counter(c: ShapeContext) -> Sequence[Shape]:
    """One key, two counters."""
    return ((1,), (2,))


@shape_fn("StatelessRandomGetKeyCounterAlg")
def key_counter_algorithm(c: ShapeContext) -> Sequence[Shape]:
    """One key, two counters, one number."""
    return ((1,), (2,), ())
