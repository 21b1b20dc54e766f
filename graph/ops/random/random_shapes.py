"""Shape functions of random ops: the shape that the first input holds; seeds, keys and counters are only checked."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import shape_from, shape_text, size_from
from ...analysis.shape_functions import ShapeContext, merge, scalar, shape_fn, unchanged, with_rank
from ...dtypes import Shape


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
    """The shape that the first input holds, or as many unknown sizes as that is long."""
    with_rank(c.inputs[0], 1)
    if c.op.endswith("V2"):  # shape, key, counter, algorithm
        merge(c.inputs[1], (1,))
        with_rank(c.inputs[2], 1)
        with_rank(c.inputs[3], 0)
    elif c.op.startswith("Stateless"):  # shape, seed
        merge(c.inputs[1], (2,))
    if "UniformInt" in c.op:
        for name, shape in zip(("minval", "maxval"), c.inputs[-2:], strict=True):
            if shape:
                raise InvalidArgumentError(f"{name} must be a scalar; got a tensor of shape {shape_text(shape)}")
    return (shape_from(c, 0),)


shape_fn("RandomShuffle")(unchanged)
shape_fn("StatelessRandomGetAlg")(scalar)


@shape_fn("StatelessRandomGetKeyCounter")
def key_counter(c: ShapeContext) -> Sequence[Shape]:
    """A key [1] and a counter [2]."""
    merge(c.inputs[0], (2,))
    return ((1,), (2,))


@shape_fn("StatelessRandomGetKeyCounterAlg")
def key_counter_algorithm(c: ShapeContext) -> Sequence[Shape]:
    """A key [1], a counter [2] and a scalar."""
    merge(c.inputs[0], (2,))
    return ((1,), (2,), ())


@shape_fn("RandomGamma", "RandomPoisson", "RandomPoissonV2")
def per_parameter(c: ShapeContext) -> Sequence[Shape]:
    """The shape that the first input holds, followed by that of the parameters."""
    with_rank(c.inputs[0], 1)
    sizes, parameters = shape_from(c, 0), c.inputs[1]
    return (None if sizes is None or parameters is None else (*sizes, *parameters),)


@shape_fn("Multinomial", "StatelessMultinomial")
def multinomial(c: ShapeContext) -> Sequence[Shape]:
    """[rows of the logits, number of samples]."""
    logits = with_rank(c.inputs[0], 2)
    if c.op == "StatelessMultinomial":
        merge(c.inputs[2], (2,))
    return ((logits[0], size_from(c, 1)),)
