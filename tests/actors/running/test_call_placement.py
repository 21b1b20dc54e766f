"""Nodes of bodies go to the devices they request, resources to those of their handles, others to the caller's."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import product
from typing import Any, cast

import numpy as np
import pytest

from partita.actors import open_session
from partita.actors.running.callee import Callees
from partita.actors.running.lazy_callee import DevicesOfResources
from partita.devices.kernels.carried import carrying
from partita.devices.state import ResourceHandle, handle_array, handle_of
from partita.errors import InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
from partita.graph.protos import AttrValue, ConfigProto, FunctionDef, GraphDef, NameAttrList
from tests.function_defs import LOWER, function_of
from tests.runs import HARD_PLACEMENT
from tests.strategies import cpu

INLINED = ConfigProto()
INLINED.graph_options.optimizer_options.do_function_inlining = True
CALL = "StatefulPartitionedCall"
ARGUMENT_TYPES = (DataType.RESOURCE, DataType.FLOAT, DataType.RESOURCE)
ELSEWHERE = cpu(9)


def named(name: str) -> NameAttrList:
    return NameAttrList(name=name)


def plus(name: str, amount: float, device: str = "") -> FunctionDef:
    """x + amount."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    outputs = b.op("AddV2", x, b.constant(amount, device=device), device=device)
    return function_of(name, b.graph_def(), ["x:0"], [outputs[0].name])


def below(limit: float) -> FunctionDef:
    b = GraphBuilder()
    less = b.op("Less", b.placeholder("x", "float32", ()), b.constant(limit))
    return function_of("below", b.graph_def(), ["x:0"], [less[0].name])


def body(build: Callable[[GraphBuilder, Tensor], Tensor], *functions: FunctionDef) -> list[FunctionDef]:
    """The function "f" of x, whose result is made by `build`, and the functions it calls."""
    b = GraphBuilder()
    for function in functions:
        b.function(function)
    result = build(b, b.placeholder("x", "float32", ()))
    return [*functions, function_of("f", b.graph_def(), ["x:0"], [result.name])]


def calling(functions: list[FunctionDef], device: int) -> GraphDef:
    """y = f(x), called from `device`."""
    b = GraphBuilder()
    for function in functions:
        b.function(function)
    x = b.placeholder("x", "float32", (), device=cpu(0))
    b.op(CALL, [x], name="y", device=cpu(device), attrs={"Tin": ["float32"], "Tout": ["float32"], "f": named("f")})
    return b.graph_def()


def branches(op: str, device: str) -> Callable[[GraphBuilder, Tensor], Tensor]:
    """A lowered conditional on a device, x + 1 or x + 2."""

    def build(b: GraphBuilder, x: Tensor) -> Tensor:
        chosen = b.op("Less", x, b.constant(0.0)) if op == "If" else b.op("Cast", x, SrcT="float32", DstT="int32")
        attrs: dict[str, Any] = {"Tin": ["float32"], "Tout": ["float32"], LOWER: AttrValue(b=True)}
        two = [named("one"), named("two")]
        attrs |= {"branches": two} if op == "Case" else {"then_branch": two[0], "else_branch": two[1]}
        return b.op(op, chosen[0], [x], device=device, attrs=attrs)[0]

    return build


def loop(device: str) -> Callable[[GraphBuilder, Tensor], Tensor]:
    """A lowered loop on a device that adds 1 as long as x is below 5."""
    attrs = {"T": ["float32"], "cond": named("below"), "body": named("one"), LOWER: AttrValue(b=True)}
    return lambda b, x: b.op("While", [x], device=device, attrs=attrs)[0]


async def fetched(graph_def: GraphDef, config: ConfigProto = HARD_PLACEMENT, **feeds: float) -> Any:
    async with open_session(graph_def, "cpu:4", config=config) as session:
        return (await session.run("y:0", {name: np.float32(value) for name, value in feeds.items()}))[0]


@pytest.mark.parametrize("device", ["/device:CPU:1", cpu(2), ""])
@pytest.mark.parametrize("inner", ["", cpu(3)])
async def test_lowered_control_flow_in_a_body_may_be_elsewhere_than_its_caller(device: str, inner: str) -> None:
    """The caller's device is only preferred: colocation with a node elsewhere wins."""
    one, two = plus("one", 1.0, inner), plus("two", 2.0, inner)
    for op, values in (("If", {-1.0: 0.0, 3.0: 5.0}), ("Case", {0.0: 1.0, 1.0: 3.0, 7.0: 9.0})):
        for x, expected in values.items():
            assert await fetched(calling(body(branches(op, device), one, two), device=0), x=x) == expected
    assert await fetched(calling(body(loop(device), one, below(5.0)), device=3), x=0.5) == 5.5


