"""The graph core: ids, edges, EdgeSet orders, copies, and views."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InternalError, InvalidArgumentError, NotFoundError, OutOfRangeError
from partita.graph import DataType, Graph, GraphDef, Node, graph_def_to_graph


def _graph(*names: str) -> tuple[Graph, list[Node]]:
    graph = Graph()
    return graph, [graph.add_node(name, "AddV2", {"T": DataType.FLOAT}) for name in names]


def _edges(graph: Graph) -> list[tuple[int, int, int, int, int]]:
    return [(e.id, e.src.id, e.src_output, e.dst.id, e.dst_input) for e in graph.edges()]


def test_a_new_graph_has_source_sink_and_one_edge() -> None:
    """Node 0 is the source, node 1 the sink, edge 0 joins them, so the first own ids are 2 and 1."""
    graph, (a,) = _graph("a")
    assert [node.name for node in graph.nodes()] == ["_SOURCE", "_SINK", "a"]
    assert _edges(graph) == [(0, 0, -1, 1, -1)]
    assert a.id == 2
    assert graph.add_edge(graph.source, -1, a, -1).id == 1


def test_ids_are_never_reused() -> None:
    """After removals the next node and the next edge get new ids, and the counts are those of live ones."""
    graph, (a, b, c) = _graph("a", "b", "c")
    graph.add_edge(a, 0, b, 0)
    graph.add_edge(b, 0, c, 0)
    graph.remove_node(b)
    assert (graph.num_nodes, graph.num_node_ids) == (4, 5)
    assert (graph.num_edges, graph.num_edge_ids) == (1, 3)
    assert graph.add_node("d", "NoOp").id == 5
    assert graph.add_edge(a, 0, c, 1).id == 3
    assert graph.find_node("b") is None


def test_removed_and_foreign_nodes_are_refused() -> None:
    """Ids out of range, removed nodes and nodes of another graph are InvalidArgument; source and sink stay."""
    graph, (a,) = _graph("a")
    other, (foreign,) = _graph("a")
    for bad in (-1, 99):
        with pytest.raises(InvalidArgumentError, match=str(bad)):
            graph.node(bad)
    with pytest.raises(InvalidArgumentError, match="different graph"):
        graph.check_node(foreign)
    graph.remove_node(a)
    with pytest.raises(InvalidArgumentError, match="removed"):
        graph.node(a.id)
    with pytest.raises(InvalidArgumentError, match="_SOURCE"):
        graph.remove_node(graph.source)
    assert other.num_nodes == 3


def test_a_control_edge_is_added_once_and_noted_in_the_inputs() -> None:
    """A repeated control edge is refused unless duplicates are allowed; then the input strings stay."""
    graph = Graph()
    a = graph.add_node("a", "NoOp")
    b = graph.add_node("b", "NoOp", inputs=["^z"])
    assert graph.add_control_edge(a, b) is not None
    assert graph.add_control_edge(a, b) is None
    assert b.requested_inputs == ["^z", "^a"]
    edge = graph.add_control_edge(a, b, allow_duplicates=True)
    assert edge is not None
    assert b.requested_inputs == ["^z", "^a"]
    graph.remove_control_edge(edge)
    assert b.requested_inputs == ["^z"]


def test_update_edge_makes_a_new_edge_and_rewrites_the_input() -> None:
    """The old edge goes, the new one comes last, and the input string spells the port out even for 0."""
    graph, (a, b, c) = _graph("a", "b", "c")
    graph.add_edge(a, 0, c, 0)
    graph.add_edge(a, 0, c, 1)
    edge = graph.update_edge(b, 0, c, 1)
    assert edge.id == 3
    assert [(e.src.name, e.dst_input) for e in c.input_edges()] == [("a", 0), ("b", 1)]
    assert c.requested_inputs == ["a", "b:0"]
    with pytest.raises(OutOfRangeError, match=r"num of outputs: 1\) does not have output 1"):
        graph.update_edge(b, 1, c, 0)
    with pytest.raises(OutOfRangeError, match=r"num of inputs: 2\) does not have input 2"):
        graph.update_edge(b, 0, c, 2)
    with pytest.raises(InvalidArgumentError, match=r"Couldn't find edge to \{\{node a\}\}"):
        graph.update_edge(b, 0, a, 0)


def test_update_edge_of_a_node_that_was_made_without_its_inputs() -> None:
    """The input string takes its place before those of control inputs, however few there are."""
    graph, (a, b, c) = _graph("a", "b", "c")
    graph.add_edge(a, 0, c, 1)
    graph.add_control_edge(a, c)
    graph.update_edge(b, 0, c, 1)
    assert c.requested_inputs[1:] == ["b:0", "^a"]


def test_an_input_without_an_edge_is_exported_empty() -> None:
    """Another input does not move into its place, and a control input does not stand for it."""
    graph, (a, _, c) = _graph("a", "b", "c")
    graph.add_edge(a, 0, c, 1)
    graph.add_control_edge(a, c)
    assert list(graph.to_graph_def_sub_range(c.id).node[0].input) == ["", "a", "^a"]


def test_input_edges_name_the_missing_and_the_doubled_port() -> None:
    """A missing data input is InvalidArgument, a doubled one Internal, an unknown port names how many there are."""
    graph, (a, b) = _graph("a", "b")
    graph.add_edge(a, 0, b, 1)
    with pytest.raises(InvalidArgumentError, match="Missing edge input number: 0"):
        b.input_edges()
    with pytest.raises(NotFoundError, match="Could not find input edge 0 for b"):
        b.input_edge(0)
    with pytest.raises(InvalidArgumentError, match="only has 2 inputs"):
        b.input_edge(2)
    graph.add_edge(a, 0, b, 1)
    with pytest.raises(InternalError, match="Duplicate edge input number: 1"):
        b.input_edges()


@given(st.lists(st.integers(0, 11), max_size=12, unique=True), st.integers(1, 12))
def test_edges_of_a_node_follow_the_small_edge_set(removals: list[int], count: int) -> None:
    """Up to eight edges the last one fills the gap of a removed one; beyond that the order of insertion stays."""
    graph = Graph()
    hub = graph.add_node("hub", "NoOp")
    edges = [graph.add_edge(hub, -1, graph.add_node(f"n{i}", "NoOp"), -1) for i in range(count)]
    expected = [edge.id for edge in edges]
    assert [edge.id for edge in hub.out_edges()] == expected
    for index in removals:
        if index < count:
            at = expected.index(edges[index].id)
            if len(expected) > 8:
                expected.pop(at)
            else:
                expected[at] = expected[-1]
                expected.pop()
            graph.remove_edge(edges[index])
            assert [edge.id for edge in hub.out_edges()] == expected


def test_one_counter_serves_all_names() -> None:
    """Generated names share one counter over all prefixes."""
    graph = Graph()
    assert [graph.new_name(prefix) for prefix in ("a", "b", "a")] == ["a/_0", "b/_1", "a/_2"]


def test_attrs_of_nodes_that_share_properties_change_apart() -> None:
    """Setting or clearing an attr of one copy leaves the other as it was."""
    graph, (a,) = _graph("a")
    other = graph.copy()
    twin = other.find_node("a")
    assert twin is not None
    assert twin.properties is a.properties
    a.add_attr("_note", 3, "int")
    assert a.attr("_note") == 3
    assert "_note" not in twin.attrs
    a.clear_attr("_note")
    with pytest.raises(NotFoundError, match="No attr named '_note'"):
        a.attr("_note")


def test_attrs_are_added_with_the_type_they_have() -> None:
    """The declared type, `type_string`, or that of the value; a value that does not fit changes nothing."""
    _, (a,) = _graph("a")
    values = {"_i": 3, "_b": True, "_f": 0.5, "_s": "text", "_t": DataType.INT32, "_l": [1, 2], "_e": []}
    for name, value in values.items():
        a.add_attr(name, value)
    assert [a.attrs.message(name).WhichOneof("value") for name in values] == [
        "i",
        "b",
        "f",
        "s",
        "type",
        "list",
        "list",
    ]
    assert [a.attr(name) for name in values] == [3, True, 0.5, b"text", DataType.INT32, (1, 2), ()]
    before = a.properties
    for value, type_string, says in (
        (3, "whole number", "Attr '_x': 'whole number' is no type of an attr"),
        (3, "list(thing)", "'list(thing)' is no type"),
        ("text", "int", "Attr '_x': 'text' is no value for an attr of type int"),
        (object(), "", "no value for an attr of type string"),
    ):
        with pytest.raises(InvalidArgumentError, match=re.escape(says)):
            a.add_attr("_x", value, type_string)
    assert a.properties is before


def test_attrs_that_are_left_out_read_as_the_default_of_the_op() -> None:
    """They are not counted as present; a missing one without default is an error that names it."""
    node = GraphDef(node=[{"name": "x", "op": "Placeholder", "attr": {"dtype": {"type": "DT_FLOAT"}}}])
    placeholder = graph_def_to_graph(node).find_node("x")
    assert placeholder is not None
    attrs = placeholder.attrs
    assert attrs["shape"] is None
    assert attrs.get("shape", "nothing") is None
    assert attrs.message("shape").shape.unknown_rank
    assert list(attrs) == ["dtype"]
    assert "shape" not in attrs
    assert attrs.get("color", "nothing") == "nothing"
    for read in (attrs.__getitem__, attrs.message, attrs.serialised):
        with pytest.raises(NotFoundError, match="No attr named 'color'"):
            read("color")


def test_devices_are_interned() -> None:
    """Equal device names share an index; the empty name is index 0; the assigned device wins over the requested."""
    graph = Graph()
    a = graph.add_node("a", "NoOp", device="/cpu:0")
    b = graph.add_node("b", "NoOp", device="/cpu:0")
    assert graph.intern_device("") == 0
    assert graph.intern_device("/cpu:0") == 1
    assert (a.assigned_device, a.device) == ("", "/cpu:0")
    a.assigned_device = "/gpu:0"
    assert (a.device, b.device) == ("/gpu:0", "/cpu:0")


def test_a_copy_has_dense_ids_and_one_more_source_sink_edge() -> None:
    """Order and cost ids stay, and the copied source-sink edge follows the copy's own."""
    graph, (a, b, c) = _graph("a", "b", "c")
    graph.add_edge(b, 0, c, 0)
    graph.add_edge(a, 0, c, 1)
    graph.remove_node(a)
    copy = graph.copy()
    assert [(node.id, node.name, node.cost_id) for node in copy.op_nodes()] == [(2, "b", 3), (3, "c", 4)]
    assert _edges(copy) == [(0, 0, -1, 1, -1), (1, 0, -1, 1, -1), (2, 2, 0, 3, 0)]
    assert graph.num_nodes == 4


