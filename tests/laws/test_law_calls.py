"""A tree of calls gives the values of plain Python, yields to other tasks, and leaves nothing when it is cancelled.

Generated functions call functions of higher numbers, and some themselves. Every kernel uses up the budget of the
session, so all code that can yield does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import trio
from hypothesis import given, settings, strategies as st

from partita.actors import Session, open_session
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.protos import FunctionDef, GraphDef
from tests.function_defs import func_attr, function_of, library_of
from tests.runs import HARD_PLACEMENT, cpus
from tests.strategies import cpu

MODULUS = 9973
WAYS = ("PartitionedCall", "StatefulPartitionedCall", "If", "Case", "MapDefun")
DEVICES = 2


@dataclass(frozen=True)
class Function:
    """x -> (3 x + number + `calls` of x + 1, x + 2, ...) mod 9973.

    Calls are (function, way, device). With `repeats` it also calls itself with x // 2, until x is 0.
    """

    calls: tuple[tuple[int, str, str], ...]
    repeats: bool


@st.composite
def programs(draw: st.DrawFn) -> list[Function]:
    """Functions that call later ones and perhaps themselves; the graph calls the first."""
    count = draw(st.integers(1, 7))
    functions = []
    for number in range(count):
        later = st.integers(number + 1, count - 1)
        call = st.tuples(later, st.sampled_from(WAYS), st.sampled_from(["", *map(cpu, range(DEVICES))]))
        calls = draw(st.lists(call, max_size=3)) if number + 1 < count else []
        functions.append(Function(tuple(calls), draw(st.integers(0, 3)) == 0))
    return functions


def value(program: list[Function], x: int) -> int:
    """The value of the first function, in plain Python."""

    @cache
    def call(number: int, x: int) -> int:
        function = program[number]
        result = 3 * x + number
        for k, (called, _, _) in enumerate(function.calls, 1):
            result += call(called, (x + k) % MODULUS)
        if function.repeats and x:
            result += call(number, x // 2)
        return result % MODULUS

    return call(0, x)


def graph_of(program: list[Function]) -> GraphDef:
    """A graph whose node `y` calls the first function with `x`."""
    functions: list[FunctionDef] = []
    for number, function in enumerate(program):
        b = GraphBuilder()
        x = b.placeholder("x", "int64", ())
        terms = [b.op("Mul", x, b.constant(3, "int64"))[0], b.constant(number, "int64")]
        for k, (called, way, device) in enumerate(function.calls, 1):
            argument = b.op("FloorMod", b.op("AddV2", x, b.constant(k, "int64")), b.constant(MODULUS, "int64"))[0]
            terms.append(_call(b, f"f{called}", way, argument, device))
        if function.repeats:
            positive = b.op("Greater", x, b.constant(0, "int64"))[0]
            half = b.op("FloorDiv", x, b.constant(2, "int64"))[0]
            terms.append(_if(b, positive, f"f{number}", "zero", half, ""))
        total = b.op("FloorMod", b.op("AddN", terms), b.constant(MODULUS, "int64"))
        functions.append(function_of(f"f{number}", b.graph_def(), ["x:0"], [total[0].name]))
    b = GraphBuilder()
    zero = b.op("ZerosLike", b.placeholder("x", "int64", ()))
    functions.append(function_of("zero", b.graph_def(), ["x:0"], [zero[0].name]))
    b = GraphBuilder()
    x = b.placeholder("x", "int64", (), device=cpu(0))
    attrs = {"Tin": ["int64"], "Tout": ["int64"], "f": func_attr("f0")}
    b.op("StatefulPartitionedCall", [x], name="y", device=cpu(0), attrs=attrs)
    graph_def = b.graph_def()
    graph_def.library.CopyFrom(library_of(*functions))
    return graph_def


def _call(b: GraphBuilder, function: str, way: str, argument: Tensor, device: str) -> Tensor:
    attrs = {"Tin": ["int64"], "Tout": ["int64"], "f": func_attr(function)}
    if way == "If":
        return _if(b, b.constant(np.True_), function, "zero", argument, device)
    if way == "Case":
        branches = {**attrs, "branches": [func_attr("zero").func, func_attr(function).func]}
        del branches["f"]
        return b.op("Case", b.constant(1), [argument], attrs=branches, device=device)[0]
    if way == "MapDefun":
        rows = b.op("Pack", [argument, argument])[0]
        mapped = {"Targuments": ["int64"], "Tcaptured": [], "output_types": ["int64"], "output_shapes": [()]}
        both = b.op("MapDefun", [rows], [], attrs={**mapped, "f": func_attr(function)}, device=device)[0]
        return b.op("Max", both, b.constant(0))[0]
    return b.op(way, [argument], attrs=attrs, device=device)[0]


def _if(b: GraphBuilder, predicate: Tensor, then: str, otherwise: str, argument: Tensor, device: str) -> Tensor:
    attrs = {"Tin": ["int64"], "Tout": ["int64"], "then_branch": func_attr(then), "else_branch": func_attr(otherwise)}
    return b.op("If", predicate, [argument], attrs=attrs, device=device)[0]


async def _cancelled_after(session: Session, turns: int, x: int) -> None:
    """Cancels a step, if it still runs, after other tasks have run this many times."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(session.run, "y", {"x": np.int64(x)})
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


@settings(max_examples=25)
@given(programs(), st.integers(0, 9), st.lists(st.integers(0, 40), min_size=1, max_size=3))
async def test_called_functions_give_what_python_gives(program: list[Function], x: int, turns: list[int]) -> None:
    """Also after steps that were cancelled at any time, of which nothing is left."""
    async with open_session(graph_of(program), cpus(DEVICES), config=HARD_PLACEMENT, budget_s=0) as session:
        for wanted in turns:
            assert await session.run("y", {"x": np.int64(x)}) == [value(program, x)]
            await _cancelled_after(session, wanted, x)
            assert session.statistics().steps_running == 0
        assert await session.run("y", {"x": np.int64(x)}) == [value(program, x)]