async def test_a_map_in_a_body_may_be_elsewhere_than_its_caller() -> None:
    attrs = {"Targuments": ["float32"], "Tcaptured": [], "output_types": ["float32"], "output_shapes": [()]}

    def build(b: GraphBuilder, x: Tensor) -> Tensor:
        rows = b.op("Pack", [x, x], axis=0, device=cpu(2))
        outputs = b.op("MapDefun", [rows[0]], [], device=cpu(1), attrs=attrs | {"f": named("one")})
        return b.op("Sum", outputs[0], b.constant(np.int32(0)))[0]

    assert await fetched(calling(body(build, plus("one", 1.0, cpu(3))), device=0), x=2.0) == 6.0


# Resources


def add_and_read() -> FunctionDef:
    """Adds x to the variable of its handle and reads it; no node requests a device."""
    b = GraphBuilder()
    handle, x = b.placeholder("h", "resource", ()), b.placeholder("x", "float32", ())
    added = b.op("AssignAddVariableOp", handle, x, dtype="float32")
    read = b.op("ReadVariableOp", handle, dtype="float32", control=[added])
    return function_of("f", b.graph_def(), ["h:0", "x:0"], [read[0].name], [added.name])


def passed_through() -> FunctionDef:
    """f(h, x) in a call of its own."""
    b = GraphBuilder()
    b.function(add_and_read())
    handle, x = b.placeholder("h", "resource", ()), b.placeholder("x", "float32", ())
    attrs = {"Tin": ["resource", "float32"], "Tout": ["float32"], "f": named("f")}
    call = b.op(CALL, [handle, x], device=cpu(1), attrs=attrs)
    return function_of("outer", b.graph_def(), ["h:0", "x:0"], [call[0].name], [call.name])


def with_variables(count: int, *functions: FunctionDef) -> tuple[GraphBuilder, list[Tensor]]:
    """Variables v0, v1, ... of value 0, each on the CPU of its number, and a target "init"."""
    b = GraphBuilder()
    for function in functions:
        b.function(function)
    handles = [
        b.op("VarHandleOp", name=f"v{k}", dtype="float32", shape=(), shared_name=f"v{k}".encode(), device=cpu(k))[0]
        for k in range(count)
    ]
    stored = [b.op("AssignVariableOp", handle, b.constant(0.0), dtype="float32") for handle in handles]
    b.group(*stored, name="init")
    return b, handles


@pytest.mark.parametrize("config", [HARD_PLACEMENT, INLINED], ids=["called", "inlined"])
@pytest.mark.parametrize("name", ["f", "outer"])
async def test_a_body_uses_variables_of_any_device(name: str, config: ConfigProto) -> None:
    """One function with variables of three devices is compiled for each, and gives right values in later steps too."""
    b, handles = with_variables(3, add_and_read(), passed_through())
    x = b.placeholder("x", "float32", (), device=cpu(0))
    attrs = {"Tin": ["resource", "float32"], "Tout": ["float32"], "f": named(name)}
    for k, handle in enumerate(handles):
        b.op(CALL, [handle, x], name=f"y{k}", device=cpu(3), attrs=attrs)
    async with open_session(b.graph_def(), "cpu:4", config=config) as session:
        await session.run([], targets="init")
        for step in range(1, 4):
            assert await session.run(["y0", "y1", "y2"], {"x": np.float32(2)}) == [2 * step] * 3


async def test_the_run_decides_which_variable_a_call_is_given() -> None:
    """The handle comes from a conditional; the function is compiled when it is known."""
    choose = []
    for k in range(2):
        c = GraphBuilder()
        handles = [c.placeholder(f"h{i}", "resource", ()) for i in range(2)]
        choose.append(function_of(f"pick{k}", c.graph_def(), ["h0:0", "h1:0"], [handles[k].name]))
    b, (v0, _) = with_variables(2, add_and_read(), *choose)
    same = b.op("VarHandleOp", name="w", dtype="float32", shape=(), shared_name=b"w", device=cpu(0))[0]
    b.op("AssignVariableOp", same, b.constant(10.0), dtype="float32", name="init_w")
    first = b.op("Placeholder", name="first", dtype="bool", shape=(), device=cpu(0))[0]
    attrs = {
        "Tin": ["resource"] * 2,
        "Tout": ["resource"],
        "then_branch": named("pick0"),
        "else_branch": named("pick1"),
    }
    handle = b.op("If", first, [v0, same], attrs=attrs)[0]
    attrs = {"Tin": ["resource", "float32"], "Tout": ["float32"], "f": named("f")}
    b.op(CALL, [handle, b.constant(1.0)], name="y", device=cpu(3), attrs=attrs)
    async with open_session(b.graph_def(), "cpu:4", config=HARD_PLACEMENT) as session:
        await session.run([], targets=["init", "init_w"])
        for is_first, expected in ((True, 1), (False, 11), (True, 2), (False, 12)):
            assert await session.run("y", {"first": np.bool_(is_first)}) == [expected]


