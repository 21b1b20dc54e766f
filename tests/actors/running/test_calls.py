"""Calls of functions: values on any devices, loops, maps, gradients, remote calls, cancellation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
import trio

from partita.actors import Session, open_session
from partita.errors import CancelledError, InternalError, InvalidArgumentError, PartitaError, ResourceExhaustedError
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array, DataType, Shape
from partita.graph.gradients import add_symbolic_gradients
from partita.graph.protos import FunctionDef, GraphDef, NameAttrList
from tests.function_defs import function_of, library_of
from tests.runs import HARD_PLACEMENT, cpus
from tests.strategies import cpu

Clock = Literal["real", "virtual"]


def named(name: str) -> NameAttrList:
    return NameAttrList(name=name)


def add_on(devices: list[str]) -> FunctionDef:
    """x + len(devices): one is added on each of `devices`."""
    b = GraphBuilder()
    value = b.placeholder("x", "float32", ())
    for number, device in enumerate(devices):
        value = b.op("AddV2", value, b.constant(1.0, device=device), name=f"add{number}", device=device)[0]
    return function_of("add_on", b.graph_def(), ["x:0"], [value.name])


def below(limit: float) -> FunctionDef:
    b = GraphBuilder()
    less = b.op("Less", b.placeholder("x", "float32", ()), b.constant(limit))
    return function_of("below", b.graph_def(), ["x:0"], [less[0].name])


async def run(graph_def: GraphDef, x: float, devices: int = 1, *, soft: bool = False, **settings: Any) -> Any:
    config = None if soft else HARD_PLACEMENT
    async with open_session(graph_def, cpus(devices), config=config, **settings) as session:
        first = await session.run("y:0", {"x": np.float32(x)})
        second = await session.run("y:0", {"x": np.float32(x)})
        np.testing.assert_array_equal(first, second)
        return first[0]


def call(*functions: FunctionDef, name: str = "add_on") -> GraphDef:
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=cpu(0))
    attrs = {"Tin": ["float32"], "Tout": ["float32"], "f": named(name)}
    b.op("StatefulPartitionedCall", [x], name="y", device=cpu(0), attrs=attrs)
    graph_def = b.graph_def()
    graph_def.library.CopyFrom(library_of(*functions))
    return graph_def


@pytest.mark.parametrize("devices", [[""], ["", ""], [cpu(1)], [cpu(1), cpu(2), ""], [cpu(0), cpu(2)] * 60])
async def test_a_call_gives_the_same_wherever_its_nodes_are(devices: list[str]) -> None:
    """On the caller's device, another device, several devices, and alternating between two."""
    assert await run(call(add_on(devices)), 1.0, devices=3) == 1.0 + len(devices)


async def test_a_loop_calls_its_functions_until_the_condition_is_false() -> None:
    """Short functions run in turns, functions on several devices by messages."""
    for devices in ([""], [cpu(1), ""]):
        b = GraphBuilder()
        x = b.placeholder("x", "float32", (), device=cpu(0))
        attrs = {"T": ["float32"], "cond": named("below"), "body": named("add_on")}
        b.op("While", [x], name="y", device=cpu(0), attrs=attrs)
        graph_def = b.graph_def()
        graph_def.library.CopyFrom(library_of(below(100.0), add_on(devices)))
        assert await run(graph_def, 0.5, devices=2, budget_s=0) == 100.5


