"""The rules of a placed graph: each is broken once."""

from __future__ import annotations

from collections.abc import Callable

from partita.devices.placement.candidates import DeviceSet
from partita.devices.placement.invariants import check_placed
from partita.devices.placement.placer import place
from partita.graph import Graph, Node, graph_def_to_graph
from partita.graph.builder import GraphBuilder
from tests.invariants import assert_all_are_broken
from tests.strategies import cpu

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
DEVICES = [cpu(0), cpu(1), GPU]


def _checked(change: Callable[[Graph], object]) -> Callable[[], None]:
    """The check of a placed variable with a reader, a group of two, and text, after a change."""

    def check() -> None:
        b = GraphBuilder()
        variable = b.op("VarHandleOp", name="v", dtype="float32", shape=())
        b.op("ReadVariableOp", variable, name="read", dtype="float32")
        x = b.placeholder("x", "float32", (), device=cpu(0))
        b.op("Neg", x, name="leader")
        b.op("Abs", x, name="member", _class=["loc:@leader"])
        b.op("StringLength", b.placeholder("text", "string", ()), name="length")
        graph = graph_def_to_graph(b.graph_def(), add_default_attrs=True)
        settled = graph.assigned_device_indices()
        place(graph, DEVICES, allow_soft_placement=False)
        change(graph)
        check_placed(graph, settled, DeviceSet(DEVICES), soft=False)

    return check


def _node(graph: Graph, name: str) -> Node:
    node = graph.find_node(name)
    assert node is not None
    return node


def _on(name: str, device: str) -> Callable[[], None]:
    return _checked(lambda graph: graph.assign_device(_node(graph, name).id, device))


def _moved() -> None:
    """A graph that was placed is placed again, elsewhere."""
    b = GraphBuilder()
    b.placeholder("x", "float32", ())
    graph = graph_def_to_graph(b.graph_def(), add_default_attrs=True)
    _node(graph, "x").assigned_device = cpu(0)
    settled = graph.assigned_device_indices()
    _node(graph, "x").assigned_device = cpu(1)
    check_placed(graph, settled, DeviceSet(DEVICES), soft=False)


def test_every_rule_is_reported_when_it_is_broken() -> None:
    assert_all_are_broken(
        "devices/placement/invariants.py",
        {
            "every node has a device": _on("x", ""),
            "a node is on a device that there is": _on("x", cpu(7)),
            "a node that has a device stays there": _moved,
            "a reference or a resource handle does not leave its device": _on("read", cpu(1)),
            "a device has a kernel for its nodes": _on("length", GPU),
            "colocated nodes are on one device": _on("member", cpu(1)),
            "a node is where it asks to be": _on("x", cpu(1)),
        },
    )
