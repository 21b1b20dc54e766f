"""The outputs of kernels from outside are checked wherever they run; our own kernels are called as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import ml_dtypes
import numpy as np
import pytest

from partita.actors import open_session
from partita.actors.plans.binding import Binder
from partita.actors.running.evaluation import ConstantEvaluator
from partita.actors.running.reference import run_reference
from partita.devices.kernels import registry
from partita.devices.kernels.registry import Call, Construction, deferred_kernel, kernel, simple
from partita.devices.state import DeviceState, ResourceHandle, Variable
from partita.errors import InternalError
from partita.graph import RunOptions
from partita.graph.analysis import shape_functions as shapes
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType, dtype_name, make_ref
from partita.graph.ops import registry as ops
from partita.graph.ops.properties import properties_of
from partita.graph.ops.registration import register_op
from partita.graph.protos import GraphDef, OpDef
from tests.function_defs import func_attr, function_of, library_of
from tests.runs import HARD_PLACEMENT, cpus
from tests.strategies import cpu

GIVER, LATER, REFERRER = "GivesWhatATestSays", "GivesItLater", "GivesAReference"
X = {"x": np.float32(1)}


class Kernels:
    """The outputs that the kernels of the test return, whatever their inputs are."""

    def __init__(self) -> None:
        self.value: Any = None
        self.outputs: Sequence[Any] = ()
        self.look: Callable[[Call], None] = lambda _call: None

    def factory(self, _node: Construction) -> Callable[..., Any]:
        return lambda _x: self.value

    def start(self, _node: Construction) -> Callable[..., None]:
        def begin(call: Call, _x: Any) -> None:
            self.look(call)
            call.on_cancel(lambda: None)
            call.after(0, lambda: call.done(*self.outputs))

        return begin


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernels]:
    """Three ops of a user's own, with kernels that were registered as users register them."""
    registry.registered_ops()
    for table in (registry._FACTORIES, ops._signatures):
        for op in (GIVER, LATER, REFERRER):
            monkeypatch.delitem(table, op, raising=False)
    for op in (GIVER, LATER):
        message = OpDef(name=op)
        message.input_arg.add(name="x", type=int(DataType.FLOAT))
        message.output_arg.add(name="y", type_list_attr="Tout")
        message.attr.add(name="Tout", type="list(type)", has_minimum=True)
        register_op(message, waits=op == LATER)
    message = OpDef(name=REFERRER)
    message.input_arg.add(name="x", type=int(DataType.FLOAT))
    message.output_arg.add(name="y", type=int(DataType.FLOAT), is_ref=True)
    register_op(message)
    kernels = Kernels()
    kernel(GIVER, REFERRER)(kernels.factory)
    deferred_kernel(LATER)(kernels.start)
    yield kernels
    for op in (GIVER, LATER, REFERRER):
        del registry._FACTORIES[op], ops._signatures[op]