def recursive(limit: float) -> list[FunctionDef]:
    """down(x) = x if x < limit else down(x - 1)."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    attrs = {"Tin": ["float32"], "Tout": ["float32"], "then_branch": named("stop"), "else_branch": named("again")}
    ended = b.op("If", b.op("Less", x, b.constant(limit))[0], [x], name="if", attrs=attrs, Tcond="bool")
    down = function_of("down", b.graph_def(), ["x:0"], [ended[0].name])
    b = GraphBuilder()
    stopped = b.identity(b.placeholder("x", "float32", ()))
    stop = function_of("stop", b.graph_def(), ["x:0"], [stopped.name])
    b = GraphBuilder()
    less = b.op("Sub", b.placeholder("x", "float32", ()), b.constant(1.0))
    called = b.op(
        "StatefulPartitionedCall", [less], attrs={"Tin": ["float32"], "Tout": ["float32"], "f": named("down")}
    )
    again = function_of("again", b.graph_def(), ["x:0"], [called[0].name])
    return [down, stop, again]


def counted_down() -> FunctionDef:
    """The fraction of x, which takes as many calls as x is large, and then one more on each of devices 2, 3 and 2."""
    b = GraphBuilder()
    attrs = {"Tin": ["float32"], "Tout": ["float32"], "f": named("down")}
    value = b.op("StatefulPartitionedCall", [b.placeholder("x", "float32", ())], attrs=attrs, device=cpu(2))[0]
    for number in (2, 3, 2):
        value = b.op("AddV2", value, b.constant(1.0, device=cpu(number)), device=cpu(number))[0]
    return function_of("counted_down", b.graph_def(), ["x:0"], [value.name])


@pytest.mark.parametrize("clock", ["real", "virtual"])
async def test_calls_of_one_function_from_several_devices_keep_their_tensors_apart(clock: Clock) -> None:
    """Calls on two devices of a function over two others, of which one overtakes the other."""
    b = GraphBuilder()
    for function in (*recursive(1.0), counted_down()):
        b.function(function)
    fetches = []
    for number in range(2):
        x = b.placeholder(f"x{number}", "float32", (), device=cpu(number))
        attrs = {"Tin": ["float32"], "Tout": ["float32"], "f": named("counted_down")}
        fetches.append(b.op("PartitionedCall", [x], attrs=attrs, device=cpu(number))[0].name)
    async with open_session(b.graph_def(), cpus(4), config=HARD_PLACEMENT, clock=clock) as session:
        assert await session.run(fetches, {"x0": 9.5, "x1": 0.25}) == [3.5, 3.25]
        assert await session.run(fetches, {"x0": 0.25, "x1": 9.5}) == [3.25, 3.5]


async def test_a_function_may_call_itself_as_long_as_it_ends() -> None:
    assert await run(call(*recursive(1.0), name="down"), 20.5) == 0.5


async def test_recursion_without_an_end_is_stopped() -> None:
    """The error names the function and says what to do; the session can be used afterwards."""
    async with open_session(call(*recursive(-1e9), name="down")) as session:
        for _ in range(2):
            with pytest.raises(ResourceExhaustedError, match="calls deep; let its recursion end earlier"):
                await session.run("y:0", {"x": np.float32(0)})


async def test_symbolic_gradients_run() -> None:
    """d (tanh(x) * x) / dx by SymbolicGradient nodes."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=cpu(0))
    product = b.op("Mul", b.op("Tanh", x, name="t", device=cpu(0)), x, name="p", device=cpu(0))
    b.op("StopGradient", product, name="end", device=cpu(0))
    b.constant(1.0, name="dy", device=cpu(0))
    graph = b.graph()
    ids = {node.name: (node.id, 0) for node in graph.op_nodes()}
    ((gradient, port),) = add_symbolic_gradients(graph, [ids["end"]], [ids["x"]], [ids["dy"]])
    graph_def = graph.to_graph_def()
    y = graph_def.node.add(name="y", op="Identity", input=[f"{graph.node(gradient).name}:{port}"])
    y.attr["T"].CopyFrom(encode(DataType.FLOAT, "type"))
    for value in (0.0, 0.5, -2.0):
        expected = np.tanh(value) + value * (1 - np.tanh(value) ** 2)
        np.testing.assert_allclose(await run(graph_def, value, soft=True), expected, rtol=1e-5)


async def test_values_of_other_types_are_refused_when_the_function_is_called() -> None:
    """The branch that is not taken is not checked, as in TensorFlow."""
    b = GraphBuilder()
    other = function_of("ints", *_one_op(b, "Neg", "int32"))
    for predicate, fine in ((True, True), (False, False)):
        b = GraphBuilder()
        x = b.placeholder("x", "float32", (), device=cpu(0))
        attrs = {"Tin": ["float32"], "Tout": ["float32"], "then_branch": named("add_on"), "else_branch": named("ints")}
        b.op("If", b.constant(np.bool_(predicate), device=cpu(0)), [x], name="y", device=cpu(0), attrs=attrs)
        graph_def = b.graph_def()
        graph_def.library.CopyFrom(library_of(add_on([""]), other))
        if fine:
            assert await run(graph_def, 1.0) == 2.0
        else:
            with pytest.raises(InvalidArgumentError, match=r"Type mismatch: actual float vs\. expect int32"):
                await run(graph_def, 1.0)


def _one_op(b: GraphBuilder, op: str, dtype: str) -> tuple[GraphDef, list[str], list[str]]:
    outputs = b.op(op, b.placeholder("x", dtype, ()))
    return b.graph_def(), ["x:0"], [outputs[0].name]


async def test_an_error_inside_names_the_node_inside() -> None:
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    checked = b.op("CheckNumerics", x, name="check", message="bad")
    graph_def = call(function_of("add_on", b.graph_def(), ["x:0"], [checked[0].name]))
    with pytest.raises(PartitaError) as caught:
        await run(graph_def, float("inf"))
    assert (caught.value.node, caught.value.op) == ("check", "CheckNumerics")