def test_a_copy_of_some_nodes_has_the_edges_between_them() -> None:
    """Their input strings come along; ids are dense in the old order."""
    graph, (a, b, c) = _graph("a", "b", "c")
    graph.add_edge(a, 0, b, 0)
    graph.add_edge(b, 0, c, 0)
    graph.set_requested_inputs(c.id, ["b", "a"])
    copy = graph.copy(np.array([True, True, False, True, True]))
    assert [(node.id, node.name, node.cost_id) for node in copy.op_nodes()] == [(2, "b", 3), (3, "c", 4)]
    assert _edges(copy) == [(0, 0, -1, 1, -1), (1, 0, -1, 1, -1), (2, 2, 0, 3, 0)]
    assert [copy.given_inputs(i) for i in (2, 3)] == [None, ["b", "a"]]


def test_a_clone_keeps_ids_and_stands_alone() -> None:
    """A clone has the same ids, gaps included; changing it does not change the original."""
    graph, (a, b, _) = _graph("a", "b", "c")
    graph.add_edge(a, 0, b, 0)
    graph.remove_node(a)
    clone = graph.clone()
    assert _edges(clone) == _edges(graph)
    clone.add_edge(clone.node(b.id), 0, clone.node(b.id + 1), 0)
    clone.node(b.id).assigned_device = "/cpu:1"
    assert clone.num_edges == graph.num_edges + 1
    assert b.assigned_device == ""


