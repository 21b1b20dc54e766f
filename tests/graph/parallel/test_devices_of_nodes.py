"""What uses a variable, or is colocated with a node, follows it to the device that a pass requests."""

from __future__ import annotations

from partita.graph import DataType, Graph, GraphBuilder
from partita.graph.parallel.devices_of_nodes import direct_handles, follow_groups, follow_variables
from tests.goldens import assert_text


def variables() -> GraphBuilder:
    """Two variables; w is on GPU:1, is read on CPU:0, and gives v its first value."""
    b = GraphBuilder()
    attrs = {"dtype": DataType.FLOAT, "shape": (2,)}
    w = b.op("VarHandleOp", name="w", attrs={**attrs, "shared_name": "w"}, device="/gpu:1")
    v = b.op("VarHandleOp", name="v", attrs={**attrs, "shared_name": "v"})
    passed = b.op("Identity", b.op("Identity", w, name="in"), name="in2")
    b.op("ReadVariableOp", passed, name="read", dtype=DataType.FLOAT, device="/cpu:0")
    first = b.op("ReadVariableOp", w, name="first", dtype=DataType.FLOAT, attrs={"_class": [b"loc:@v"]})
    b.op("AssignVariableOp", v, first, name="assign")
    return b


def test_users_read_the_handle_itself() -> None:
    """The nodes that passed it on are gone."""
    graph = variables().graph()
    direct_handles(graph)
    assert_text(
        graph,
        """
        5 nodes
        w: resource = VarHandleOp() {dtype=DT_FLOAT, shape=[2], shared_name="w"} @?/gpu:1
        v: resource = VarHandleOp() {dtype=DT_FLOAT, shape=[2], shared_name="v"}
        read: float = ReadVariableOp(w) @?/cpu:0
        first: float = ReadVariableOp(w) {_class=["loc:@v"]}
        assign = AssignVariableOp(v, first)
        """,
    )


def test_users_are_where_the_variable_is() -> None:
    """Also those of a requested device, and beside other nodes; variables without a device move nothing."""
    graph = variables().graph()
    follow_variables(graph)
    assert_text(
        graph,
        """
        7 nodes
        w: resource = VarHandleOp() {dtype=DT_FLOAT, shape=[2], shared_name="w"} @?/gpu:1
        v: resource = VarHandleOp() {dtype=DT_FLOAT, shape=[2], shared_name="v"}
        in: resource = Identity(w) @?/gpu:1
        in2: resource = Identity(in) @?/gpu:1
        read: float = ReadVariableOp(in2) @?/gpu:1
        first: float = ReadVariableOp(w) @?/gpu:1
        assign = AssignVariableOp(v, first)
        """,
    )


def test_a_group_follows_its_first_device() -> None:
    """Over several nodes; a group without a device, or of itself, stays where it is."""
    b = GraphBuilder()
    b.op("NoOp", name="a", device="/gpu:0")
    for name, other in {"b": "a", "c": "b", "d": "d", "e": "f", "f": "e", "g": "nobody"}.items():
        b.op("NoOp", name=name, attrs={"_class": [f"loc:@{other}".encode()]})
    graph: Graph = b.graph()
    follow_groups(graph)
    assert {node.name: node.requested_device for node in graph.op_nodes() if node.requested_device} == dict.fromkeys(
        "abc", "/gpu:0"
    )