@pytest.mark.parametrize("config", [HARD_PLACEMENT, INLINED], ids=["called", "inlined"])
async def test_what_reads_a_returned_resource_is_where_it_lives(config: ConfigProto) -> None:
    """A returned argument keeps its device; a variable made inside is on the device that the body requests."""
    c = GraphBuilder()
    handle = c.placeholder("h", "resource", ())
    inside = c.op("VarHandleOp", dtype="float32", shape=(), shared_name=b"inside", device=cpu(3))[0]
    stored = c.op("AssignVariableOp", inside, c.constant(7.0), dtype="float32")
    outputs = c.op("Identity", inside, control=[stored])
    same = c.identity(handle)
    give = function_of("give", c.graph_def(), ["h:0"], [same.name, outputs[0].name], [stored.name])
    b, handles = with_variables(3, give)
    attrs = {"Tin": ["resource"], "Tout": ["resource"] * 2, "f": named("give")}
    given = b.op(CALL, [handles[2]], device=cpu(0), attrs=attrs)
    for port, name in enumerate(("old", "new")):
        b.op("ReadVariableOp", given[port], name=name, dtype="float32")
    async with open_session(b.graph_def(), "cpu:4", config=config) as session:
        await session.run([], targets="init")
        assert await session.run(["old", "new"]) == [0, 7]
        device = {node.name: node.assigned_device for node in session.graph.op_nodes()}
        assert (device["old"], device["new"]) == (cpu(2), cpu(3))


async def test_a_body_that_a_loop_ties_together_still_gives_each_handle_from_its_own_device() -> None:
    """The devices are read from the lowered body: variables of one loop may be on several devices."""
    handles = ["h0:0", "h1:0"]
    c = GraphBuilder()
    x, *given = c.placeholder("x", "float32", ()), *(c.placeholder(f"h{k}", "resource", ()) for k in range(2))
    less = c.op("Less", x, c.constant(5.0))
    cond = function_of("cond", c.graph_def(), ["x:0", *handles], [less[0].name])
    c = GraphBuilder()
    x, *given = c.placeholder("x", "float32", ()), *(c.placeholder(f"h{k}", "resource", ()) for k in range(2))
    added = [c.op("AssignAddVariableOp", handle, x, dtype="float32") for handle in given]
    more = c.op("AddV2", x, c.constant(1.0), control=added)
    step = function_of("step", c.graph_def(), ["x:0", *handles], [more[0].name, *handles])
    c = GraphBuilder()
    c.function(cond)
    c.function(step)
    x, *given = c.placeholder("x", "float32", ()), *(c.placeholder(f"h{k}", "resource", ()) for k in range(2))
    attrs = {"T": ["float32", "resource", "resource"], "cond": named("cond"), "body": named("step")}
    outputs = c.op("While", [x, *given], attrs=attrs | {LOWER: AttrValue(b=True)})
    function = function_of("f", c.graph_def(), ["x:0", *handles], [outputs[0].name, outputs[1].name, outputs[2].name])
    b, variables = with_variables(2, cond, step, function)
    attrs = {"Tin": ["float32", "resource", "resource"], "Tout": ["float32", "resource", "resource"], "f": named("f")}
    given_back = b.op(CALL, [b.constant(3.0), *variables], device=cpu(2), attrs=attrs)
    for k in range(2):
        b.op("ReadVariableOp", given_back[k + 1], name=f"r{k}", dtype="float32")
    async with open_session(b.graph_def(), "cpu:3", config=HARD_PLACEMENT) as session:
        await session.run([], targets="init")
        assert await session.run(["r0", "r1"]) == [7, 7]