def test_loose_ends_hang_on_source_and_sink_in_id_order() -> None:
    """Every node without in-edges gets one from the source, every node without out-edges one to the sink."""
    graph, (a, b, _) = _graph("a", "b", "c")
    graph.add_edge(a, 0, b, 0)
    graph.fix_source_and_sink_edges()
    assert _edges(graph)[2:] == [(2, 0, -1, 2, -1), (3, 3, -1, 1, -1), (4, 0, -1, 4, -1), (5, 4, -1, 1, -1)]
    before = _edges(graph)
    graph.fix_source_and_sink_edges()
    assert _edges(graph) == before


def test_export_writes_what_the_edges_say() -> None:
    """Data inputs by port, then control inputs sorted by name; gaps keep the string the node was made with."""
    graph = Graph()
    b = graph.add_node("b", "NoOp")
    a = graph.add_node("a", "NoOp")
    split = graph.add_node("s", "Split", {"T": DataType.FLOAT, "num_split": 2})
    out = graph.add_node("out", "AddV2", {"T": DataType.FLOAT}, inputs=["later:1", "x"])
    graph.add_edge(split, 1, out, 1)
    graph.add_edge(b, -1, out, -1)
    graph.add_edge(a, -1, out, -1)
    graph.add_edge(graph.source, -1, out, -1)
    out.assigned_device = "/cpu:7"
    node = graph.to_graph_def_sub_range(out.id).node[0]
    assert list(node.input) == ["later:1", "s:1", "^a", "^b"]
    assert node.device == "/cpu:7"


