"""Calls of functions over processes: errors, depth, results, cancelled steps, traces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import trio

from partita.actors import open_session
from partita.errors import PartitaError, UnimplementedError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import FunctionDef, GraphDef, NameAttrList, RunMetadata, RunOptions
from tests.actors.call_chains import chain
from tests.actors.running.remote.network import FakeNetwork
from tests.actors.running.remote.processes import open_processes
from tests.function_defs import func_attr, function_of
from tests.strategies import cpu

CALL = "StatefulPartitionedCall"
FLOATS = {"Tin": ["float32"], "Tout": ["float32"]}
X = {"x": np.float32(3)}


def unary(name: str, op: str, device: str = "", **attrs: Any) -> FunctionDef:
    """A function of one float, which node "inner" computes."""
    b = GraphBuilder()
    result = b.op(op, b.placeholder("x", "float32", ()), name="inner", device=device, **attrs)
    return function_of(name, b.graph_def(), ["x:0"], [result[0].name])


def nested(inner: FunctionDef, way: str = CALL, middle: str = cpu(1)) -> GraphDef:
    """y, on CPU:0, calls outer, whose node "middle" calls the function `inner` from another device."""
    c = GraphBuilder()
    c.function(inner)
    attrs: dict[str, Any] = FLOATS | {"f": func_attr(inner.signature.name)}
    x = c.placeholder("x", "float32", ())
    target = [c.constant(cpu(2).encode(), "string")] if way == "RemoteCall" else []
    called = c.op(way, *target, [x], name="middle", device=middle, attrs=attrs)
    outer = function_of("outer", c.graph_def(), ["x:0"], [called[0].name])
    b = GraphBuilder()
    b.function(inner)
    b.function(outer)
    x = b.placeholder("x", "float32", ())
    b.op(CALL, [x], name="y", device=cpu(0), attrs=attrs | {"f": func_attr("outer")})
    return b.graph_def()


async def error_in_one_process(graph_def: GraphDef, feeds: Any) -> PartitaError:
    """The error of the fetch y."""
    async with open_session(graph_def, "cpu:3") as session:
        with pytest.raises(PartitaError) as caught:
            await session.run("y", feeds)
    return caught.value


FAILING = {
    "a node": nested(unary("inner", "CheckNumerics", cpu(2), message="bad")),
    "a node of a remote call": nested(unary("inner", "CheckNumerics", message="bad"), "RemoteCall"),
    "no kernel": nested(unary("inner", "RiscNeg", cpu(2))),
    "no such function": nested(unary("inner", "Neg", cpu(2))),
    "no such device": nested(unary("inner", "Neg", "/device:CPU:9")),
    "another type": nested(unary("inner", "Cast", cpu(2), SrcT="float32", DstT="int32")),
}
del FAILING["no such function"].library.function[0]


@pytest.mark.parametrize("hosts", ["AAB", "ABC", "ABA", "ABB"])
@pytest.mark.parametrize("name", FAILING)
async def test_errors_are_those_of_one_process(name: str, hosts: str) -> None:
    """Text, place and calls; wherever the node is, and the next step works."""
    graph_def, feeds = FAILING[name], {"x": np.float32("inf")}
    expected = await error_in_one_process(graph_def, feeds)
    async with open_processes(graph_def, hosts) as session:
        for _ in range(2):
            with pytest.raises(type(expected)) as caught:
                await session.run(["y"], feeds)
            error = caught.value
            assert error.message == expected.message
            places = [(e.node, e.op, e.device, e.function, e.calls) for e in (error, expected)]
            assert places[0] == places[1]
        if name.startswith("a node"):
            assert await session.run(["y"], X) == [3]


@pytest.mark.parametrize("hosts", ["AB", "BA"])
async def test_recursion_is_as_deep_as_in_one_process_and_no_deeper(hosts: str) -> None:
    """Each function calls the next from another device; a chain without recursion has no limit."""
    graph_def = chain(600)
    for number, function in enumerate(graph_def.library.function):
        for node in function.node_def:
            node.device = cpu(number % 2)
    async with open_processes(graph_def, hosts, soft=True) as session:
        assert await session.run(["y"], {"x": np.float32(0)}) == [600]
    recursive = chain(20)
    for number, function in enumerate(recursive.library.function):
        for node in function.node_def:
            node.device = cpu(number % 2)
    last = recursive.library.function[-1]
    last.CopyFrom(recursive.library.function[-2])
    last.signature.name = "f19"
    last.node_def[0].attr["f"].CopyFrom(func_attr("f0"))
    expected = await error_in_one_process(recursive, {"x": np.float32(0)})
    async with open_processes(recursive, hosts, soft=True) as session:
        with pytest.raises(type(expected), match="500 calls deep") as caught:
            await session.run(["y"], {"x": np.float32(0)})
    assert caught.value.calls == expected.calls
    assert caught.value.message == expected.message


async def test_a_cancelled_step_leaves_nothing_of_its_calls() -> None:
    """However far the calls have come; what arrives later does nothing."""
    graph_def = chain(12, calls=2)
    for number, function in enumerate(graph_def.library.function):
        for node in function.node_def:
            node.device = cpu(number % 2)
    async with open_processes(graph_def, "AB", soft=True) as session:
        for turns in range(0, 200, 9):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.run, ["y"], {"x": np.float32(0)})
                for _ in range(turns):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            assert session.last is not None
            assert not any(step._returns or step.calls for step in session.last.steps.values())
        assert await session.run(["y"], {"x": np.float32(0)}) == [2**12 - 1]


async def test_a_function_of_a_dataset_may_not_leave_the_process_of_its_kernel() -> None:
    """Its step is that of the kernel alone; the error says what to do."""
    b = GraphBuilder()
    inner = unary("inner", "Neg", cpu(1))
    b.function(inner)
    with b.device(cpu(0)):
        data = b.op("TensorSliceDataset", [np.arange(3, dtype=np.float32)], output_shapes=[()])
        types: dict[str, Any] = {"output_types": ["float32"], "output_shapes": [()]}
        mapped = b.op("MapDataset", data[0], [], f=NameAttrList(name="inner"), Targuments=[], **types)
        b.op("DatasetToSingleElement", b.op("TakeDataset", mapped[0], np.int64(1), **types)[0], name="y", **types)
    async with open_processes(b.graph_def(), "AB") as session:
        with pytest.raises(UnimplementedError, match=r"'inner', which a kernel calls on .*CPU:0, has nodes on .*CPU:1"):
            await session.run(["y"])
    async with open_processes(b.graph_def(), "AAB") as session:
        assert await session.run(["y"]) == [0]


@pytest.mark.parametrize("hosts", ["AAB", "ABC"])
@pytest.mark.parametrize("way", [CALL, "RemoteCall"])
async def test_a_trace_shows_the_nodes_of_all_processes(hosts: str, way: str) -> None:
    """Under the names, and with the calls, of one process."""
    graph_def = nested(unary("inner", "Neg", "" if way == "RemoteCall" else cpu(2)), way)
    metadata = RunMetadata()
    async with open_session(graph_def, "cpu:3") as session:
        options = RunOptions(trace_level=RunOptions.FULL_TRACE)
        await session.run("y", X, options=options, metadata=metadata)
    async with open_processes(graph_def, hosts) as processes:
        await processes.run(["y"], X, traced=True)
        assert processes.last is not None
        stats = processes.last.stats()
    of_functions = [
        sorted(node.timeline_label for device in each.dev_stats for node in device.node_stats if "/" in node.node_name)
        for each in (metadata.step_stats, stats)
    ]
    assert of_functions[0] == of_functions[1]


async def test_arguments_go_only_where_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of a function whose part elsewhere has no argument brings none."""
    sent: list[Any] = []
    post = FakeNetwork.post

    def noting(network: FakeNetwork, source: str, target: str, deliver: Any) -> None:
        sent.extend(argument for argument in getattr(deliver, "args", ()) if hasattr(argument, "arguments"))
        post(network, source, target, deliver)

    monkeypatch.setattr(FakeNetwork, "post", noting)
    async with open_processes(nested(unary("inner", "Neg", cpu(2))), "ABC") as session:
        assert await session.run(["y"], X) == [-3]
    assert [(begin.device, dict(begin.arguments)) for begin in sent] == [(cpu(0), {}), (cpu(1), {})]
