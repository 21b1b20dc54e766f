"""A call gives the outputs that its function has, whatever it declares; what is read and missing is INTERNAL."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import InternalError, InvalidArgumentError, NotFoundError, PartitaError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import AttrValue, ConfigProto, FunctionDef, GraphDef, NameAttrList
from tests.function_defs import LOWER, function_of
from tests.strategies import cpu

INLINED = ConfigProto()
INLINED.graph_options.optimizer_options.do_function_inlining = True
BOTH = pytest.mark.parametrize("config", [ConfigProto(), INLINED], ids=["called", "inlined"])
CALLS = ["PartitionedCall", "StatefulPartitionedCall"]


def giving(count: int, device: str = "") -> FunctionDef:
    """`f`: -x, |x| and x * x, or the first of them, which is computed on `device`."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    results = [b.op(op, x, device=device if op == "Neg" else "")[0].name for op in ("Neg", "Abs", "Square")[:count]]
    return function_of("f", b.graph_def(), ["x:0"], results)


def add_call(b: GraphBuilder, op: str, count: int, target: str = cpu(0), **attrs: Any) -> None:
    """`y`, a call of `f` with the float x that declares `count` outputs, and `last`, which reads the last of them."""
    x = b.placeholder("x", "float32", ())
    attrs |= {"Tin": ["float32"], "Tout": ["float32"] * count, "f": NameAttrList(name="f")}
    inputs = [b.constant(target.encode(), "string")] if op == "RemoteCall" else []
    y = b.op(op, *inputs, [x], name="y", attrs=attrs)
    b.op("Neg", y[0], name="first")
    b.op("Identity", y[count - 1], name="last")
    b.op("NoOp", name="after", control=[y])


def called(op: str, count: int, function: FunctionDef, target: str = cpu(0), **attrs: Any) -> GraphDef:
    b = GraphBuilder()
    b.function(function)
    add_call(b, op, count, target, **attrs)
    return b.graph_def()


def nested(graph_def: GraphDef, result: str) -> GraphDef:
    """`y` calls "outer", whose body is a graph with the float x, for the tensor `result`."""
    b = GraphBuilder()
    for function in graph_def.library.function:
        b.function(function)
    b.function(function_of("outer", graph_def, ["x:0"], [result]))
    attrs = {"Tin": ["float32"], "Tout": ["float32"], "f": NameAttrList(name="outer")}
    b.op("StatefulPartitionedCall", [b.placeholder("x", "float32", ())], name="y", attrs=attrs)
    return b.graph_def()


async def run(graph_def: GraphDef, config: ConfigProto, fetches: list[str], targets: Any = ()) -> Any:
    async with open_session(graph_def, "cpu:2", config=config) as session:
        return await session.run(fetches, {"x": np.float32(2)}, targets)


@BOTH
async def test_outputs_that_the_function_lacks_harm_only_who_reads_them(config: ConfigProto) -> None:
    """Over one device and two, in the graph and in a function; also where a node only waits for the call."""
    cases = 0
    for op, count, surplus, device in product([*CALLS, "RemoteCall"], (1, 2), (1, 2), ("", cpu(1))):
        graph_def = called(op, count + surplus, giving(count, device))
        assert await run(graph_def, config, ["y:0"]) == [-2]
        assert await run(graph_def, config, ["first", f"y:{count - 1}"]) == [2, -2 if count == 1 else 2]
        assert await run(graph_def, config, [], "after") == []
        assert await run(nested(graph_def, "y:0"), config, ["y"]) == [-2]
        for missing in (f"y:{count + surplus - 1}", "last"):
            with pytest.raises(InternalError, match=f"Missing {count}-th output") as caught:
                await run(graph_def, config, ["y:0", missing])
            assert caught.value.node == "y"
        with pytest.raises(InternalError, match=f"Missing {count}-th output"):
            await run(nested(graph_def, "last:0"), config, ["y"])
        cases += 1
    assert cases == 24