def test_edge_arrays_list_living_edges() -> None:
    """The columns of edges agree with the views, edge by edge."""
    graph, (a, b, c) = _graph("a", "b", "c")
    graph.add_edge(a, 0, b, 0)
    graph.remove_edge(graph.add_edge(a, 0, b, 1))
    graph.add_edge(b, 0, c, 0)
    arrays = graph.edge_arrays()
    columns = np.stack([arrays.id, arrays.src, arrays.src_output, arrays.dst, arrays.dst_input], axis=1)
    assert list(map(tuple, columns.tolist())) == _edges(graph)


@given(st.lists(st.integers(0, 5), max_size=8), st.lists(st.integers(0, 5), max_size=8))
def test_kinds_stay_right_when_nodes_are_added_in_bulk(first: list[int], second: list[int]) -> None:
    """Also when one properties object is given as several kinds."""
    graph = Graph()
    pair = [graph.add_node(f"k{i}", "Const", {"value": float(i), "dtype": DataType.FLOAT}).properties for i in (0, 1)]
    other = Graph()
    kinds = [pair[0], pair[1], pair[0], other.source.properties, pair[1], other.source.properties]
    for numbers in (first, second):
        names = [f"n{other.num_node_ids + i}" for i in range(len(numbers))]
        other.extend_nodes_of_kinds(names, kinds, np.array(numbers, np.int64), [0] * len(numbers))
    distinct, kind_of = other.distinct_properties()
    assert [distinct[kind] for kind in kind_of.tolist()] == other.all_properties()
    assert len({id(kind) for kind in distinct}) == len(distinct)


@pytest.mark.parametrize(("node", "message"), [(None, "Node is null"), ("x", "'x' is no node of a graph")])
def test_what_is_no_node_is_refused(node: Any, message: str) -> None:  # what a caller without types may give
    """None gives TensorFlow's message."""
    with pytest.raises(InvalidArgumentError, match=message):
        Graph().check_node(node)
