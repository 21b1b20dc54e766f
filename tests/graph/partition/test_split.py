"""Cutting a graph: names, sharing, memory, casts, references, start times, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from partita.errors import InternalError, InvalidArgumentError, NotFoundError
from partita.graph import DataType, Edge, Graph, NodeDef, PartitionOptions, graph_def_to_graph, partition, split_graph
from partita.graph.analysis.transfers import transfer_of
from partita.graph.builder import GraphBuilder
from partita.graph.partition.options import name_counter
from partita.graph.partition.printer import partitions_text
from partita.graph.protos.full_type_pb2 import FullTypeDef
from tests.goldens import assert_text
from tests.strategies import GraphCase, placed_cases

CPU0, CPU1, GPU0 = (f"/job:localhost/replica:0/task:0/device:{name}" for name in ("CPU:0", "CPU:1", "GPU:0"))


def placed(build: Callable[[GraphBuilder], object]) -> Graph:
    """The graph that `build` writes, every node on the device it requests."""
    b = GraphBuilder()
    build(b)
    graph = graph_def_to_graph(b.graph_def(), add_default_attrs=True)
    graph.assign_devices(graph.requested_device_indices())
    return graph


def _nodes(graph: Graph, options: PartitionOptions | None = None) -> dict[str, NodeDef]:
    parts = partition(graph, options)
    return {node.name: node for part in parts.values() for node in part.node}


class _Always(dict[str, int]):
    """A start time for every node."""

    def __contains__(self, _name: object) -> bool:
        return True

    def __missing__(self, _name: str) -> int:
        return 1


def diamond(b: GraphBuilder) -> None:
    """One value read twice, and waited for once, on another device."""
    with b.device(CPU0):
        x = b.placeholder("x", "float32", ())
    with b.device(CPU1):
        b.op("Neg", x, name="a")
        b.op("Abs", x, name="b")
        with b.control_dependencies(x):
            b.op("NoOp", name="c")


def test_a_tensor_crosses_once_per_destination_and_control_apart_from_data() -> None:
    """Two readers share one pair; the control edge goes by an empty constant and arrives as an identity."""
    parts = split_graph(placed(diamond))
    assert_text(
        partitions_text(parts),
        """
        /job:localhost/replica:0/task:0/device:CPU:0: 4 nodes
        x: float = Placeholder() {shape=[]}
        x/_0 = _Send(x) {edge_1_x to x/_1 @CPU:1}
        x/ctrl/_2: float = Const(^x) {value=[0]}
        x/_3 = _Send(x/ctrl/_2) {edge_3_x to x/_4 @CPU:1}

        /job:localhost/replica:0/task:0/device:CPU:1: 6 nodes
        x/_1: float = _Recv() {edge_1_x from x/_0 @CPU:0}
        a: float = Neg(x/_1)
        b: float = Abs(x/_1)
        x/_4: float = _Recv() {edge_3_x from x/_3 @CPU:0}
        x/_5: float = Identity(x/_4)
        c = NoOp(^x/_5)
        """,
    )
    nodes = {node.name: node for part in parts.values() for node in part.to_graph_def().node}
    assert (nodes["x/_0"].attr["_src"].s, nodes["x/_1"].attr["_dst"].s) == (b"x", b"a")


def test_names_and_incarnations_come_from_the_options() -> None:
    """Name counter and incarnations are the caller's; unsigned incarnations are written as signed numbers."""
    options = PartitionOptions(new_name=name_counter(7), get_incarnation=lambda device: (1 << 64) - 2)
    assert _nodes(placed(diamond), options)["x/_7"].attr["send_device_incarnation"].i == -2
    parts = split_graph(placed(diamond), PartitionOptions(new_name=name_counter(7), get_incarnation=lambda device: 3))
    assert_text(
        partitions_text(parts, only=lambda name: "/_" in name),
        """
        /job:localhost/replica:0/task:0/device:CPU:0: 3 of 4 nodes
        x/_7 = _Send(x) {edge_1_x to x/_8 @CPU:1, incarnation=3}
        x/ctrl/_9: float = Const(^x) {value=[0]}
        x/_10 = _Send(x/ctrl/_9) {edge_3_x to x/_11 @CPU:1, incarnation=3}

        /job:localhost/replica:0/task:0/device:CPU:1: 3 of 6 nodes
        x/_8: float = _Recv() {edge_1_x from x/_7 @CPU:0, incarnation=3}
        x/_11: float = _Recv() {edge_3_x from x/_10 @CPU:0, incarnation=3}
        x/_12: float = Identity(x/_11)
        """,
    )
    send = next(node for node in split_graph(placed(diamond), options)[CPU0].op_nodes() if node.is_send)
    assert transfer_of(send.properties).route.incarnation == (1 << 64) - 2


