"""Loops over several devices get control loops where something crosses, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph import Graph, GraphDef, graph_def_to_graph, partition, split_graph
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.partition.printer import partitions_text
from tests.goldens import assert_text
from tests.strategies import cpu


def build_loop(
    b: GraphBuilder, start: Tensor, name: str, body: list[str], steer: str, with_cond: bool = True
) -> Tensor:
    """A loop whose body negates once on each device of `body` in turn; its control flow is on the device `steer`."""
    with b.device(steer):
        enter = b.op("Enter", start, name=f"{name}/enter", frame_name=name)
        merge = b.op("Merge", [enter[0], enter[0]], name=f"{name}/merge")
        predicate = b.op("Less", merge[0], merge[0], name=f"{name}/less")[0]
        if with_cond:
            predicate = b.op("LoopCond", predicate, name=f"{name}/cond")[0]
        switch = b.op("Switch", merge[0], predicate, name=f"{name}/switch")
    value = switch[1]
    for number, device in enumerate(body):
        value = b.op("Neg", value, name=f"{name}/body{number}", device=device)[0]
    with b.device(steer):
        b.op("NextIteration", value, name=f"{name}/next")
        return b.op("Exit", switch[0], name=f"{name}/exit")[0]


def closed(graph_def: GraphDef, *, filled_in: bool = True) -> Graph:
    """The graph with its back edges in place, on the devices its nodes ask for."""
    for node in graph_def.node:
        if node.op == "Merge" and node.name.endswith("/merge"):
            node.input[1] = node.name.replace("/merge", "/next")
    graph = graph_def_to_graph(graph_def, add_default_attrs=filled_in)
    graph.assign_devices(graph.requested_device_indices())
    return graph


def a_loop(body: list[str], with_cond: bool = True) -> Graph:
    b = GraphBuilder()
    build_loop(b, b.placeholder("x", "float32", (), device=cpu(0)), "f", body, cpu(0), with_cond)
    return closed(b.graph_def())


@given(body=st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_each_other_device_of_a_loop_has_one_control_loop(body: list[int]) -> None:
    """One Merge `_cloop` per device that something is sent to, and every receive in the loop waits for one."""
    parts = partition(a_loop([cpu(device) for device in body]))
    gates = {
        device: [n.name for n in part.node if n.name.startswith("_cloop") and n.op == "Merge"]
        for device, part in parts.items()
    }
    receivers = {cpu(b) for a, b in zip([0, *body], [*body, 0], strict=True) if a != b}
    assert {device for device, names in gates.items() if names} == receivers
    assert all(len(names) <= 1 for names in gates.values())
    for device, part in parts.items():
        for node in part.node:
            if node.op in ("_Recv", "_HostRecv"):
                assert [name for name in node.input if name.startswith("^_cloop")] == [f"^{gates[device][0]}"]


def test_a_loop_on_one_device_gets_nothing() -> None:
    whole = a_loop([cpu(0), cpu(0)])
    assert {device: str(part) for device, part in split_graph(whole).items()} == {cpu(0): str(whole)}


def test_names_are_drawn_loop_by_loop_and_the_constant_last() -> None:
    """Enter, Merge, Switch, NextIteration, constant: numbered in this order, each named after the receiving node."""
    part = split_graph(a_loop([cpu(1), cpu(1)]))[cpu(1)]
    assert_text(
        part,
        """
        10 nodes @/job:localhost/replica:0/task:0/device:CPU:1
        f/body0/_4: float = Const() {value=[0]}
        _cloopf/body0/_0: float = Enter(f/body0/_4) {frame_name="f"}
        _cloopf/body0/_1: float, int32 = Merge(_cloopf/body0/_0, _cloopf/body0/_3)
        f/switch/_11: float = _Recv(^_cloopf/body0/_1) {edge_8_f/switch from CPU:0}
        f/body0: float = Neg(f/switch/_11)
        f/body1: float = Neg(f/body0)
        f/body1/_12 = _Send(f/body1) {edge_10_f/body1 to CPU:0}
        f/cond/_15: bool = _HostRecv(^_cloopf/body0/_1) {edge_16_f/cond from CPU:0}
        _cloopf/body0/_2: float, float = Switch(_cloopf/body0/_1, f/cond/_15)
        _cloopf/body0/_3: float = NextIteration(_cloopf/body0/_2:1)
        """,
    )


def test_the_gate_of_the_outer_frame_starts_the_inner_control_loop() -> None:
    """A device that has nodes of the inner loop only gets control loops for both."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=cpu(0))
    with b.device(cpu(0)):
        enter = b.op("Enter", x, name="out/enter", frame_name="out")
        merge = b.op("Merge", [enter[0], enter[0]], name="out/merge")
        cond = b.op("LoopCond", b.op("Less", merge[0], merge[0], name="less")[0], name="out/cond")
        switch = b.op("Switch", merge[0], cond[0], name="out/switch")
    inner = build_loop(b, switch[1], "in", [cpu(1)], cpu(0))
    b.op("NextIteration", inner, name="out/next", device=cpu(0))
    assert_text(
        split_graph(closed(b.graph_def()))[cpu(1)],
        """
        14 nodes @/job:localhost/replica:0/task:0/device:CPU:1
        in/body0/_8: float = Const() {value=[0]}
        _cloopin/body0/_4: float = Enter(in/body0/_8) {frame_name="out"}
        _cloopin/body0/_5: float, int32 = Merge(_cloopin/body0/_4, _cloopin/body0/_7)
        _cloopin/body0/_0: float = Enter(_cloopin/body0/_5) {frame_name="in"}
        _cloopin/body0/_1: float, int32 = Merge(_cloopin/body0/_0, _cloopin/body0/_3)
        in/switch/_19: float = _Recv(^_cloopin/body0/_1) {edge_15_in/switch from CPU:0}
        in/body0: float = Neg(in/switch/_19)
        in/body0/_20 = _Send(in/body0) {edge_16_in/body0 to CPU:0}
        in/cond/_23: bool = _HostRecv(^_cloopin/body0/_1) {edge_23_in/cond from CPU:0}
        _cloopin/body0/_2: float, float = Switch(_cloopin/body0/_1, in/cond/_23)
        _cloopin/body0/_3: float = NextIteration(_cloopin/body0/_2:1)
        out/cond/_25: bool = _HostRecv(^_cloopin/body0/_5) {edge_28_out/cond from CPU:0}
        _cloopin/body0/_6: float, float = Switch(_cloopin/body0/_5, out/cond/_25)
        _cloopin/body0/_7: float = NextIteration(_cloopin/body0/_6:1)
        """,
    )


