"""Shape functions of random ops: the shape that the first input holds; seeds, keys and counters are only checked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ....errors import InvalidArgumentError
from ...analysis.dims import shape_from, shape_text, size_from
from ...analysis.shape_functions import (
    ShapeContext,
    broadcast,
    merge,
    scalar,
    shape_fn,
    unchanged,
    with_rank,
    with_rank_at_most,
    with_size,
)
from ...dtypes import DataType, Shape


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
    "StatelessRandomBinomial",
    "StatelessRandomGammaV2",
    "StatelessRandomGammaV3",
    "StatelessRandomPoisson",
)
def random(c: ShapeContext) -> Sequence[Shape]:
    """The shape that the first input holds, or as many unknown sizes as that is long."""
    with_rank(c.inputs[0], 1)
    if c.op.startswith("Stateless") and c.input_types[1] is DataType.UINT64:  # shape, key, counter, algorithm
        with_size(with_rank(c.inputs[1], 1)[0], 1)
        with_rank(c.inputs[2], 1)
        with_rank(c.inputs[3], 0)
    elif c.op.startswith("Stateless"):  # shape, seed
        with_size(with_rank(c.inputs[1], 1)[0], 2)
    if "UniformInt" in c.op:
        for name, shape in zip(("minval", "maxval"), c.inputs[-2:], strict=True):
            if shape:
                raise InvalidArgumentError(f"{name} must be a scalar; got a tensor of shape {shape_text(shape)}")
    return (shape_from(c, 0),)


@shape_fn("StatelessParameterizedTruncatedNormal")
def stateless_parameterized(c: ShapeContext) -> Sequence[Shape]:
    """The shape that the first input holds; the parameters broadcast against each other."""
    with_rank(c.inputs[0], 1)
    with_size(with_rank(c.inputs[1], 1)[0], 2)
    reduce(broadcast, c.inputs[2:])
    return (shape_from(c, 0),)


@shape_fn("ParameterizedTruncatedNormal")
def parameterized(c: ShapeContext) -> Sequence[Shape]:
    """The shape that the first input holds; parameters are scalars or vectors."""
    for parameter in c.inputs[1:]:
        with_rank_at_most(parameter, 1)
    return (shape_from(c, 0),)


shape_fn("RandomShuffle", "StatelessShuffle")(unchanged)


@shape_fn("SobolSample")
def sobol_sample(c: ShapeContext) -> Sequence[Shape]:
    """A row for each point."""
    for shape in c.inputs:
        with_rank(shape, 0)
    sizes = c.constant(1), c.constant(0)
    return (tuple(None if size is None or int(size) < 0 else int(size) for size in sizes),)


@shape_fn("RandomIndexShuffle")
def random_index_shuffle(c: ShapeContext) -> Sequence[Shape]:
    """A scalar, or a vector if indices, limits or seeds (then rows of three) are; vectors are of one length."""
    index, seed, limit = c.inputs
    if seed is not None and (len(seed) not in (1, 2) or seed[-1] != 3):
        raise InvalidArgumentError(f"Seed must have shape [3] or [n, 3] but got {shape_text(seed)}.")
    shapes = [with_rank_at_most(index, 1), with_rank_at_most(limit, 1), None if seed is None else seed[:-1]]
    if not any(shapes):
        return (None if None in shapes else (),)
    length: Shape = None
    for shape in shapes:
        length = merge(length, shape or None)
    return (length,)


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


@shape_fn("StatefulRandomBinomial")
def stateful_random_binomial(c: ShapeContext) -> Sequence[Shape]:
    """The shape that input 2 holds."""
    return (shape_from(c, 2),)