def test_edges_are_cast_on_the_way() -> None:
    """`should_cast` puts a cast on both sides of a crossing edge, after the numbering of the send's side."""

    def to_bfloat16(edge: Edge) -> DataType:
        return DataType.FLOAT if edge.is_control else DataType.BFLOAT16

    assert_text(
        partitions_text(split_graph(placed(diamond), PartitionOptions(should_cast=to_bfloat16))),
        """
        /job:localhost/replica:0/task:0/device:CPU:0: 5 nodes
        x: float = Placeholder() {shape=[]}
        x/_0: bfloat16 = Cast(x) {Truncate=true}
        x/_1 = _Send(x/_0) {edge_1_x to x/_2 @CPU:1}
        x/ctrl/_4: float = Const(^x) {value=[0]}
        x/_5 = _Send(x/ctrl/_4) {edge_3_x to x/_6 @CPU:1}

        /job:localhost/replica:0/task:0/device:CPU:1: 7 nodes
        x/_2: bfloat16 = _Recv() {edge_1_x from x/_1 @CPU:0}
        x/_3: float = Cast(x/_2)
        a: float = Neg(x/_3)
        b: float = Abs(x/_3)
        x/_6: float = _Recv() {edge_3_x from x/_5 @CPU:0}
        x/_7: float = Identity(x/_6)
        c = NoOp(^x/_7)
        """,
    )


def test_host_and_device_memory_of_one_device_are_joined_by_a_pair() -> None:
    """A shape on a GPU is in host memory; its reader in device memory gets a transfer that waits for its send."""

    def build(b: GraphBuilder) -> None:
        with b.device(GPU0):
            x = b.placeholder("x", "float32", (None,))
            shape = b.op("Shape", x, name="shape", out_type="int64")
            b.op("Cast", shape, name="float", DstT="float32")

    assert_text(
        partitions_text(split_graph(placed(build))),
        """
        /job:localhost/replica:0/task:0/device:GPU:0: 5 nodes
        x: float = Placeholder() {shape=[?]}
        shape: int64 = Shape(x)
        shape/_0 = _HostSend(shape) {edge_2_shape to shape/_1 @GPU:0}
        shape/_1: int64 = _Recv(^shape/_0) {edge_2_shape from shape/_0 @GPU:0}
        float: float = Cast(shape/_1)
        """,
    )


def test_reference_edges_share_nothing_and_wait() -> None:
    """Each reader of a reference has a pair of its own, whose recv waits for the reader's other inputs."""

    def build(b: GraphBuilder) -> None:
        with b.device(CPU0):
            v = b.variable("v", "float32", ())
        with b.device(CPU1):
            y = b.placeholder("y", "float32", ())
            b.op("AddV2", v, y, name="a")
            b.op("AddV2", v, y, name="b")

    assert_text(
        partitions_text(split_graph(placed(build))),
        """
        /job:localhost/replica:0/task:0/device:CPU:0: 3 nodes
        v: float_ref = VariableV2() {shape=[]}
        v/_0 = _Send(v) {edge_1_v to v/_1 @CPU:1}
        v/_2 = _Send(v) {edge_3_v to v/_3 @CPU:1}

        /job:localhost/replica:0/task:0/device:CPU:1: 5 nodes
        y: float = Placeholder() {shape=[]}
        v/_1: float = _Recv(^y) {edge_1_v from v/_0 @CPU:0, _start_time=0}
        a: float = AddV2(v/_1, y)
        v/_3: float = _Recv(^y) {edge_3_v from v/_2 @CPU:0, _start_time=0}
        b: float = AddV2(v/_3, y)
        """,
    )


