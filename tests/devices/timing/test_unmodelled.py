"""What cannot be timed is refused by name, not counted as one op; calls are timed by their bodies."""

from __future__ import annotations

import numpy as np
import pytest

from partita.devices import Cluster, cut, local_cluster
from partita.devices.timing import simulate
from partita.devices.timing.unmodelled import check_modelled
from partita.errors import UnimplementedError
from partita.graph import DataType, Graph, GraphDef
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.ops.properties import NodeProperties, join_entry
from partita.graph.ops.record import record_of
from partita.graph.ops.registry import lookup_op, op_names
from partita.graph.protos import AttrValue, FunctionDef
from tests.function_defs import calling, func_attr, function_of

from .steps import StepBuilder, cluster

OF_FUNCTIONS = [
    op
    for op in op_names()
    if lookup_op(op).takes_functions and record_of(op).calls is None and not record_of(op).names_functions
]
COLLECTIVES = [
    op
    for op in op_names()
    if lookup_op(op).is_collective and record_of(op).calls is None and record_of(op).exchange is None
]


def refusal(graph: Graph) -> UnimplementedError:
    """The error if all nodes of the graph run."""
    joined = JoinedGraph({"": graph})
    with pytest.raises(UnimplementedError) as error:
        check_modelled(joined, np.ones(len(joined), np.bool_))
    return error.value


@pytest.mark.parametrize("op", sorted({*OF_FUNCTIONS, *COLLECTIVES}))
def test_every_op_that_is_more_than_itself_is_refused(op: str) -> None:
    """Of all ops those that call functions in unknown ways, or exchange nobody knows what; the error names both."""
    graph = Graph()
    graph.add_node("before", "NoOp")
    values = {"func": func_attr("f"), "string": AttrValue(s=b"text")}
    attrs = {name: values[attr.type] for name, attr in lookup_op(op).attrs.items() if attr.type in values}
    entries = tuple(join_entry(name, value.SerializeToString()) for name, value in attrs.items())
    graph.add_node_with("culprit", NodeProperties(lookup_op(op), entries, (), ()))
    error = refusal(graph)
    assert (error.node, error.op) == ("culprit", op)
    check_modelled(JoinedGraph({"": graph}), np.array([True, False]))


def test_the_kinds_are_told_by_what_ops_declare() -> None:
    """Collectives of other runtimes and no transfer; all ops with a function attr and no other."""
    assert {"CollectivePermute", "_NcclReduceSend", "CrossReplicaSum", "DTensorAllGather"} <= set(COLLECTIVES)
    others = ("_Send", "_Recv", "_HostSend", "_HostRecv", "Send", "Recv", "MatMul", "CollectiveReduce", "NcclAllReduce")
    assert [op for op in others if op in COLLECTIVES] == []
    assert {"XlaLaunch", "ReduceDataset"} <= set(OF_FUNCTIONS)
    assert [op for op in ("MapDataset", "OneShotIterator") if op in OF_FUNCTIONS] == []
    assert [op for op in ("If", "While", "Case", "MapDefun", "PartitionedCall") if op in OF_FUNCTIONS] == []
    assert [op for op in ("MatMul", "Switch", "VarHandleOp", "QueueDequeueV2") if op in OF_FUNCTIONS] == []


