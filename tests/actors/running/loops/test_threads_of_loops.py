"""Slow kernels in loops run in worker threads too, whichever way the loop runs: same values, other tasks go on."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
import trio
from hypothesis import given, settings

from partita.actors import Session, open_session
from partita.errors import InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Array
from partita.graph.protos import ConfigProto, GraphDef
from tests.actors.gates import ALWAYS, Gate, check_cancelled_in_a_thread
from tests.actors.programs import Program, programs
from tests.actors.running.function_programs import FunctionProgram, function_programs
from tests.actors.running.loops.test_loops import add_loop
from tests.function_defs import func_attr, function_of, library_of
from tests.runs import assert_same_values
from tests.strategies import cpu

TWO = np.ones(2, np.float32)
SOFT = ConfigProto(allow_soft_placement=True)
TIMES = 12  # iterations; even, so that the values come back


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


def frames() -> GraphDef:
    """y = x negated in a loop of Enter and Exit."""
    builder = GraphBuilder()
    x, n = builder.placeholder("x", "float32", device=cpu(0)), builder.constant(np.int32(TIMES))
    y, _ = add_loop(builder, "loop", x, n, lambda value: builder.op("Neg", value)[0])
    builder.identity(y, name="y", device=cpu(0))
    return builder.graph_def()


def nested_frames() -> GraphDef:
    """y = x negated thrice by a loop within a loop."""
    builder = GraphBuilder()
    x, n = builder.placeholder("x", "float32", device=cpu(0)), builder.constant(np.int32(TIMES))

    def body(value: Tensor) -> Tensor:
        limit = builder.op("Enter", builder.constant(np.int32(3)), frame_name="outer", is_constant=True)[0]
        return add_loop(builder, "inner", value, limit, lambda inner: builder.op("Neg", inner)[0])[0]

    y, _ = add_loop(builder, "outer", x, n, body)
    builder.identity(y, name="y", device=cpu(0))
    return builder.graph_def()


def two_loops() -> GraphDef:
    """y = x / 2 negated, and again in another loop of the same device, summed."""
    builder = GraphBuilder()
    x, n = builder.placeholder("x", "float32", device=cpu(0)), builder.constant(np.int32(TIMES))
    half = builder.op("Mul", x, builder.constant(np.float32(0.5)))[0]
    ends = [add_loop(builder, name, half, n, lambda value: builder.op("Neg", value)[0])[0] for name in "ab"]
    builder.op("AddV2", *ends, name="y", device=cpu(0))
    return builder.graph_def()


def function_loop(products: int = 0) -> GraphDef:
    """y = x negated by the body of a While, which also multiplies it by ones so often."""
    condition, body, builder = GraphBuilder(), GraphBuilder(), GraphBuilder()
    for inner in (condition, body):
        inner.placeholder("i", "int32", ())
        inner.placeholder("v", "float32", (2,))
    condition.op("Less", "i:0", condition.constant(np.int32(TIMES)), name="less")
    body.op("AddV2", "i:0", body.constant(np.int32(1)), name="next")
    value = body.op("Reshape", "v:0", body.constant(np.array([2, 1], np.int32)))[0]
    for _ in range(products):
        value = body.op("MatMul", value, body.constant(np.ones((1, 1), np.float32)))[0]
    body.op("Neg", body.op("Reshape", value, body.constant(np.array([2], np.int32))), name="negated")
    x, zero = builder.placeholder("x", "float32", (2,)), builder.constant(np.int32(0))
    attrs = {"T": ["int32", "float32"], "cond": func_attr("condition"), "body": func_attr("body")}
    builder.identity(builder.op("While", [zero, x], attrs=attrs)[1], name="y")
    graph_def = builder.graph_def()
    functions = [
        function_of("condition", condition.graph_def(), ["i", "v"], ["less:0"]),
        function_of("body", body.graph_def(), ["i", "v"], ["next:0", "negated:0"]),
    ]
    graph_def.library.CopyFrom(library_of(*functions))
    return graph_def


def long_function_loop() -> GraphDef:
    """The same with a body that is too long for one instruction of its caller."""
    return function_loop(products=4)


def mapped_rows() -> GraphDef:
    """y = x, twice negated row by row."""
    body, builder = GraphBuilder(), GraphBuilder()
    body.op("Neg", body.op("Neg", body.placeholder("v", "float32", ())), name="negated")
    x = builder.placeholder("x", "float32", (2,))
    attrs = {
        "Targuments": ["float32"],
        "Tcaptured": [],
        "output_types": ["float32"],
        "output_shapes": [()],
        "f": func_attr("body"),
    }
    builder.op("MapDefun", [x], [], attrs=attrs, name="y")
    graph_def = builder.graph_def()
    graph_def.library.CopyFrom(library_of(function_of("body", body.graph_def(), ["v"], ["negated:0"])))
    return graph_def


LOOPS = pytest.mark.parametrize(
    "loop", [frames, nested_frames, two_loops, function_loop, long_function_loop, mapped_rows]
)
Loop = Callable[[], GraphDef]


async def warm(session: Session) -> None:
    """Runs until all kernels are known to be slow; their chunks are halved first."""
    for _ in range(8):
        (got,) = await session.run("y", {"x": TWO})
        assert got.tolist() == [1, 1]


@LOOPS
async def test_slow_kernels_of_loops_leave_the_thread_of_the_event_loop(gate: Gate, loop: Loop) -> None:
    async with open_session(loop(), **ALWAYS) as session:
        await warm(session)
        gate.threads.clear()
        await warm(session)
        assert gate.threads
        assert threading.get_ident() not in gate.threads


@LOOPS
async def test_fast_kernels_of_loops_stay_in_the_thread_of_the_event_loop(gate: Gate, loop: Loop) -> None:
    async with open_session(loop(), budget_s=60, thread_limit_s=60) as session:
        await warm(session)
        assert gate.threads == {threading.get_ident()}


@LOOPS
async def test_other_tasks_go_on_while_a_kernel_of_a_loop_is_in_a_thread(gate: Gate, loop: Loop) -> None:
    async with open_session(loop(), **ALWAYS) as session, trio.open_nursery() as nursery:
        await warm(session)
        entered = gate.close()
        nursery.start_soon(session.run, "y", {"x": TWO})
        await entered.wait()  # only an event loop that goes on gets here
        gate.opened.set()
    assert gate.opened.is_set()


@LOOPS
async def test_a_step_cancelled_in_a_thread_of_a_loop_ends_after_the_thread(gate: Gate, loop: Loop) -> None:
    async with open_session(loop(), **ALWAYS) as session:
        await warm(session)
        await check_cancelled_in_a_thread(gate, session, lambda: session.run("y", {"x": TWO}))
        await warm(session)


@LOOPS
async def test_an_error_in_a_thread_of_a_loop_names_the_node(gate: Gate, loop: Loop) -> None:
    """With the functions and calls that led there, as without a thread."""
    errors = []
    for settings_ in ({}, ALWAYS):
        async with open_session(loop(), **settings_) as session:
            await warm(session)
            gate.fails = True
            with pytest.raises(InvalidArgumentError, match="as asked") as caught:
                await session.run("y", {"x": TWO})
            gate.fails = False
            await warm(session)
        errors.append(caught.value)
    inline, in_thread = errors
    assert in_thread.op == "Neg"
    assert [in_thread.node, in_thread.device, str(in_thread)] == [inline.node, inline.device, str(inline)]


@settings(max_examples=15)
@given(programs())
async def test_programs_of_loops_compute_the_same_in_threads(case: Program) -> None:
    """Over one to four devices; a dead fetch is an error both ways."""
    results = []
    for settings_, steps in (({}, 1), (ALWAYS, 6)):
        async with open_session(case.graph_def, "cpu:4", **settings_) as session:
            for _ in range(steps):
                try:
                    results.append(await session.run(list(case.fetches), case.feeds))
                except InvalidArgumentError as error:
                    results.append([np.asarray(error.message)])
    for other in results[1:]:
        assert_same_values(other, results[0])


@settings(max_examples=15)
@given(function_programs(conflicting=False))
async def test_programs_of_functions_compute_the_same_in_threads(case: FunctionProgram) -> None:
    """Over one to four devices, with variables that the steps change."""
    results: list[list[Array]] = [[], []]
    for values, settings_ in zip(results, ({}, ALWAYS), strict=True):
        async with open_session(case.graph_def, "cpu:4", config=SOFT, **settings_) as session:
            await session.run([], targets=[case.init])
            for _ in range(5):
                values += await session.run(case.fetches, case.feeds)
    assert_same_values(*results)