def test_start_times_are_recorded_and_a_shared_recv_takes_the_earliest() -> None:
    """Nodes get their recorded time, the sending side that of the source, a recv that of its earliest reader."""
    times = {"x": 5, "a": 30, "b": 20, "c": 40}
    options = PartitionOptions(need_to_record_start_times=True, scheduling_for_recvs=True, start_times=times)
    assert_text(
        partitions_text(split_graph(placed(diamond), options)),
        """
        /job:localhost/replica:0/task:0/device:CPU:0: 4 nodes
        x: float = Placeholder() {_start_time=5, shape=[]}
        x/_0 = _Send(x) {edge_1_x to x/_1 @CPU:1, _start_time=5}
        x/ctrl/_2: float = Const(^x) {_start_time=5, value=[0]}
        x/_3 = _Send(x/ctrl/_2) {edge_3_x to x/_4 @CPU:1, _start_time=5}

        /job:localhost/replica:0/task:0/device:CPU:1: 6 nodes
        x/_1: float = _Recv() {edge_1_x from x/_0 @CPU:0, _start_time=20}
        a: float = Neg(x/_1) {_start_time=30}
        b: float = Abs(x/_1) {_start_time=20}
        x/_4: float = _Recv() {edge_3_x from x/_3 @CPU:0, _start_time=40}
        x/_5: float = Identity(x/_4) {_start_time=40}
        c = NoOp(^x/_5) {_start_time=40}
        """,
    )
    with pytest.raises(NotFoundError, match="_start_time"):
        partition(placed(diamond), PartitionOptions(scheduling_for_recvs=True))


def test_control_flow_moves_to_its_data_and_the_graph_stays() -> None:
    """A Switch runs where its data is; the graph that was cut is unchanged."""

    def build(b: GraphBuilder) -> None:
        with b.device(CPU0):
            x = b.placeholder("x", "float32", ())
            p = b.placeholder("p", "bool", ())
        with b.device(CPU1):
            b.op("Switch", x, p, name="s")

    graph = placed(build)
    before = str(graph)
    assert_text(
        partitions_text(split_graph(graph)),
        """
        /job:localhost/replica:0/task:0/device:CPU:0: 3 nodes
        x: float = Placeholder() {shape=[]}
        p: bool = Placeholder() {shape=[]}
        s: float, float = Switch(x, p)
        """,
    )
    assert str(graph) == before


def test_parts_can_be_larger_than_devices() -> None:
    """With tasks as locations nothing is cut between the devices of a task."""
    parts = split_graph(placed(diamond), PartitionOptions(node_to_loc=lambda node: "everything"))
    assert_text(
        partitions_text(parts),
        """
        everything: 4 nodes @/job:localhost/replica:0/task:0/...
        x: float = Placeholder() {shape=[]} @CPU:0
        a: float = Neg(x) @CPU:1
        b: float = Abs(x) @CPU:1
        c = NoOp(^x) @CPU:1
        """,
    )


def test_a_part_knows_the_devices_of_its_own_nodes_alone() -> None:
    """Thousands of parts do not each list thousands of devices."""
    parts = split_graph(placed(diamond))
    assert {name: list(part.device_names()) for name, part in parts.items()} == {CPU0: ["", CPU0], CPU1: ["", CPU1]}


def test_cutting_again_fills_in_incarnations() -> None:
    """A transfer whose incarnation was unknown (0) gets it when its graph is cut again."""
    first = partition(placed(diamond), PartitionOptions(get_incarnation=lambda device: 0))[CPU0]
    graph = graph_def_to_graph(first, expect_device=True, allow_internal_names=True)
    assert_text(
        partitions_text(split_graph(graph, PartitionOptions(get_incarnation=lambda device: 9))),
        """
        /job:localhost/replica:0/task:0/device:CPU:0: 4 nodes
        x: float = Placeholder() {shape=[]}
        x/_0 = _Send(x) {edge_1_x to CPU:1, incarnation=9}
        x/ctrl/_2: float = Const(^x) {value=[0]}
        x/_3 = _Send(x/ctrl/_2) {edge_3_x to CPU:1, incarnation=9}
        """,
    )