def graph(types: Sequence[str], op: str = GIVER, **attrs: Any) -> GraphDef:
    """A node `n` of one of the ops on what is fed as `x`, its outputs passed on as `y0`, `y1`, ..."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=cpu(0))
    more = {} if op == REFERRER else {"Tout": encode([ops_type(t) for t in types], "list(type)")}
    node = b.op(op, x, name="n", device=cpu(0), attrs={**more, **attrs})
    for k in range(len(types)):
        b.op("Identity", node[k], name=f"y{k}", device=cpu(0))
    return b.graph_def()


def ops_type(name: str) -> DataType:
    return next(t for t in DataType if dtype_name(t) == name)


async def run_plan(graph_def: GraphDef, fetch: str, devices: int = 1) -> Any:
    """The value of `fetch`, or what n does without one, in a session."""
    async with open_session(graph_def, cpus(devices), config=HARD_PLACEMENT) as session:
        return await session.run([fetch] if fetch else [], X, [] if fetch else ["n"])


def text(*elements: object) -> np.ndarray[Any, Any]:
    array = np.empty(len(elements), object)
    array[:] = elements
    return array


HANDLE = ResourceHandle(cpu(0), "localhost", "v", "Var")
RIGHT: list[tuple[list[str], Any]] = [
    (["float"], np.float32(2)),
    (["float"], np.ones((2, 3), np.float32)),
    (["int32", "float"], (np.int32(1), np.ones(2, np.float32))),
    (["int32", "int32"], [np.int32(1), np.int32(2)]),
    ([], None),
    ([], ()),
    (["string"], text(b"a", b"")),
    (["bfloat16"], ml_dtypes.bfloat16(1)),
    (["resource"], text(HANDLE)[0:1].reshape(())),
    (["variant"], text(object())[0:1].reshape(())),
    (["bool"], np.bool_(True)),
]
WRONG: list[tuple[list[str], Any, str]] = [
    (["float", "float"], np.ones(2, np.float32), "of class ndarray"),
    (["float", "float"], (np.float32(1),), "Missing 1-th output"),
    (["float"], (np.float32(1),), "of class tuple"),
    (["float", "float"], (np.float32(1),) * 3, "3 outputs are given where 2 are declared"),
    (["float", "float"], (np.float32(k) for k in range(2)), "of class generator"),
    (["float"], None, "is None"),
    (["float"], 1.5, "of class float"),
    (["float"], [1.0], "of class list"),
    (["float"], "text", "of class str"),
    (["float"], np.int32(1), "of type int32 does not match declared output type float"),
    (["float"], np.float64(1), "of type double does not match declared output type float"),
    (["float"], np.ones(2, ">f4"), "does not match declared output type float"),
    (["float"], np.ma.masked_array([1], dtype=np.float32), "of class MaskedArray"),
    (["bfloat16"], np.float16(1), "of type half does not match declared output type bfloat16"),
    (["string"], np.array(["a"]), "does not match declared output type string"),
    (["string"], text(b"a", "b"), "has an element that is of class str"),
    (["string"], b"a", "of class bytes"),
    (["resource"], text(b"a"), "has an element that is of class bytes"),
    (["float"], Variable("v", DataType.FLOAT, np.ones(1)), "is a variable of type float_ref"),
    ([], np.float32(1), "it has no outputs"),
]


@pytest.mark.parametrize(("types", "value"), RIGHT, ids=[f"{types}-{type(value).__name__}" for types, value in RIGHT])
async def test_outputs_as_declared_are_passed_on(kernels: Kernels, types: list[str], value: Any) -> None:
    kernels.value = value
    assert await run_plan(graph(types), "") == []


@pytest.mark.parametrize(("types", "value", "why"), WRONG, ids=[why for *_, why in WRONG])
async def test_anything_else_is_an_internal_error_that_names_node_and_op(
    kernels: Kernels, types: list[str], value: Any, why: str
) -> None:
    kernels.value = value
    with pytest.raises(InternalError, match=why) as caught:
        await run_plan(graph(types), "")
    assert (caught.value.node, caught.value.op, caught.value.device) == ("n", GIVER, cpu(0))


async def test_a_view_of_the_input_or_the_input_itself_is_fine(kernels: Kernels) -> None:
    """Read-only as it is."""
    for own in (lambda x: x, lambda x: x.T, lambda x: np.broadcast_to(x, (3, 2))):
        registry._FACTORIES[GIVER] = lambda _node, own=own: own  # type: ignore[misc]  # the default only binds it
        np.testing.assert_array_equal((await run_plan(graph(["float"]), "y0"))[0], own(np.float32(1)))


async def test_a_reference_is_a_variable_of_its_type(kernels: Kernels) -> None:
    kernels.value = Variable("v", DataType.FLOAT, np.ones(2, np.float32))
    np.testing.assert_array_equal((await run_plan(graph(["float"], REFERRER), "y0"))[0], [1, 1])
    for wrong in (np.ones(2, np.float32), Variable("v", DataType.INT32, np.ones(2, np.int32))):
        kernels.value = wrong
        with pytest.raises(InternalError, match=dtype_name(make_ref(DataType.FLOAT))):
            await run_plan(graph(["float"], REFERRER), "")


async def test_outputs_that_come_later_are_checked_too(kernels: Kernels) -> None:
    for outputs, why in (
        ((np.float32(1),), None),
        ((np.int32(1),), "of type int32 does not match declared output type float"),
        ((), "Missing 0-th output"),
        ((np.float32(1), np.float32(1)), "2 outputs are given where 1 are declared"),
    ):
        kernels.outputs = outputs
        if why is None:
            assert await run_plan(graph(["float"], LATER), "y0") == [1]
            continue
        with pytest.raises(InternalError, match=why) as caught:
            await run_plan(graph(["float"], LATER), "y0")
        assert (caught.value.node, caught.value.op) == ("n", LATER)


async def test_shapes_that_the_op_rules_out_are_refused(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its shape function, of the shapes and values of its inputs, or by `_output_shapes`."""
    shapes.registered_ops()
    monkeypatch.setitem(shapes._FUNCTIONS, GIVER, lambda c: [(c.inputs[0] or ()) + (2, None)])
    for value, fits in ((np.ones((2, 5), np.float32), True), (np.ones((3, 2), np.float32), False)):
        kernels.value = value
        if fits:
            await run_plan(graph(["float"]), "y0")
        else:
            with pytest.raises(InternalError, match=r"shape \(3, 2\) where the op gives \(2, None\)"):
                await run_plan(graph(["float"]), "y0")
    monkeypatch.setitem(shapes._FUNCTIONS, GIVER, lambda c: [(int(np.asarray(c.constant(0))),)])
    kernels.value = np.ones(1, np.float32)
    await run_plan(graph(["float"]), "y0")
    monkeypatch.delitem(shapes._FUNCTIONS, GIVER)
    with pytest.raises(InternalError, match=r"shape \(1,\) where the op gives \(4,\)"):
        await run_plan(graph(["float"], _output_shapes=encode([(4,)], "list(shape)")), "y0")


