"""Calls that do not fit their function are refused, as in TensorFlow; errors inside name the function and the calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.actors.sessions.cluster_session import open_cluster_session
from partita.devices import parse_cluster
from partita.errors import InternalError, InvalidArgumentError, PartitaError, UnimplementedError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.protos import AttrValue, ConfigProto, FunctionDef, GraphDef, NameAttrList
from tests.function_defs import LOWER, function_of
from tests.runs import HARD_PLACEMENT
from tests.strategies import cpu

CALL = "StatefulPartitionedCall"
INLINED = ConfigProto()
INLINED.graph_options.optimizer_options.do_function_inlining = True
BOTH = pytest.mark.parametrize("config", [ConfigProto(), INLINED], ids=["called", "inlined"])


def named(name: str) -> NameAttrList:
    return NameAttrList(name=name)


def function(name: str, op: str = "Neg", **attrs: Any) -> FunctionDef:
    """A function of one op on a float."""
    b = GraphBuilder()
    outputs = b.op(op, b.placeholder("x", "float32", ()), name="inner", **attrs)
    return function_of(name, b.graph_def(), ["x:0"], [outputs[0].name])


def two_results(name: str) -> FunctionDef:
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    results = [b.op(op, x)[0].name for op in ("Neg", "Abs")]
    return function_of(name, b.graph_def(), ["x:0"], results)


def node(op: str, *functions: FunctionDef, outputs: list[str], lower: bool = False) -> GraphDef:
    """`y`, a node of an op that calls the first of the functions with the float x, or with both."""
    b = GraphBuilder()
    for definition in functions:
        b.function(definition)
    x = b.placeholder("x", "float32", ())
    names = [named(definition.signature.name) for definition in functions]
    types: dict[str, Any] = {"Tin": ["float32"], "Tout": outputs}
    if op == "If":
        attrs = types | {"then_branch": names[0], "else_branch": names[-1], LOWER: AttrValue(b=lower)}
        b.op(op, b.constant(np.bool_(True)), [x], name="y", attrs=attrs)
    elif op == "Case":
        attrs = types | {"branches": names, LOWER: AttrValue(b=lower)}
        b.op(op, b.constant(np.int32(0)), [x], name="y", attrs=attrs)
    elif op == "While":
        attrs = {"T": ["float32"], "cond": names[0], "body": names[1], LOWER: AttrValue(b=lower)}
        b.op(op, [x], name="y", attrs=attrs)
    elif op == "RemoteCall":
        b.op(op, b.constant(b"/device:CPU:0", "string"), [x], name="y", attrs=types | {"f": names[0]})
    elif op == "MapDefun":
        rows = b.op("Pack", [x], axis=0)
        attrs = {"Targuments": ["float32"], "Tcaptured": [], "output_types": outputs, "f": names[0]}
        b.op(op, [rows[0]], [], name="y", attrs=attrs | {"output_shapes": [()] * len(outputs)})
    elif op == "SymbolicGradient":
        b.op(op, [x, x], name="y", attrs={"Tin": ["float32"] * 2, "Tout": outputs, "f": names[0]})
    else:
        b.op(op, [x], name="y", attrs=types | {"f": names[0]})
    return b.graph_def()


async def fetched(graph_def: GraphDef, config: ConfigProto | None = None, x: float = 2.7, fetch: str = "y:0") -> Any:
    async with open_session(graph_def, "cpu:3", config=config) as session:
        return (await session.run(fetch, {"x": np.float32(x)}))[0]


# What is declared, and what the body gives


@BOTH
@pytest.mark.parametrize("op", ["PartitionedCall", CALL, "RemoteCall", "SymbolicGradient"])
async def test_results_of_other_types_than_the_call_declares_are_refused(op: str, config: ConfigProto) -> None:
    """Nothing is cast: 2.7 does not become 2."""
    with pytest.raises(InternalError, match="Output 0 of type float does not match declared output type int32") as e:
        await fetched(node(op, function("f"), outputs=["int32"]), config)
    assert e.value.node == "y"


@pytest.mark.parametrize(
    ("op", "functions", "outputs", "error", "message"),
    [
        ("If", [function("f")], ["int32"], InternalError, "Expect 0-th output is of type int32 but get float"),
        ("Case", [function("f")], ["int32"], InternalError, "Expect 0-th output is of type int32 but get float"),
        ("If", [two_results("f")], ["float32"], InternalError, "Expect to produce 1 tensors, but only get 2"),
        ("If", [function("f")], ["float32"] * 2, InternalError, "Expect to produce 2 tensors, but only get 1"),
        ("MapDefun", [function("f")], ["int32"], InvalidArgumentError, "Mismatch in function return type and expected"),
        ("MapDefun", [two_results("f")], ["float32"], InvalidArgumentError, "Mismatch in number of function outputs."),
        (
            "While",
            [two_results("c"), function("f")],
            ["float32"],
            InvalidArgumentError,
            "Expected a single scalar return value from WhileOp cond, got 2 tensors.",
        ),
        (
            "While",
            [function("c", "Abs"), function("f", "Cast", SrcT="float32", DstT="int32")],
            ["float32"],
            InvalidArgumentError,
            "Expected type float for return value 0 but got int32.",
        ),
    ],
)
async def test_a_function_that_does_not_fit_is_refused_by_what_calls_it(
    op: str, functions: list[FunctionDef], outputs: list[str], error: type[PartitaError], message: str
) -> None:
    """In the words of TensorFlow's kernels."""
    with pytest.raises(error, match=message):
        await fetched(node(op, *functions, outputs=outputs))