def test_what_cannot_be_cut() -> None:
    """Missing inputs and malformed devices are refused with the node's name and TensorFlow's status codes."""
    graph = placed(diamond)
    graph.remove_edge(next(edge for edge in graph.edges() if edge.dst.name == "a" and not edge.is_control))
    with pytest.raises(InvalidArgumentError, match="Incomplete graph, missing 1 inputs for a"):
        partition(graph)
    graph = placed(diamond)
    graph.node(2).assigned_device = "/foo:bar"
    with pytest.raises(InternalError, match="Malformed assigned device '/foo:bar'"):
        partition(graph)


@given(placed_cases())
def test_every_transfer_has_two_ends(case: tuple[GraphCase, dict[str, str]]) -> None:
    """Sends and recvs match one to one in all parts of their rendezvous keys; no original node is lost."""
    graph_case, placement = case
    graph_def = graph_case.graph_def
    graph = graph_def_to_graph(graph_def, add_default_attrs=True)
    for node in graph.op_nodes():
        node.assigned_device = placement[node.name]
    parts = split_graph(graph)
    nodes = [node for part in parts.values() for node in part.op_nodes()]
    ends = {True: [transfer_of(n.properties) for n in nodes if n.is_send]}
    ends[False] = [transfer_of(n.properties) for n in nodes if n.is_recv]
    assert sorted(ends[True]) == sorted(ends[False])
    assert len({end.tensor_name for end in ends[True]}) == len({(e.tensor_name, e.route) for e in ends[True]})
    assert {node.name for node in graph_def.node} <= {node.name for node in nodes}


def test_what_a_transfer_says_survives_copies_changes_and_another_cut() -> None:
    """Transfers of one type share their properties in the column, yet each node has attrs of its own."""
    parts = split_graph(placed(diamond))
    sent = [node for node in parts[CPU0].op_nodes() if node.is_send]
    assert len({id(parts[CPU0].shared_properties()[node.id]) for node in sent}) == 1
    texts = [node.attr("tensor_name") for node in sent]
    assert len(set(texts)) == len(texts) == 2
    again = split_graph(parts[CPU0], PartitionOptions(need_to_record_start_times=True, start_times=_Always()))[CPU0]
    for copied in (parts[CPU0].copy(), parts[CPU0].clone(), again):
        assert [node.attr("tensor_name") for node in copied.op_nodes() if node.is_send] == texts
    parts[CPU0].remove_node(parts[CPU0].node(min(n.id for n in parts[CPU0].op_nodes())))
    assert [node.attr("tensor_name") for node in parts[CPU0].copy().op_nodes() if node.is_send] == texts
    sent[0].add_attr("_mark", "here", "string")
    assert (sent[0].attr("_mark"), sent[0].attr("tensor_name")) == (b"here", texts[0])
    assert [p for p in parts[CPU0].all_properties() if p is not None][-1] is sent[-1].properties


def test_generated_nodes_have_the_debug_info_of_the_producer() -> None:
    """As in TensorFlow 2.21; an experimental type stays with its node."""
    b = GraphBuilder()
    a = b.op("Neg", b.constant(1.0, name="x", device="/cpu:0"), name="a", device="/cpu:0")
    b.op("Neg", a, name="b", device="/cpu:1")
    b.op("NoOp", name="c", device="/cpu:1", control=[a])
    graph_def = b.graph_def()
    for node in graph_def.node:
        if node.name == "a":
            node.experimental_debug_info.original_node_names.append("before")
            node.experimental_type.CopyFrom(FullTypeDef(type_id="TFT_TENSOR"))
    graph = graph_def_to_graph(graph_def, add_default_attrs=True)
    graph.assign_devices(graph.requested_device_indices())
    nodes = _nodes(graph)
    informed = {name for name, node in nodes.items() if node.HasField("experimental_debug_info")}
    assert informed == {"a", *(name for name in nodes if name.startswith("a/"))}
    assert len(informed) == 7
    assert [name for name, node in nodes.items() if node.HasField("experimental_type")] == ["a"]