def loop(limit: float) -> GraphDef:
    """Adds one to a scalar until it is `limit`."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    entered = b.op("Enter", x, name="while/Enter", attrs={"frame_name": b"while/frame"})[0]
    merge = b.op("Merge", [entered, entered], name="while/Merge")
    invariant = {"frame_name": b"while/frame", "is_constant": True}
    bound, one = (b.op("Enter", b.constant(np.float32(n)), attrs=invariant)[0] for n in (limit, 1))
    go = b.op("LoopCond", b.op("Less", merge[0], bound)[0], name="while/LoopCond")[0]
    switch = b.op("Switch", merge[0], go, name="while/Switch")
    following = b.op("NextIteration", b.op("AddV2", switch[1], one), name="while/next")[0]
    b.op("Exit", switch[0], name="out")
    graph_def = b.graph_def()
    (node,) = [node for node in graph_def.node if node.name == "while/Merge"]
    node.input[1] = following.node
    return graph_def


def test_what_leaves_a_loop_can_be_fed_instead() -> None:
    """Then the loop does not run, and the rest is timed."""
    graph_def = loop(1000)
    root = graph_def.node.add(name="root", op="Sqrt", input=["out"])
    root.attr["T"].CopyFrom(encode(DataType.FLOAT, "type"))
    hardware = local_cluster("cpu:1")
    parts = cut(graph_def, hardware, feeds=["out"], fetches=["root"])
    assert simulate(parts, hardware, feeds={"out": ()}).find("root").duration_ns > 0


def function(name: str, *ops: str) -> FunctionDef:
    """A function that applies ops of one float, or calls of functions, one after the other."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (8, 8))
    for k, op in enumerate(ops):
        x = b.op(op, x, name=f"n{k}")[0]
    return function_of(name, b.graph_def(), ["x:0"], [f"n{len(ops) - 1}:0"])


def called(op: str = "StatefulPartitionedCall") -> GraphDef:
    """x -> outer(x) -> out, where outer applies Neg and, through a call, Square and Neg."""
    inner = function("inner", "Square", "Neg")
    outer = function("outer", "Neg", "Identity")
    call = outer.node_def[-1]
    call.op = "PartitionedCall"
    del call.attr["T"]
    for key in ("Tin", "Tout"):
        call.attr[key].CopyFrom(encode([DataType.FLOAT], "list(type)"))
    call.attr["f"].func.name = "inner"
    outer.ret["r0"] = f"{call.name}:output:0"
    if op == "outer":
        b = GraphBuilder()
        for definition in (outer, inner):
            b.function(definition)
        b.op("outer", b.placeholder("x0", "float32"), name="c")
        return b.graph_def()
    return calling(op, outer, inner, f=func_attr("outer")).graph_def()


def by_hand() -> GraphDef:
    """What `called` computes, without functions."""
    b = GraphBuilder()
    x = b.placeholder("x0", "float32")
    b.op("Neg", b.op("Square", b.op("Neg", x)), name="c")
    return b.graph_def()


def step_ns(graph_def: GraphDef, hardware: Cluster, *, inline: bool) -> int:
    """Time of a step that fetches c of 64 x 64 elements."""
    parts = cut(graph_def, hardware, feeds=["x0"], fetches=["c"], inline=inline)
    return simulate(parts, hardware, feeds={"x0": (64, 64)}).makespan_ns


@pytest.mark.parametrize("op", ["PartitionedCall", "StatefulPartitionedCall", "outer"])
def test_calls_take_the_time_of_their_bodies(op: str) -> None:
    """Nested ones too, and inlined ones: as long as the same ops without functions."""
    hardware = cluster(1, overhead_ns=7)
    for inline in (False, True):
        assert step_ns(called(op), hardware, inline=inline) == step_ns(by_hand(), hardware, inline=False)


def test_a_recursion_without_a_known_end_is_refused() -> None:
    """The error names the function and what would help."""
    again = function("again", "Neg")
    again.node_def[0].op = "again"
    del again.node_def[0].attr["T"]
    again.ret["r0"] = again.ret["r0"].replace("y:0", "r0:0")
    graph_def = calling("PartitionedCall", again, f=func_attr("again")).graph_def()
    with pytest.raises(UnimplementedError, match=r"'again' calls itself.*--branch"):
        step_ns(graph_def, cluster(1), inline=False)


def test_a_call_on_the_side_not_taken_is_no_matter() -> None:
    """A node that is known to be dead needs no time."""
    step = StepBuilder()
    step.feed("x", (2, 2))
    step.const("p", False)
    step.op("switch", "Switch", ["x", "p"])
    step.op("no", "Neg", ["switch:0"])
    step.op("never", "CrossReplicaSum", ["switch:1", step.const("group", np.zeros((1, 1), np.int32))])
    assert step.timeline().find("no").duration_ns == 32