async def test_a_case_out_of_range_takes_the_last_branch() -> None:
    """As in TensorFlow."""
    branches = []
    for number in range(3):
        b = GraphBuilder()
        value = b.op("AddV2", b.placeholder("x", "float32", ()), b.constant(float(number)))
        branches.append(function_of(f"branch{number}", b.graph_def(), ["x:0"], [value[0].name]))
    for index, expected in ((0, 0.0), (1, 1.0), (2, 2.0), (7, 2.0), (-1, 2.0)):
        b = GraphBuilder()
        x = b.placeholder("x", "float32", (), device=cpu(0))
        attrs = {"Tin": ["float32"], "Tout": ["float32"], "branches": [named(f"branch{n}") for n in range(3)]}
        chosen = b.constant(np.int32(index), device=cpu(0))
        b.op("Case", chosen, [x], name="y", device=cpu(0), attrs=attrs)
        graph_def = b.graph_def()
        graph_def.library.CopyFrom(library_of(*branches))
        assert await run(graph_def, 0.0) == expected


def map_over(rows: Array, promised: Sequence[Shape]) -> GraphDef:
    """y = rows * x, row by row."""
    b = GraphBuilder()
    product = b.op("Mul", b.placeholder("x", "float32", None), b.placeholder("c", "float32", ()))
    function = function_of("times", b.graph_def(), ["x:0", "c:0"], [product[0].name])
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=cpu(0))
    attrs = {
        "Targuments": ["float32"],
        "Tcaptured": ["float32"],
        "output_types": ["float32"] * len(promised),
        "output_shapes": list(promised),
        "f": named("times"),
    }
    b.op("MapDefun", [b.constant(rows, device=cpu(0))], [x], name="y", device=cpu(0), attrs=attrs)
    graph_def = b.graph_def()
    graph_def.library.CopyFrom(library_of(function))
    return graph_def


async def test_a_map_calls_once_for_every_slice() -> None:
    """Results are stacked; captured inputs are passed to every call."""
    np.testing.assert_array_equal(await run(map_over(np.arange(4, dtype=np.float32), [()]), 3.0), [0, 3, 6, 9])


async def test_a_map_without_rows_gives_what_is_promised_without_rows() -> None:
    """If the promised shape is not fully known there is no output, as in TensorFlow."""
    empty = np.zeros((0, 2), np.float32)
    actual = await run(map_over(empty, [(2,)]), 3.0)
    assert (actual.shape, actual.dtype) == ((0, 2), np.float32)
    for open_shape in ((None,), None):
        with pytest.raises(InternalError, match="Missing 0-th output"):
            await run(map_over(empty, [open_shape]), 3.0)


async def test_a_map_holds_its_promise() -> None:
    """A result of another shape than in `output_shapes` is an error."""
    rows = np.ones((3, 2), np.float32)
    for fine in ((2,), (None,), None):
        assert (await run(map_over(rows, [fine]), 3.0)).shape == (3, 2)
    for wrong, text in (((5,), r"\[5\]"), ((), r"\[\]"), ((2, 2), r"\[2,2\]")):
        with pytest.raises(InvalidArgumentError, match=rf"function retval shape, \[2\], and expected .*, {text}\."):
            await run(map_over(rows, [wrong]), 3.0)


async def test_a_remote_call_runs_on_the_device_it_names() -> None:
    """A device that does not exist is named in the error."""
    for target, fine in ((cpu(1), True), ("/device:CPU:1", True), ("/device:CPU:9", False)):
        b = GraphBuilder()
        x = b.placeholder("x", "float32", (), device=cpu(0))
        attrs = {"Tin": ["float32"], "Tout": ["float32"], "f": named("add_on")}
        b.op(
            "RemoteCall",
            b.constant(target.encode(), "string", device=cpu(0)),
            [x],
            name="y",
            device=cpu(0),
            attrs=attrs,
        )
        graph_def = b.graph_def()
        graph_def.library.CopyFrom(library_of(add_on([""])))
        if fine:
            assert await run(graph_def, 1.0, devices=2) == 2.0
        else:
            with pytest.raises(InternalError, match="CPU:9"):
                await run(graph_def, 1.0, devices=2)


async def test_a_cancelled_call_leaves_nothing_and_the_next_is_right() -> None:
    """An endless loop over two devices can be cancelled at any time."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=cpu(0))
    attrs = {"T": ["float32"], "cond": named("below"), "body": named("add_on")}
    b.op("While", [x], name="y", device=cpu(0), attrs=attrs)
    graph_def = b.graph_def()
    graph_def.library.CopyFrom(library_of(below(float("inf")), add_on([cpu(1), ""])))
    async with open_session(graph_def, cpus(2), config=HARD_PLACEMENT, budget_s=0) as session:
        for _ in range(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.run, "y:0", {"x": np.float32(0)})
                for _ in range(20):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            assert session.statistics().steps_running == 0
        assert (await session.run("y:0", {"x": np.float32("inf")}))[0] == np.inf


async def test_closing_a_session_ends_its_calls() -> None:
    async def wait(session: Session) -> None:
        with pytest.raises((CancelledError, ResourceExhaustedError)):
            await session.run("y:0", {"x": np.float32(0)})

    graph_def = call(*recursive(-1e9), name="down")
    async with open_session(graph_def, budget_s=0) as session, trio.open_nursery() as nursery:
        nursery.start_soon(wait, session)
        await trio.lowlevel.checkpoint()
        session.close()
