"""Calls nested deeper than Python's recursion limit, and calls in large numbers, which yield to other tasks."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

import numpy as np
import pytest
import trio

from partita.actors import Session, open_session
from partita.actors.running.device_actor import DeviceActor
from partita.actors.running.step import Step
from partita.actors.sessions import preparation, session as session_module
from partita.errors import ResourceExhaustedError
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
from partita.graph.protos import GraphDef
from tests.actors.call_chains import WAYS, chain, frames_left
from tests.function_defs import func_attr, function_of, library_of
from tests.runs import HARD_PLACEMENT, cpus
from tests.strategies import cpu

DEEP = 400
FRAMES = 390  # fewer than one for each of so many calls
X = {"x": np.float32(0)}


async def warm_up(way: str) -> None:
    """Imports modules that are imported on first use, which needs stack frames."""
    async with open_session(chain(3, way)) as session:
        await session.run("y", X)


@pytest.mark.parametrize(("way", "adds"), [*((way, True) for way in WAYS), ("own", False)])
async def test_calls_are_nested_deeper_than_python_nests_its_own(way: str, adds: bool) -> None:
    """With and without nodes that run after the inner call."""
    await warm_up(way)
    async with open_session(chain(DEEP, way, adds=adds)) as session:
        with frames_left(FRAMES):
            for _ in range(2):
                assert await session.run("y", X) == [DEEP if adds else 1]


async def test_calls_are_nested_over_two_devices() -> None:
    """Functions alternate between two devices."""
    await warm_up("own")
    graph_def = chain(DEEP)
    for number, function in enumerate(graph_def.library.function):
        for node in function.node_def:
            node.device = cpu(number % 2)
    async with open_session(graph_def, cpus(2), config=HARD_PLACEMENT) as session:
        with frames_left(FRAMES):
            assert await session.run("y", X) == [DEEP]


def nested_loops(depth: int) -> GraphDef:
    """Functions of x and a count: x + 1 after a loop over the next function, which runs it once."""
    b = GraphBuilder()
    b.placeholder("x", "float32", ())
    less = b.op("Less", b.placeholder("k", "int32", ()), b.constant(1))
    cond = function_of("cond", b.graph_def(), ["x:0", "k:0"], [less[0].name])
    functions = [cond]
    for number in reversed(range(depth)):
        b = GraphBuilder()
        x, k = b.placeholder("x", "float32", ()), b.placeholder("k", "int32", ())
        if number + 1 < depth:
            x = _loop(b, f"f{number + 1}", x)
        results = [b.op("AddV2", x, b.constant(1.0))[0].name, b.op("AddV2", k, b.constant(1))[0].name]
        functions.append(function_of(f"f{number}", b.graph_def(), ["x:0", "k:0"], results))
    b = GraphBuilder()
    b.identity(_loop(b, "f0", b.placeholder("x", "float32", ())), name="y")
    graph_def = b.graph_def()
    graph_def.library.CopyFrom(library_of(*functions))
    return graph_def


def _loop(b: GraphBuilder, body: str, x: Tensor) -> Tensor:
    attrs = {"T": ["float32", "int32"], "cond": func_attr("cond"), "body": func_attr(body)}
    return b.op("While", [x, b.constant(0)], attrs=attrs)[0]


async def test_loops_are_nested_in_functions_as_deep() -> None:
    async with open_session(nested_loops(3)) as session:
        assert await session.run("y", X) == [3]
    async with open_session(nested_loops(DEEP)) as session:
        with frames_left(FRAMES):
            assert await session.run("y", X) == [DEEP]


async def test_gradients_of_nested_calls_are_found() -> None:
    """Each SymbolicGradient calls the next."""
    graph_def = chain(DEEP)
    call = graph_def.node[1]
    call.op = "SymbolicGradient"
    call.input.append("x")
    call.attr["Tin"].CopyFrom(encode([DataType.FLOAT, DataType.FLOAT], "list(type)"))
    async with open_session(graph_def) as session:
        with frames_left(FRAMES + 100):
            assert await session.run("y", {"x": np.float32(3)}) == [3]


async def test_only_what_may_call_itself_is_limited_in_depth() -> None:
    """A recursion through a long chain of functions raises an error; a longer chain without recursion does not."""
    graph_def = chain(20)
    last = graph_def.library.function[-1]
    last.CopyFrom(graph_def.library.function[-2])
    last.signature.name = "f19"
    last.node_def[0].attr["f"].CopyFrom(func_attr("f0"))
    async with open_session(graph_def) as session:
        with pytest.raises(ResourceExhaustedError, match="calls deep; let its recursion end earlier"):
            await session.run("y", X)


@pytest.mark.parametrize(("way", "beside"), [*((way, False) for way in WAYS), ("own", True)])
async def test_many_calls_leave_others_their_turn_and_can_be_cancelled(way: str, beside: bool) -> None:
    """Each of 25 functions calls the next twice: 2**25 calls, too many to wait for."""

    async def cancel_after(turns: int, session: Session) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.run, "y", X)
            while not session.statistics().steps_running:
                await trio.lowlevel.checkpoint()
            for _ in range(turns):
                await trio.lowlevel.checkpoint()
            assert session.statistics().steps_running == 1
            nursery.cancel_scope.cancel()

    graph_def = chain(25, way, calls=2, beside=beside)
    graph_def.node.append(chain(25).node[1])
    graph_def.node[-1].name = "leaf"
    graph_def.node[-1].attr["f"].CopyFrom(func_attr("f24"))
    async with open_session(graph_def, budget_s=0) as session:
        for turns in (1, 10, 100):
            await cancel_after(turns, session)
            assert session.statistics().steps_running == 0
        assert await session.run("leaf", X) == [1]


async def test_a_tree_of_calls_is_worked_off_as_a_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of running calls grows with depth and width of the tree, not with its leaves."""
    most = 0
    begin = DeviceActor.begin

    def counting(actor: DeviceActor, step: Step, start: Callable[[], None]) -> None:
        nonlocal most
        begin(actor, step, start)
        most = max(most, len(step.calls))

    monkeypatch.setattr(DeviceActor, "begin", counting)
    async with open_session(chain(14, calls=2, beside=True)) as session:
        assert await session.run("y", X) == [2**14 - 1]
    assert 0 < most <= 4 * 14


