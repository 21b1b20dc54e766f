"""Gradients through calls, conditionals and loops that are single nodes are the derivatives of what they compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import given, settings, strategies as st

from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array, DataType
from partita.graph.gradients import gradients
from partita.graph.graph import Graph
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.passes.lower_functional import lower_functional
from partita.graph.protos import FunctionDef, GraphDef
from tests.function_defs import calling, func_attr, function_of
from tests.graph.gradients.programs import NUM_VARIABLES, Statement, derivatives, graph, programs, run, total, value
from tests.runs import fetched

INPUTS = [f"x{number}:0" for number in range(NUM_VARIABLES)]
SHAPE = (2,)
Program = tuple[Statement, ...]
examples = settings(max_examples=10)
seeds = st.integers(0, 2**32 - 1)


def points(seed: int) -> list[Array]:
    return list(np.random.default_rng(seed).uniform(-1, 1, (NUM_VARIABLES, *SHAPE)))


def function(name: str, program: Program) -> FunctionDef:
    """The program as a function of x0, x1, x2 and even, that gives y."""
    return function_of(name, graph(program, SHAPE).graph_def(), [*INPUTS, "even:0"], ["y:0"])


async def check(
    built: Graph, ys: list[str], feeds: list[Array], xs: range, true: Callable[[Sequence[Array]], Array]
) -> None:
    """Checks the gradients of ys by placeholders; feeds are those of x0, x1, ... in that order."""
    at = feeds[xs.start : xs.stop]
    names = gradients(built, ys, [f"x{k}:0" for k in xs])
    inlined = lower_functional(built, inline_calls=True).to_graph_def()
    values = await fetched(inlined, [n for n in names if n], {f"x{k}:0": v for k, v in enumerate(feeds)})
    by_name = dict(zip([n for n in names if n], values, strict=True))
    for name, derivative in zip(names, derivatives(true, at), strict=True):
        np.testing.assert_allclose(by_name[name] if name else np.zeros(SHAPE), derivative, rtol=1e-9, atol=1e-12)


@given(programs, seeds, st.booleans())
@examples
async def test_calls(program: Program, seed: int, even: bool) -> None:
    built = calling("PartitionedCall", function("F", program), f=func_attr("F")).graph()
    feeds = [*points(seed), np.array(even)]
    await check(built, ["c:0"], feeds, range(NUM_VARIABLES), lambda at: value(program, at, even))


@given(programs, programs, seeds, st.booleans(), st.booleans())
@examples
async def test_conditionals(then: Program, otherwise: Program, seed: int, even: bool, taken: bool) -> None:
    functions = function("F", then), function("G", otherwise)
    branches = func_attr("F"), func_attr("G")
    builder = calling(
        "StatelessIf", *functions, first=[DataType.BOOL], then_branch=branches[0], else_branch=branches[1]
    )
    built = builder.graph()
    feeds = [np.array(taken), *points(seed), np.array(even)]
    await check(
        built, ["c:0"], feeds, range(1, 1 + NUM_VARIABLES), lambda at: value(then if taken else otherwise, at, even)
    )


@given(st.lists(programs, min_size=3, max_size=3), seeds, st.booleans(), st.integers(-1, 3))
@examples
async def test_choices_of_many(branches: list[Program], seed: int, even: bool, chosen: int) -> None:
    functions = [function(f"F{k}", branch) for k, branch in enumerate(branches)]
    listed = encode([func_attr(f"F{k}").func for k in range(3)], "list(func)")
    built = calling("StatelessCase", *functions, first=[DataType.INT32], branches=listed).graph()
    feeds = [np.array(chosen, np.int32), *points(seed), np.array(even)]
    taken_branch = branches[chosen if chosen in range(3) else -1]
    await check(built, ["c:0"], feeds, range(1, 1 + NUM_VARIABLES), lambda at: value(taken_branch, at, even))


@given(programs, seeds, st.booleans(), st.integers(0, 3))
@examples
async def test_loops(body: Program, seed: int, even: bool, times: int) -> None:
    def iterated(at: Sequence[Array]) -> Array:
        variables = list(at)
        for _ in range(times):
            variables = run(body, list(variables), variables, even)
        return total(variables)

    arguments = [*INPUTS, "even:0", "n:0"]
    inside = graph(body, SHAPE)
    inside.op("AddV2", inside.placeholder("n", DataType.INT32, ()), np.int32(1), name="next")
    going = function_of("Body", inside.graph_def(), arguments, ["v0:0", "v1:0", "v2:0", "even:0", "next:0"])
    functions = going, function_of("Again", _condition(times), arguments, ["less:0"])
    kinds = encode([DataType.DOUBLE] * 3 + [DataType.BOOL, DataType.INT32], "list(type)")
    builder = calling("StatelessWhile", *functions, T=kinds, cond=func_attr("Again"), body=func_attr("Body"))
    builder.op("AddN", [f"c:{k}" for k in range(NUM_VARIABLES)], name="total")
    feeds = [*points(seed), np.array(even), np.array(0, np.int32)]
    await check(builder.graph(), ["total:0"], feeds, range(NUM_VARIABLES), iterated)


def _condition(times: int) -> GraphDef:
    builder = graph((), SHAPE)
    builder.op("Less", builder.placeholder("n", DataType.INT32, ()), np.int32(times), name="less")
    return builder.graph_def()


async def test_a_gradient_that_the_library_names_is_called() -> None:
    """Here it says that the derivative of x + x is 5, which shows that the named gradient was used."""
    double, five = GraphBuilder(), GraphBuilder()
    double.op("AddV2", double.placeholder("a", DataType.DOUBLE, SHAPE), "a:0", name="r")
    five.placeholder("a", DataType.DOUBLE, SHAPE)
    five.op("Mul", five.placeholder("g", DataType.DOUBLE, SHAPE), np.float64(5), name="r")
    functions = (
        function_of("F", double.graph_def(), ["a:0"], ["r:0"]),
        function_of("G", five.graph_def(), ["a:0", "g:0"], ["r:0"]),
    )
    graph_def = calling("PartitionedCall", *functions, f=func_attr("F")).graph_def()
    graph_def.library.gradient.add(function_name="F", gradient_func="G")
    await check(graph_def_to_graph(graph_def), ["c:0"], [np.ones(SHAPE)], range(1), lambda at: 5 * at[0])