@BOTH
@pytest.mark.parametrize("op", [*CALLS, "RemoteCall"])
async def test_results_that_the_call_does_not_declare_are_internal(op: str, config: ConfigProto) -> None:
    for device in ("", cpu(1)):
        graph_def = called(op, 1, giving(2, device))
        for asked in (graph_def, nested(graph_def, "y:0")):
            with pytest.raises(InternalError, match=r"invalid output index: 1 not in \[0, 1\): function 'f' gives 2"):
                await run(asked, config, ["y:0"])


async def test_a_gradient_has_as_many_results_as_the_node_declares() -> None:
    b = GraphBuilder()
    b.function(giving(1))
    x = b.placeholder("x", "float32", ())
    attrs = {"Tin": ["float32"] * 2, "Tout": ["float32"] * 2, "f": NameAttrList(name="f")}
    b.op("SymbolicGradient", [x, x], name="y", attrs=attrs)
    with pytest.raises(InvalidArgumentError, match=r"SymGrad expects to return 2 tensor\(s\), but get 1"):
        await run(b.graph_def(), ConfigProto(), ["y:0"])


@pytest.mark.parametrize("target", ["/device:CPU:9", "/job:nowhere/task:0/device:CPU:0", "/device:GPU:0"])
async def test_a_remote_call_of_an_unknown_device_is_internal(target: str) -> None:
    with pytest.raises(InternalError, match="Currently don't support instantiating functions on device: /job:") as e:
        await run(called("RemoteCall", 1, giving(1), target), ConfigProto(), ["y"])
    assert e.value.node == "y"


async def test_what_a_remote_call_leaves_open_is_as_at_the_caller() -> None:
    """Local names too; what is no name is INVALID_ARGUMENT."""
    for target in ("", "CPU:1", "/cpu:1", "/device:CPU:1", "/job:localhost", "/device:CPU:*"):
        assert await run(called("RemoteCall", 1, giving(1), target), ConfigProto(), ["y"]) == [-2], target
    with pytest.raises(InvalidArgumentError, match="Could not parse nonsense into a device specification"):
        await run(called("RemoteCall", 1, giving(1), "nonsense"), ConfigProto(), ["y"])


@pytest.mark.parametrize("op", CALLS)
async def test_an_unknown_executor_type_is_not_found_when_the_call_runs(op: str) -> None:
    """An inlined call has no executor of its own, and a branch that is not taken calls nothing."""
    for device, name in product(("", cpu(1)), ("NOPE", "default")):
        graph_def = called(op, 1, giving(1, device), executor_type=name)
        for asked in (graph_def, nested(graph_def, "y:0")):
            with pytest.raises(NotFoundError, match=f"No executor factory registered .* type: {name}") as caught:
                await run(asked, ConfigProto(), ["y"])
            assert caught.value.node == "y"
            assert await run(asked, INLINED, ["y"]) == [-2]
    for name in ("", "DEFAULT", "SINGLE_THREADED_EXECUTOR"):
        assert await run(called(op, 1, giving(1), executor_type=name), ConfigProto(), ["y"]) == [-2]


@pytest.mark.parametrize("lower", [False, True])
async def test_a_branch_with_an_unknown_executor_type_fails_only_where_it_is_taken(lower: bool) -> None:
    inner = called("PartitionedCall", 1, giving(1), executor_type="NOPE")
    for taken in (True, False):
        b = GraphBuilder()
        b.function(giving(1))
        b.function(function_of("bad", inner, ["x:0"], ["y:0"]))
        attrs = {"Tin": ["float32"], "Tout": ["float32"], LOWER: AttrValue(b=lower)}
        attrs |= {"then_branch": NameAttrList(name="bad"), "else_branch": NameAttrList(name="f")}
        b.op("If", b.constant(np.bool_(taken)), [b.placeholder("x", "float32", ())], name="y", attrs=attrs)
        if taken:
            with pytest.raises(PartitaError) as caught:
                await run(b.graph_def(), ConfigProto(), ["y"])
            assert isinstance(caught.value, NotFoundError)
        else:
            assert await run(b.graph_def(), ConfigProto(), ["y"]) == [-2]