async def test_a_body_that_is_never_called_may_be_of_any_type() -> None:
    """A loop without iterations, a branch that is not taken."""
    ended = function("c", "IsNan")
    assert await fetched(node("While", ended, function("f", "Cast", SrcT="float32", DstT="int32"), outputs=[])) == 2.7
    other = function("g", "Cast", SrcT="float32", DstT="int32")
    assert await fetched(node("If", function("f"), other, outputs=["float32"])) == np.float32(-2.7)


async def test_a_lowered_loop_does_not_mix_types() -> None:
    graph_def = node(
        "While", function("c", "IsNan"), function("f", "Cast", SrcT="float32", DstT="int32"), outputs=[], lower=True
    )
    with pytest.raises(InvalidArgumentError, match=r"Input 1 of node y/merge/_3 was passed int32 from .* incompatible"):
        await fetched(graph_def)


# What there is too much of


@pytest.mark.parametrize("op", ["If", "Case"])
async def test_lowered_branches_may_give_more_than_is_wanted(op: str) -> None:
    assert await fetched(node(op, two_results("f"), outputs=["float32"], lower=True)) == np.float32(-2.7)


@BOTH
@pytest.mark.parametrize("op", ["PartitionedCall", CALL])
async def test_surplus_results_and_unknown_control_results_harm_nobody(op: str, config: ConfigProto) -> None:
    """TensorFlow accepts entries without a signature and names of nodes that the body lacks."""
    for surplus in ("nobody", "inner", "a0", "r0", "", "^inner", "inner:y:0"):
        declared = function("f")
        declared.control_ret["surplus"] = surplus
        declared.ret["surplus"] = "nobody:y:0"
        assert await fetched(node(op, declared, outputs=["float32"]), config) == np.float32(-2.7)
        declared.signature.control_output.extend(["surplus", "without a node"])
        assert await fetched(node(op, declared, outputs=["float32"]), config) == np.float32(-2.7)


# Where it happened


def nested(device: str) -> GraphDef:
    """y calls outer, whose node "middle" calls inner, whose node "check" refuses infinity."""
    c = GraphBuilder()
    checked = c.op("CheckNumerics", c.placeholder("x", "float32", ()), name="check", message="bad", device=device)
    inner = function_of("inner", c.graph_def(), ["x:0"], [checked[0].name])
    c = GraphBuilder()
    c.function(inner)
    attrs = {"Tin": ["float32"], "Tout": ["float32"], "f": named("inner")}
    middle = c.op(CALL, [c.placeholder("x", "float32", ())], name="middle", attrs=attrs)
    outer = function_of("outer", c.graph_def(), ["x:0"], [middle[0].name])
    b = GraphBuilder()
    b.function(inner)
    b.function(outer)
    b.op(CALL, [b.placeholder("x", "float32", ())], name="y", device=cpu(0), attrs=attrs | {"f": named("outer")})
    return b.graph_def()


@pytest.mark.parametrize("device", ["", cpu(0), cpu(2)])
async def test_an_error_inside_names_the_function_and_the_calls_that_led_there(device: str) -> None:
    """For calls that run as one instruction and for calls that run as parts; the text has all names."""
    with pytest.raises(PartitaError) as caught:
        await fetched(nested(device), HARD_PLACEMENT, x=float("inf"))
    error = caught.value
    assert (error.node, error.op, error.function, error.calls) == ("check", "CheckNumerics", "inner", ("y", "middle"))
    assert error.device == (device or cpu(0))
    assert "[node 'check', op 'CheckNumerics', function 'inner', calls 'y' 'middle', " in str(error)
    assert error.inputs is None


async def test_inputs_are_those_of_the_node_and_of_no_other_that_has_its_name() -> None:
    """The root also has a node "check", which did not fail."""
    graph_def = nested("")
    graph_def.node.add(name="check", op="NoOp").input.append("^x")
    graph_def.node.add(name="other", op="NoOp", input=["^check"])
    with pytest.raises(PartitaError) as caught:
        await fetched(graph_def, x=float("inf"))
    assert caught.value.inputs is None


@pytest.mark.parametrize("op", ["While", "If", "MapDefun", "RemoteCall"])
async def test_every_kind_of_call_is_named(op: str) -> None:
    """Also loops, conditionals, maps and remote calls."""
    bad = function("f", "CheckNumerics", message="bad")
    functions = [function("c", "Abs"), bad] if op == "While" else [bad]
    with pytest.raises(PartitaError) as caught:
        await fetched(node(op, *functions, outputs=["float32"]), x=float("inf"))
    assert (caught.value.node, caught.value.function, caught.value.calls) == ("inner", "f", ("y",))