def making() -> FunctionDef:
    """Makes the variable "inside" on CPU 2, as its node requests, and returns its value."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    handle = b.op("VarHandleOp", dtype="float32", shape=(), shared_name=b"inside", device=cpu(2))[0]
    stored = b.op("AssignVariableOp", handle, x, dtype="float32")
    read = b.op("ReadVariableOp", handle, dtype="float32", control=[stored])
    return function_of("make", b.graph_def(), ["x:0"], [read[0].name])


@pytest.mark.parametrize(("op", "home"), [(CALL, 2), ("If", 1), ("make", 1), ("RemoteCall", 3), ("MapDefun", 1)])
async def test_only_partitioned_calls_run_over_several_devices(op: str, home: int) -> None:
    """As in TensorFlow, all other calls run on one device and make their variables there."""
    b = GraphBuilder()
    b.function(making())
    x = b.constant(4.0, device=cpu(0))
    types = {"Tin": ["float32"], "Tout": ["float32"]}
    keywords: dict[str, Any] = {"name": "y", "device": cpu(1)}
    if op == "If":
        true = b.constant(np.bool_(True), device=cpu(0))
        b.op(op, true, [x], attrs=types | {"then_branch": named("make"), "else_branch": named("make")}, **keywords)
    elif op == "RemoteCall":
        b.op(op, b.constant(b"/device:CPU:3", "string"), [x], attrs=types | {"f": named("make")}, **keywords)
    elif op == "MapDefun":
        rows = b.constant(np.array([4.0], np.float32))
        attrs = {"Targuments": ["float32"], "Tcaptured": [], "output_types": ["float32"], "output_shapes": [()]}
        b.op(op, [rows], [], attrs=attrs | {"f": named("make")}, **keywords)
    elif op == "make":
        b.op(op, x, **keywords)
    else:
        b.op(op, [x], attrs=types | {"f": named("make")}, **keywords)
    for k in range(4):
        handle = b.op("VarHandleOp", name=f"h{k}", dtype="float32", shape=(), shared_name=b"inside", device=cpu(k))
        b.op("VarIsInitializedOp", handle[0], name=f"is{k}")
    async with open_session(b.graph_def(), "cpu:4", config=HARD_PLACEMENT) as session:
        await session.run([], targets="y")
        assert await session.run([f"is{k}" for k in range(4)]) == [k == home for k in range(4)]


async def test_a_resource_that_is_given_to_a_whole_call_draws_it_there() -> None:
    """A conditional that is not lowered is on the device of its variable, whatever it requests, as in TensorFlow."""
    b, (handle, *_) = with_variables(1, add_and_read())
    attrs = {"Tin": ["resource", "float32"], "Tout": ["float32"], "then_branch": named("f"), "else_branch": named("f")}
    b.op("If", b.constant(np.bool_(True)), [handle, b.constant(3.0)], name="y", device=cpu(2), attrs=attrs)
    async with open_session(b.graph_def(), "cpu:3", config=HARD_PLACEMENT) as session:
        await session.run([], targets="init")
        assert await session.run("y") == [3]


async def test_a_conflict_that_no_device_can_meet_is_still_refused() -> None:
    def build(b: GraphBuilder, x: Tensor) -> Tensor:
        there = b.op("Neg", x, device=cpu(1))
        return b.op("Tanh", there, device=cpu(2), attrs={"_class": [f"loc:@{there.name}".encode()]})[0]

    with pytest.raises(InvalidArgumentError, match="Cannot colocate nodes") as caught:
        await fetched(calling(body(build), device=0), x=1.0)
    assert (caught.value.function, caught.value.calls) == ("f", ("y",))


class Reader:
    """Stands for the functions of a session; it counts how many handles were read."""

    count = 0

    def resource_device(self, value: Any, default: str) -> str:
        self.count += 1
        return handle_of(value).device if isinstance(value.item(), ResourceHandle) else default


def devices_read_by(reader: Reader) -> DevicesOfResources:
    return DevicesOfResources(cast("Callees", reader), ELSEWHERE, ARGUMENT_TYPES)


def test_devices_are_those_of_the_handles_in_every_call() -> None:
    """In any order of calls, each pair of handles gives its own devices."""
    handles = [handle_array(ResourceHandle(cpu(i), "", f"v{i}", "t")) for i in range(3)]
    devices = devices_read_by(Reader())
    pairs = list(product(range(3), repeat=2))
    for a, b in [*pairs, *reversed(pairs)]:
        assert devices((handles[a], np.float32(1), handles[b])) == (cpu(a), cpu(b))


def test_handles_of_the_last_call_are_not_read_again() -> None:
    reader = Reader()
    devices = devices_read_by(reader)
    one, other = (handle_array(ResourceHandle(cpu(i), "", "v", "t")) for i in range(2))
    for number in range(3):
        assert devices((one, np.float32(number), other)) == (cpu(0), cpu(1))
    assert reader.count == 2


def test_what_carries_its_resource_is_not_kept() -> None:
    """The handle of a tensor array holds the tensors: after the call nothing here refers to it."""
    devices = devices_read_by(Reader())
    bearer = carrying([1, 2])
    alive = weakref.ref(bearer)
    variable = handle_array(ResourceHandle(cpu(0), "", "v", "t"))
    assert devices((variable, np.float32(1), bearer)) == (cpu(0), ELSEWHERE)
    del bearer
    assert alive() is None


def test_a_function_without_resources_has_no_devices() -> None:
    assert DevicesOfResources(cast("Callees", Reader()), ELSEWHERE, (DataType.FLOAT,))((np.float32(1),)) == ()
