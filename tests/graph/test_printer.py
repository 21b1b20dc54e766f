"""The text of a graph: its lines, their order, and what is left out."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from partita.graph import graph_def_to_graph
from partita.graph.builder import GraphBuilder
from partita.graph.printer import graph_text, topological_order
from tests.function_defs import calling, func_attr, function_of
from tests.goldens import assert_text
from tests.graph.partition.test_loops import a_loop
from tests.strategies import GraphCase, cpu, graph_cases


def test_a_line_says_types_op_inputs_attrs_and_device() -> None:
    """Data inputs by port, then control inputs; attrs that add something; a requested device is marked."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (2, None))
    w = b.constant(np.arange(6, dtype=np.float32).reshape(3, 2), name="w")
    top = b.op("TopKV2", b.op("MatMul", x, w, name="y", transpose_b=True), b.constant(1, name="k"), name="top")
    with b.control_dependencies(x, w):
        b.op("AddV2", top[0], top[0], name="sum", device="/gpu:0")
    graph = graph_def_to_graph(b.graph_def(), add_default_attrs=True)
    assert_text(
        graph,
        """
        6 nodes
        x: float = Placeholder() {shape=[2,?]}
        w: float = Const() {value=[3,2] [0 1][2...]...}
        y: float = MatMul(x, w) {transpose_b=true}
        k: int32 = Const() {value=1}
        top: float, int32 = TopKV2(y, k)
        sum: float = AddV2(top, top, ^w, ^x) @?/gpu:0
        """,
    )
    assert repr(graph) == "<Graph of 8 nodes and 13 edges>"


def test_devices_are_said_once_where_they_are_the_same() -> None:
    """A device of all nodes stands in the first line, and so does a task of all devices."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=cpu(0))
    b.op("Neg", x, name="y", device=cpu(0))
    graph = graph_def_to_graph(b.graph_def(), add_default_attrs=True)
    graph.assign_devices(graph.requested_device_indices())
    assert_text(
        graph,
        """
        2 nodes @/job:localhost/replica:0/task:0/device:CPU:0
        x: float = Placeholder() {shape=[]}
        y: float = Neg(x)
        """,
    )
    graph.node(3).assigned_device = cpu(1)
    assert_text(
        graph,
        """
        2 nodes @/job:localhost/replica:0/task:0/...
        x: float = Placeholder() {shape=[]} @CPU:0
        y: float = Neg(x) @CPU:1
        """,
    )
    graph.node(3).assigned_device = "/job:worker/replica:0/task:1/device:GPU:0"
    assert_text(
        graph,
        """
        2 nodes
        x: float = Placeholder() {shape=[]} @/job:localhost/replica:0/task:0/device:CPU:0
        y: float = Neg(x) @/job:worker/replica:0/task:1/device:GPU:0
        """,
    )


def test_a_loop_is_printed_from_its_beginning() -> None:
    """The edge that closes a loop does not delay its Merge."""
    assert_text(
        a_loop([cpu(0)]),
        """
        9 nodes @/job:localhost/replica:0/task:0/device:CPU:0
        x: float = Placeholder() {shape=[]}
        f/enter: float = Enter(x) {frame_name="f"}
        f/merge: float, int32 = Merge(f/enter, f/next)
        f/less: bool = Less(f/merge, f/merge)
        f/cond: bool = LoopCond(f/less)
        f/switch: float, float = Switch(f/merge, f/cond)
        f/body0: float = Neg(f/switch:1)
        f/next: float = NextIteration(f/body0)
        f/exit: float = Exit(f/switch)
        """,
    )


def test_what_is_left_out_is_counted() -> None:
    """Nothing is left out by default; if it is, the text says how much."""
    b = GraphBuilder()
    for number in range(300):
        b.op("NoOp", name=f"n{number:03}")
    graph = graph_def_to_graph(b.graph_def())
    assert len(str(graph).splitlines()) == 301
    assert_text(
        graph_text(graph, most=2),
        """
        300 nodes
        n000 = NoOp()
        n001 = NoOp()
        ... and 298 more
        """,
    )
    assert_text(
        graph_text(graph, only=lambda name: name == "n007"),
        """
        1 of 300 nodes
        n007 = NoOp()
        """,
    )


def test_functions_and_open_ports_are_named() -> None:
    """A call shows the function it names; an unconnected port is a question mark."""
    b = GraphBuilder()
    b.op("Neg", b.placeholder("x0", "float32", ()), name="y")
    function = function_of("F", b.graph_def(), ["x0:0"], ["y:0"], [])
    graph = graph_def_to_graph(calling("PartitionedCall", function, f=func_attr("F")).graph_def())
    graph.remove_edge(next(edge for edge in graph.edges() if edge.dst.name == "c"))
    assert_text(
        graph,
        """
        2 nodes
        x0: float = Placeholder()
        c: float = PartitionedCall(?) {f=F[]}
        functions: F
        """,
    )


@given(graph_cases())
def test_inputs_come_first_and_a_copy_reads_the_same(case: GraphCase) -> None:
    """The order is topological, and equal graphs have equal texts."""
    graph = graph_def_to_graph(case.graph_def)
    place = {node: at for at, node in enumerate(topological_order(graph))}
    assert sorted(place) == [node.id for node in graph.op_nodes()]
    assert all(place[e.src.id] < place[e.dst.id] for e in graph.edges() if e.src.is_op and e.dst.is_op)
    assert str(graph.copy()) == str(graph_def_to_graph(graph.to_graph_def())) == str(graph)
