"""Random ops of called functions: which calls share generators, on both clocks and in traced steps.

The numbers are those of TensorFlow 2.21, whose op RandomUniform draws them in turn from the seeds 1 and 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.actors import RunMetadata, RunOptions, open_session
from partita.actors.running.functions import Functions
from partita.graph.builder import GraphBuilder
from partita.graph.protos import ConfigProto, FunctionDef, GraphDef, NameAttrList
from tests.function_defs import function_of, library_of
from tests.strategies import cpu

FIRST, SECOND, THIRD, FOURTH = 0.40639675, 0.6038654, 0.00496614, 0.49945498
INLINED = ConfigProto()
INLINED.graph_options.optimizer_options.do_function_inlining = True
FULL_TRACE = RunOptions(trace_level=RunOptions.FULL_TRACE)
Clock = Literal["real", "virtual"]
KINDS_OF_STEP: list[tuple[Clock, bool]] = [("real", False), ("real", True), ("virtual", False)]


def draw(b: GraphBuilder, seeds: Sequence[int] = (1, 2), name: str = "r", **where: Any) -> str:
    attrs = {"dtype": "float32", "seed": seeds[0], "seed2": seeds[1]}
    return b.op("RandomUniform", b.constant([2]), name=name, attrs=attrs, **where)[0].name


def call(b: GraphBuilder, function: str, name: str, **where: Any) -> str:
    attrs = {"Tin": [], "Tout": ["float32"], "f": NameAttrList(name=function)}
    return b.op("StatefulPartitionedCall", [], name=name, attrs=attrs, **where)[0].name


def drawing(name: str, seeds: Sequence[int] = (1, 2)) -> FunctionDef:
    b = GraphBuilder()
    return _of(name, b, draw(b, seeds))


def _of(name: str, b: GraphBuilder, *results: str) -> FunctionDef:
    return function_of(name, b.graph_def(), [], results)


def choosing(b: GraphBuilder, name: str) -> str:
    attrs = {"Tin": [], "Tout": ["float32"]}
    branches = {"then_branch": NameAttrList(name="f"), "else_branch": NameAttrList(name="f")}
    return b.op("If", b.constant(True), [], name=name, attrs=attrs | branches)[0].name


def graph_of(b: GraphBuilder, *functions: FunctionDef) -> GraphDef:
    graph_def = b.graph_def()
    graph_def.library.CopyFrom(library_of(*functions))
    return graph_def


async def firsts(
    graph_def: GraphDef, fetches: Sequence[str], steps: int = 2, *, is_traced: bool = False, **options: Any
) -> list[list[float]]:
    """The first number of each fetch, in several steps."""
    trace: dict[str, Any] = {"options": FULL_TRACE, "metadata": RunMetadata()} if is_traced else {}
    async with open_session(graph_def, "cpu:2", **options) as session:
        drawn = [await session.run(list(fetches), **trace) for _ in range(steps)]
    return [[float(value[0]) for value in values] for values in drawn]


@pytest.mark.parametrize(("clock", "is_traced"), KINDS_OF_STEP)
async def test_nodes_of_one_name_in_other_calls_functions_devices_and_the_graph_draw_apart(
    clock: Clock, is_traced: bool
) -> None:
    """Two functions, one of them called twice on one device and once on another, and a node of the graph."""
    b = GraphBuilder()
    fetches = [call(b, "f", "c0"), call(b, "g", "c1"), call(b, "f", "c2"), call(b, "f", "c3", device=cpu(1)), draw(b)]
    graph_def = graph_of(b, drawing("f"), drawing("g"))
    drawn = await firsts(graph_def, fetches, is_traced=is_traced, clock=clock)
    np.testing.assert_allclose(drawn, [[FIRST] * 5, [SECOND] * 5], rtol=1e-5)


@pytest.mark.parametrize("clock", ["real", "virtual"])
async def test_conditionals_at_one_site_share_the_generators_of_a_branch(clock: Clock) -> None:
    """Two nodes of the graph draw in turn; the one in a called function begins anew for each of two calls."""
    b, inner = GraphBuilder(), GraphBuilder()
    outer = _of("outer", inner, choosing(inner, "choice"))
    fetches = [choosing(b, "a"), choosing(b, "b"), call(b, "outer", "c"), call(b, "outer", "d")]
    drawn = await firsts(graph_of(b, outer, drawing("f")), fetches, clock=clock)
    for values, expected in zip(drawn, ([FIRST, SECOND], [THIRD, FOURTH]), strict=True):
        np.testing.assert_allclose(sorted(values[:2]), sorted(expected), rtol=1e-5)
    np.testing.assert_allclose([values[2:] for values in drawn], [[FIRST] * 2, [SECOND] * 2], rtol=1e-5)


@pytest.mark.parametrize("clock", ["real", "virtual"])
async def test_the_body_of_a_loop_goes_on_from_iteration_to_iteration(clock: Clock) -> None:
    """Two iterations a step, beside a call of another function with a node of that name."""
    cond, body, b = GraphBuilder(), GraphBuilder(), GraphBuilder()
    i, _ = cond.placeholder("i", "int32", ()), cond.placeholder("x", "float32", (2,))
    less = cond.op("Less", i, cond.constant(2))[0].name
    i, _ = body.placeholder("i", "int32", ()), body.placeholder("x", "float32", (2,))
    results = [body.op("AddV2", i, body.constant(1))[0].name, draw(body)]
    functions = [
        function_of("cond", cond.graph_def(), ["i:0", "x:0"], [less]),
        function_of("body", body.graph_def(), ["i:0", "x:0"], results),
    ]
    named = {"cond": NameAttrList(name="cond"), "body": NameAttrList(name="body")}
    loop = b.op("While", [b.constant(0), b.constant(np.zeros(2, np.float32))], name="w", attrs=named)
    fetches = [loop[1].name, call(b, "f", "c")]
    drawn = await firsts(graph_of(b, *functions, drawing("f")), fetches, clock=clock)
    np.testing.assert_allclose(drawn, [[SECOND, FIRST], [FOURTH, SECOND]], rtol=1e-5)


async def test_functions_without_random_ops_are_compiled_once_for_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with random ops once for each call, and once to learn how long they are."""
    compiled: list[tuple[str, str]] = []
    finished = Functions._finished

    def noted(self: Functions, compilation: Any) -> Any:
        compiled.append((compilation.called.function.name, compilation.called.site))
        return finished(self, compilation)

    monkeypatch.setattr(Functions, "_finished", noted)
    b, plain = GraphBuilder(), GraphBuilder()
    function = _of("plain", plain, plain.constant(np.ones(2, np.float32)).name)
    fetches = [call(b, name, f"{name}{k}") for name in ("plain", "f") for k in range(3)]
    await firsts(graph_of(b, function, drawing("f")), fetches)
    assert sorted(compiled) == [("f", "f0/"), ("f", "f1/"), ("f", "f2/"), ("f", "f[]/"), ("plain", "")]


@settings(max_examples=15)
@given(st.lists(st.lists(st.integers(-1, 2), min_size=1, max_size=3), min_size=3, max_size=3), st.booleans())
async def test_called_functions_draw_the_numbers_of_inlined_ones(bodies: list[list[int]], has_seeds: bool) -> None:
    """Function k draws, or calls a function before it, in turn: all nodes have names that other functions have too."""
    functions, seeds = [], (1, 2) if has_seeds else (0, 0)
    for number, body in enumerate(bodies):
        b = GraphBuilder()
        parts = [call(b, f"f{k}", f"n{n}") if 0 <= k < number else draw(b, seeds, f"n{n}") for n, k in enumerate(body)]
        functions.append(_of(f"f{number}", b, b.op("AddN", parts, name="sum")[0].name))
    b = GraphBuilder()
    fetches = [call(b, "f2", "n0"), call(b, "f1", "n1"), call(b, "f2", "n2"), draw(b, seeds, "n3")]
    graph_def = graph_of(b, *functions)
    expected = await firsts(graph_def, fetches, config=INLINED, seed=7)
    for clock, is_traced in KINDS_OF_STEP:
        assert await firsts(graph_def, fetches, is_traced=is_traced, clock=clock, seed=7) == expected