def in_function(graph_def: GraphDef, loop: bool) -> GraphDef:
    """The graph as a function that a node `y` calls, or that a loop has as its body."""
    function = function_of("f", graph_def, ["x:0"], ["y0:0"])
    b = GraphBuilder()
    cond = b.op("Less", b.placeholder("x", "float32", ()), b.constant(5.0))
    test = function_of("cond", b.graph_def(), ["x:0"], [cond[0].name])
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=cpu(0))
    if loop:
        attrs = {"T": ["float32"], "cond": func_attr("cond"), "body": func_attr("f")}
        b.op("While", [x], name="y0", device=cpu(0), attrs=attrs)
    else:
        attrs = {"Tin": ["float32"], "Tout": ["float32"], "f": func_attr("f")}
        b.op("StatefulPartitionedCall", [x], name="y0", device=cpu(0), attrs=attrs)
    graph_def = b.graph_def()
    graph_def.library.CopyFrom(library_of(function, test))
    return graph_def


@pytest.mark.parametrize("loop", [False, True])
async def test_functions_and_loops_check_what_runs_in_them(kernels: Kernels, loop: bool) -> None:
    graph_def = in_function(graph(["float"]), loop)
    kernels.value = np.float32(7)
    assert await run_plan(graph_def, "y0") == [7]
    kernels.value = np.float64(7)
    with pytest.raises(InternalError, match="of type double") as caught:
        await run_plan(graph_def, "y0")
    assert (caught.value.node, caught.value.op) == ("n", GIVER)


def test_the_interpreter_and_constant_folding_check_them(kernels: Kernels) -> None:
    kernels.value = np.float64(7)
    b = GraphBuilder()
    node = b.op(GIVER, b.constant(1.0), name="n", attrs={"Tout": encode([DataType.FLOAT], "list(type)")})
    b.op("Identity", node[0], name="y")
    constant = b.graph()
    constant.assign_devices(np.full(constant.num_node_ids, constant.intern_device(cpu(0))))
    with pytest.raises(InternalError, match="of type double"):
        ConstantEvaluator().run(constant, ["y:0"])
    with pytest.raises(InternalError, match="of type double"):
        run_reference([constant], {cpu(0): Binder(cpu(0), DeviceState(1))}, [], 0)


async def test_traced_steps_check_them(kernels: Kernels) -> None:
    kernels.value = None
    traced = RunOptions(trace_level=RunOptions.FULL_TRACE)
    async with open_session(graph(["float"])) as session:
        with pytest.raises(InternalError, match="is None"):
            await session.run("y0", X, options=traced)


def test_our_own_kernels_are_not_wrapped(kernels: Kernels) -> None:
    """A plan runs what the factory returned. Which kernels are ours is known, however they were registered."""
    assert all(registry.is_built_in(op) for op in registry.registered_ops() - {GIVER, LATER, REFERRER})
    assert not any(registry.is_built_in(op) for op in (GIVER, LATER, REFERRER))
    properties = properties_of("Neg", {"T": DataType.FLOAT})
    binder = Binder(cpu(0), DeviceState(1))
    bound = binder.kernel("n", properties)
    attrs, types = properties.attrs, (properties.input_types, properties.output_types)
    factory = registry.lookup("Neg")
    assert factory is not None
    own = factory(Construction("n", "Neg", attrs, *types, cpu(0), binder.state))
    assert getattr(bound, "__code__", bound) == getattr(own, "__code__", own)


async def test_what_simple_registers_from_outside_is_not_ours(kernels: Kernels) -> None:
    del registry._FACTORIES[GIVER]
    simple(GIVER, np.negative)
    assert not registry.is_built_in(GIVER)
    with pytest.raises(InternalError, match="declared output type double"):
        await run_plan(graph(["double"]), "y0")


@pytest.mark.parametrize("clock", ["real", "virtual"])
async def test_a_kernel_from_outside_gets_every_member_of_its_call(
    kernels: Kernels, clock: Literal["real", "virtual"]
) -> None:
    """All that the protocol documents, on both clocks; they are those of the call itself."""
    members = [name for name in vars(Call) if not name.startswith("_")]
    assert {"is_ended", "pause", "function"} <= set(members)
    given: list[str] = []
    calls: list[Call] = []

    def look(call: Call) -> None:
        given.extend(name for name in members if hasattr(call, name))
        calls.append(call)
        assert not call.is_ended

    kernels.look, kernels.outputs = look, [np.float32(1)]
    async with open_session(graph(["float"], LATER), cpus(1), clock=clock) as session:
        assert await session.run(["y0"], X) == [1]
    assert given == members
    assert [call.is_ended for call in calls] == [True]
