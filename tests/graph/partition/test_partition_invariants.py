"""Rules of the graphs of a cut: each is broken once, and every change of an edge is detected."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given, strategies as st

from partita.errors import InternalError
from partita.graph import DataType, Graph, Node, PartitionOptions, graph_def_to_graph, split_graph
from partita.graph.analysis.transfers import TransferTable
from partita.graph.partition.invariants import check_partitioned
from partita.graph.partition.loops import add_control_loops
from partita.graph.partition.options import name_counter
from tests.graph.partition.test_loops import a_loop
from tests.graph.partition.test_split import CPU0, CPU1, GPU0, diamond, placed
from tests.invariants import assert_all_are_broken
from tests.strategies import GraphCase, cpu, placed_cases

Parts = dict[str, Graph]


def _checked(change: Callable[[Parts, Graph], object]) -> Callable[[], None]:
    """The check of a cut diamond after a change of its parts."""

    def check() -> None:
        whole = placed(diamond)
        parts = {name: part.clone() for name, part in split_graph(whole).items()}
        change(parts, whole)
        check_partitioned(parts, whole, PartitionOptions())

    return check


def _node(parts: Parts, name: str) -> Node:
    return next(node for part in parts.values() for node in part.op_nodes() if node.name == name)


def _says(parts: Parts, name: str, attr: str, value: object) -> None:
    _node(parts, name).add_attr(attr, value)


def _moves(parts: Parts, name: str) -> None:
    node = _node(parts, name)
    node.assigned_device = CPU0 if node.assigned_device == CPU1 else CPU1


def _without(parts: Parts, name: str) -> None:
    node = _node(parts, name)
    node.graph.remove_node(node)
    node.graph.fix_source_and_sink_edges()


def _again(parts: Parts, name: str, new_name: str) -> None:
    """A second node like one without inputs."""
    node = _node(parts, name)
    twin = node.graph.add_node_with(new_name, node.properties)
    twin.assigned_device = node.assigned_device
    node.graph.fix_source_and_sink_edges()


def _elsewhere(parts: Parts, _whole: Graph) -> None:
    parts[CPU1], parts[CPU0] = parts[CPU0], parts[CPU1]


def _reads_another(parts: Parts, _whole: Graph) -> None:
    """`a` reads the identity that `c` waits for."""
    a = _node(parts, "a")
    a.graph.update_edge(_node(parts, "x/_5"), 0, a, 0)


def _memory_mixed() -> None:
    whole = placed(lambda b: b.op("Neg", b.placeholder("x", "float32", (), device=GPU0), name="y", device=GPU0))
    y = whole.find_node("y")
    assert y is not None
    y.add_attr("_input_hostmem", [0], "list(int)")
    check_partitioned({GPU0: whole}, whole, PartitionOptions())


def _frames(change: Callable[[Graph], object]) -> Callable[[], None]:
    def check() -> None:
        whole = a_loop([cpu(1)])
        add_control_loops(whole, name_counter())
        parts = split_graph(whole, PartitionOptions(control_flow_added=True, new_name=name_counter(100)))
        change(parts[cpu(1)])
        check_partitioned(parts, whole, PartitionOptions())

    return check


def _ungated(reader: str) -> Callable[[Graph], None]:
    """What `reader`, an op, receives no longer waits for an iteration to begin."""

    def change(part: Graph) -> None:
        node = next(node for node in part.op_nodes() if node.op == reader)
        for recv in [edge.src for edge in node.in_edges() if edge.src.is_recv]:
            part.remove_edge(next(edge for edge in recv.in_edges() if edge.is_control))
        part.fix_source_and_sink_edges()

    return change


def _of_another_type(parts: Parts) -> None:
    """The table that both ends share says something else than their ports."""
    table = parts[CPU0].details()[0]
    assert isinstance(table, TransferTable)
    table.dtype[0] = DataType.INT32
    table._made.clear()  # what has been read of it so far


def test_every_rule_is_reported_when_it_is_broken() -> None:
    assert_all_are_broken(
        "graph/partition/invariants.py",
        {
            "every input port reads a tensor": _checked(lambda parts, _: _without(parts, "x/_1")),
            "a part has the nodes of its device": _checked(lambda parts, _: _moves(parts, "x/_4")),
            "cutting moves no node": _checked(lambda parts, _: _moves(parts, "a")),
            "a part has the nodes of its location": _checked(_elsewhere),
            "host and device memory meet in a transfer": _memory_mixed,
            "a node is in one part": _checked(lambda parts, _: _twin(parts)),
            "cutting changes no node": _checked(lambda _, whole: whole.node(3).add_attr("T", "int32")),
            "no node is lost": _checked(lambda parts, _: _without(parts, "c")),
            "a key is sent once and received once": _checked(lambda parts, _: _again(parts, "x/_1", "x/_9")),
            "what is sent is received": _checked(lambda parts, _: _says(parts, "x/_0", "tensor_name", "other")),
            "what is received is sent": _checked(lambda parts, _: _again_named(parts)),
            "both ends of a transfer say the same": _checked(lambda parts, _: _says(parts, "x/_0", "_src", "other")),
            "joined again, the parts have the edges of the graph": _checked(_reads_another),
            "a transfer says where it is": _checked(lambda parts, _: _says(parts, "x/_0", "send_device", CPU1)),
            "a transfer has the incarnation of its sender": _checked(
                lambda parts, _: _says(parts, "x/_0", "send_device_incarnation", 7)
            ),
            "a transfer says its type": _checked(lambda parts, _: _of_another_type(parts)),
            "the frames of a part are well formed": _frames(_ungated("Switch")),
            "a tensor is received in the frame it is sent in": _frames(_ungated("Neg")),
        },
    )


def _twin(parts: Parts) -> None:
    """A node of the other part's name."""
    twin = parts[CPU1].add_node("x/_0", "NoOp")
    twin.assigned_device = CPU1
    parts[CPU1].fix_source_and_sink_edges()


def _again_named(parts: Parts) -> None:
    """A second receive, of a tensor that nobody sends."""
    _again(parts, "x/_1", "x/_9")
    _says(parts, "x/_9", "tensor_name", "nobody sends it")


@given(placed_cases(), st.data())
def test_no_edge_can_be_lost_or_turned(case: tuple[GraphCase, dict[str, str]], data: st.DataObject) -> None:
    """Whichever edge between two nodes of a part is taken away or made to start elsewhere, the checker finds it."""
    graph_case, placement = case
    whole = graph_def_to_graph(graph_case.graph_def, add_default_attrs=True)
    for node in whole.op_nodes():
        node.assigned_device = placement[node.name]
    parts = {name: part.clone() for name, part in split_graph(whole).items()}
    edges = [edge for part in parts.values() for edge in part.edges() if edge.src.is_op and edge.dst.is_op]
    assume(edges)
    edge = data.draw(st.sampled_from(edges))
    part, src, dst = edge.src.graph, edge.src, edge.dst
    port, slot = edge.src_output, edge.dst_input
    part.remove_edge(edge)
    others = [node for node in part.op_nodes() if node not in (src, dst) and node.num_outputs > port]
    other = data.draw(st.sampled_from([None, *others]))
    if other is not None:
        part.add_edge(other, port, dst, slot)
    part.fix_source_and_sink_edges()
    with pytest.raises(InternalError, match="please report it"):
        check_partitioned(parts, whole, PartitionOptions())