async def test_functions_of_long_kernels_leave_others_their_turn_between_them() -> None:
    """Once they were slow; with a budget of zero every kernel is."""
    b = GraphBuilder()
    value = x = b.placeholder("x", "float32", (2, 2))
    for _ in range(8):
        value = b.op("MatMul", value, x)[0]
    function = function_of("f", b.graph_def(), ["x:0"], [value.name])
    b = GraphBuilder()
    attrs = {"Tin": ["float32"], "Tout": ["float32"], "f": func_attr("f")}
    b.op("StatefulPartitionedCall", [b.placeholder("x", "float32", (2, 2))], name="y", attrs=attrs)
    graph_def = b.graph_def()
    graph_def.library.CopyFrom(library_of(function))
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with open_session(graph_def, budget_s=0, thread_limit_s=1e9) as session, trio.open_nursery() as nursery:
        nursery.start_soon(take_turns)
        for _ in range(10):
            before = turns
            actual = await session.run("y", {"x": np.eye(2, dtype=np.float32)})
            np.testing.assert_array_equal(actual[0], np.eye(2))
        assert turns - before >= 8
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("depth", [5, 100])
async def test_functions_count_when_a_request_is_large(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small graph with many nodes in functions is prepared in a thread, so that the event loop is not blocked."""
    threads: list[int] = []
    prepare = preparation.prepare

    def watched(*arguments: Any) -> Any:
        threads.append(get_ident())
        return prepare(*arguments)

    monkeypatch.setattr(session_module, "prepare", watched)
    monkeypatch.setattr(preparation, "_LARGE", 100)
    async with open_session(chain(depth), "cpu:1") as session:
        assert await session.run("y", X) == [depth]
    assert [thread == get_ident() for thread in threads] == [depth == 5]