def test_a_loop_over_devices_needs_a_condition() -> None:
    """Without LoopCond no value tells the other devices when to stop."""
    with pytest.raises(InvalidArgumentError, match="A cross-device loop must have a pivot predicate: f"):
        partition(a_loop([cpu(1)], with_cond=False))
    partition(a_loop([cpu(0)], with_cond=False))


def test_the_graph_that_is_cut_stays_as_it_is() -> None:
    graph = a_loop([cpu(1)])
    before = graph.to_graph_def()
    partition(graph)
    assert graph.to_graph_def() == before


@pytest.mark.parametrize("without", ["parallel_iterations", "is_constant"])
@pytest.mark.parametrize("filled_in", [True, False])
def test_a_loop_without_default_attrs_is_cut_like_one_with_them(without: str, filled_in: bool) -> None:
    """Files may leave out default attrs; the control loops that cutting adds have ten parallel iterations then."""
    b = GraphBuilder()
    build_loop(b, b.placeholder("x", "float32", (), device=cpu(0)), "f", [cpu(1)], cpu(0))
    whole = b.graph_def()
    bare = GraphDef.FromString(whole.SerializeToString())
    for node in bare.node:
        if node.op == "Enter":
            del node.attr[without]
    parts = split_graph(closed(bare, filled_in=filled_in))
    assert partitions_text(parts) == partitions_text(split_graph(closed(whole)))
    control_loops = [node for node in parts[cpu(1)].op_nodes() if node.op == "Enter"]
    assert [node.attr("parallel_iterations") for node in control_loops] == [10]


def test_a_loop_without_a_frame_is_an_error_that_names_it() -> None:
    """`frame_name` has no default."""
    b = GraphBuilder()
    build_loop(b, b.placeholder("x", "float32", (), device=cpu(0)), "f", [cpu(1)], cpu(0))
    graph_def = b.graph_def()
    for node in graph_def.node:
        if node.op == "Enter":
            del node.attr["frame_name"]
    with pytest.raises(NotFoundError, match=r"No attr named 'frame_name' in NodeDef: .*f/enter"):
        partition(closed(graph_def))
