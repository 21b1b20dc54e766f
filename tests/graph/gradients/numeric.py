"""Checks gradients against differences of values.

The slope along a random direction must be what the gradient says. The loss is Re(sum(conj(w) y)) with random weights w,
which are fed as `grad_ys`; so a step d of x changes it by Re(sum(conj(d x) d)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partita.actors import Session, open_session
from partita.graph.builder import GraphBuilder
from partita.graph.builder.extension import Extension
from partita.graph.builder.handles import Operation, Tensor
from partita.graph.dtypes import Array
from partita.graph.gradients import gradients
from partita.graph.graph import Graph

Build = Callable[..., Any]
"""takes a builder and one tensor per x; returns one or more tensors"""


@dataclass
class Slopes:
    """ys, xs and gradients of a graph, by name, and what to feed."""

    graph: Graph
    ys: list[str]
    xs: dict[str, Array]
    weights: dict[str, Array]
    grads: list[str | None]


async def check(
    build: Build,
    *xs: Array,
    step: float = 1e-5,
    rtol: float = 1e-5,
    atol: float = 1e-7,
    twice: bool = False,
    flat: Sequence[int] = (),
    open_shapes: bool = False,
) -> set[str]:
    """Compares the gradients of `build` at `xs`; with `twice` those of the gradients too.

    `flat` are the xs whose gradient has to be None. With `open_shapes` no size is known before the run. Returns the ops
    of the graph that is differentiated.
    """
    random = np.random.default_rng(len(xs))
    b = GraphBuilder()
    feeds = {f"x{i}:0": np.asarray(x) for i, x in enumerate(xs)}
    placed = [
        b.placeholder(f"x{i}", x.dtype.name, None if open_shapes else x.shape) for i, x in enumerate(feeds.values())
    ]
    outputs = build(b, *placed)
    ys = [outputs] if isinstance(outputs, (Tensor, Operation)) else list(outputs)
    graph = b.graph()
    ops = {node.op for node in graph.op_nodes()}
    slopes = await _slopes(graph, [b.tensor(y).name for y in ys], feeds, random)
    assert [i for i, name in enumerate(slopes.grads) if name is None] == list(flat)
    names = [name for name in slopes.grads if name is not None]
    if names:
        await _compare(slopes, (step, rtol, atol), random)
    if twice:
        feeds = slopes.xs | slopes.weights
        await _compare(await _slopes(slopes.graph, names, feeds, random), (step, rtol, atol), random)
    return ops


async def _slopes(graph: Graph, ys: list[str], feeds: dict[str, Array], random: np.random.Generator) -> Slopes:
    """Adds weights of the shapes of the ys, and the gradients."""
    async with open_session(graph.to_graph_def()) as session:
        values = await session.run(ys, feeds)
    extension = Extension(graph)
    weights = {}
    for value in values:
        weight = extension.placeholder("weight", value.dtype.name, value.shape)
        weights[weight.name] = _random(random, value)
    read = [extension.identity(weight).name for weight in weights]  # what is fed cannot be fetched as well
    extension.flush()
    return Slopes(graph, ys, feeds, weights, gradients(graph, ys, list(feeds), read))


def _random(random: np.random.Generator, like: Array) -> Array:
    real, imaginary = random.standard_normal((2, *like.shape))
    return np.asarray(real + 1j * imaginary if like.dtype.kind == "c" else real, like.dtype)


async def _compare(slopes: Slopes, exact: tuple[float, float, float], random: np.random.Generator) -> None:
    step, rtol, atol = exact
    feeds = slopes.xs | slopes.weights
    async with open_session(slopes.graph.to_graph_def()) as session:
        named = [(x, name) for x, name in zip(slopes.xs, slopes.grads, strict=True) if name is not None]
        values = await session.run([name for _, name in named], feeds)
        for (x, _), grad in zip(named, values, strict=True):
            value = feeds[x]
            assert (grad.shape, grad.dtype) == (value.shape, value.dtype), x
            for _ in range(2):
                direction = _random(random, value)
                moved = [await _loss(session, slopes, {**feeds, x: value + s * direction}) for s in (step, -step)]
                expected = np.vdot(grad, direction).real
                np.testing.assert_allclose((moved[0] - moved[1]) / (2 * step), expected, rtol, atol, err_msg=x)


async def _loss(session: Session, slopes: Slopes, feeds: dict[str, Array]) -> float:
    values = await session.run(slopes.ys, feeds)
    weights = slopes.weights.values()
    return sum(float(np.vdot(w.astype(np.complex128), y).real) for w, y in zip(weights, values, strict=True))


@dataclass(frozen=True)
class Example:
    """The arguments of `check` as a row of a table, with the ops that it is about."""

    build: Build
    xs: tuple[Array, ...]
    options: dict[str, Any]  # keywords of `check`, whose types differ

    async def check(self, **more: Any) -> set[str]:  # keywords of `check`
        """Runs it."""
        return await check(self.build, *self.xs, **{**self.options, **more})


def example(build: Build, *xs: Array, **options: Any) -> Example:  # keywords of `check`
    """A row of a table."""
    return Example(build, xs, options)


SINGLE: dict[str, Any] = {"step": 1e-2, "rtol": 2e-2, "atol": 2e-3}
"""options of ops that know float32 only"""


def normal(*shape: int, seed: int = 0) -> Array:
    """Random numbers around 0."""
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape)


def between(low: float, high: float, *shape: int, seed: int = 0) -> Array:
    """Random numbers from `low` to `high`."""
    return np.random.default_rng(seed + sum(shape)).uniform(low, high, shape)


def complex_normal(*shape: int, seed: int = 0) -> Array:
    """Random complex numbers around 0."""
    return normal(*shape, seed=seed) + 1j * normal(*shape, seed=seed + 1)


def single(array: Array) -> Array:
    """As float32."""
    return array.astype(np.float32)


def distinct(*shape: int) -> Array:
    """Numbers at least 0.1 apart, shuffled: no step makes two equal."""
    count = int(np.prod(shape))
    return np.random.default_rng(count).permutation(count).reshape(shape) * 0.1 + 0.05


def known(b: GraphBuilder, value: object, dtype: str = "int32") -> Tensor:
    """A constant, whose value is known before the run."""
    return b.constant(np.array(value), dtype)