async def test_what_cannot_be_compiled_in_a_body_is_named_too() -> None:
    """An op without a kernel in a function."""
    with pytest.raises(UnimplementedError, match="no kernel for RiscNeg") as caught:
        await fetched(node(CALL, function("f", "RiscNeg"), outputs=["float32"]))
    assert (caught.value.node, caught.value.function, caught.value.calls) == ("inner", "f", ("y",))


# Loops that no compiler folds


def odd_loop(inside: Callable[[GraphBuilder, Tensor], Tensor], *functions: FunctionDef) -> GraphDef:
    """y calls "f": a loop, NextIteration first in its Merge, that applies `inside` to x while it is below 5."""
    c = GraphBuilder()
    for definition in functions:
        c.function(definition)
    enter = c.op("Enter", c.placeholder("x", "float32", ()), frame_name="odd", device=cpu(1))[0]
    limit = c.op("Enter", c.constant(5.0), frame_name="odd", is_constant=True)[0]
    merge = c.op("Merge", [c.later("float32"), enter], device=cpu(1))
    switch = c.op("Switch", merge[0], c.op("LoopCond", c.op("Less", merge[0], limit)[0])[0])
    c.close_loop(merge, c.op("NextIteration", inside(c, switch[1]))[0], port=0)
    left = c.op("Exit", switch[0], device=cpu(2))
    loop_function = function_of("f", c.graph_def(), ["x:0"], [left[0].name])
    return node(CALL, *functions, loop_function, outputs=["float32"])


def calling_last(graph_def: GraphDef) -> GraphDef:
    """The same functions; `y` calls the last."""
    (y,) = [n for n in graph_def.node if n.name == "y"]
    y.attr["f"].func.name = graph_def.library.function[-1].signature.name
    return graph_def


def add_one(b: GraphBuilder, x: Tensor) -> Tensor:
    return b.op("AddV2", x, b.op("Const", control=[x], dtype="float32", value=np.float32(1))[0], device=cpu(2))[0]


@BOTH
async def test_an_odd_loop_in_a_body_is_interpreted(config: ConfigProto) -> None:
    """Over any devices, in repeated steps, and inside a map, where each row has a run of its own."""
    graph_def = odd_loop(add_one)
    async with open_session(graph_def, "cpu:3", config=config, budget_s=0) as session:
        for x, expected in ((0.5, 5.5), (7.0, 7.0), (-3.0, 5.0)):
            assert await session.run("y", {"x": np.float32(x)}) == [expected]


async def test_an_odd_loop_may_call_what_takes_its_time() -> None:
    """A functional loop, which is always deferred, inside an interpreted loop."""
    c = GraphBuilder()
    more = c.op("AddV2", c.placeholder("x", "float32", ()), c.constant(0.5))
    step = function_of("step", c.graph_def(), ["x:0"], [more[0].name])
    c = GraphBuilder()
    less = c.op("Less", c.placeholder("x", "float32", ()), c.constant(2.0))
    cond = function_of("cond", c.graph_def(), ["x:0"], [less[0].name])

    def inside(b: GraphBuilder, x: Tensor) -> Tensor:
        attrs = {"T": ["float32"], "cond": named("cond"), "body": named("step")}
        return add_one(b, b.op("While", [x], attrs=attrs)[0])

    graph_def = calling_last(odd_loop(inside, cond, step))
    for budget_s in (0.0, 1.0):
        async with open_session(graph_def, "cpu:3", budget_s=budget_s) as session:
            for _ in range(2):
                assert await session.run("y", {"x": np.float32(0.25)}) == [5.25]


async def test_an_error_in_an_odd_loop_says_where() -> None:
    def inside(b: GraphBuilder, x: Tensor) -> Tensor:
        return b.op("CheckNumerics", b.op("Log", x)[0], name="check", message="bad", device=cpu(2))[0]

    async with open_session(odd_loop(inside), "cpu:3") as session:
        for _ in range(2):
            with pytest.raises(PartitaError) as caught:
                await session.run("y", {"x": np.float32(0)})
            error = caught.value
            assert (error.node, error.function, error.calls) == ("check", "f", ("y",))
            assert error.device == cpu(2)


async def test_an_odd_loop_over_tasks_is_refused_by_name() -> None:
    """The interpreter needs the whole graph, which no worker has."""
    b = GraphBuilder()
    enter = b.op("Enter", b.placeholder("x", "float32", ()), frame_name="odd")[0]
    merge = b.op("Merge", [b.later("float32"), enter], name="merge")
    switch = b.op("Switch", merge[0], b.op("LoopCond", b.op("Less", merge[0], merge[0])[0])[0])
    b.close_loop(merge, b.op("NextIteration", switch[1])[0], port=0)
    b.op("Exit", switch[0], name="y")
    cluster = parse_cluster('[[device]]\njob = "worker"\ntasks = 2\nspec = "generic-cpu"\n')
    async with open_cluster_session(b.graph_def(), cluster) as session:
        with pytest.raises(UnimplementedError, match="the loop at node 'merge' is not built as") as caught:
            await session.run("y", {"x": np.float32(0)})
    assert caught.value.node == "merge"
