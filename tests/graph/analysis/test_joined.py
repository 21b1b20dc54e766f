"""Partitions joined again: the columns say what the partitions say, and every receive has its send."""

from __future__ import annotations

import pytest
from hypothesis import given

from partita.errors import InvalidArgumentError
from partita.graph import DataType, Graph, GraphDef, graph_def_to_graph, split_graph
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.analysis.transfers import transfer_of
from partita.graph.ops.record import NodeClass
from tests.large_graphs import counted_loop, many_nodes
from tests.strategies import GraphCase, placed_cases


def placed(graph_def: GraphDef | bytes) -> Graph:
    """The graph, with every node assigned to the device it asks for."""
    graph = graph_def_to_graph(graph_def, add_default_attrs=True)
    for node in graph.op_nodes():
        node.assigned_device = node.requested_device
    return graph


def reread(parts: dict[str, Graph]) -> dict[str, Graph]:
    """The partitions, written and read: their transfers are in no common table."""
    texts = {place: part.to_graph_def().SerializeToString() for place, part in parts.items()}
    return {place: graph_def_to_graph(text, allow_internal_names=True) for place, text in texts.items()}


def assert_says_what_the_parts_say(parts: dict[str, Graph]) -> None:
    """Node by node: name, place, properties and inputs; for a receive the send with its key."""
    joined = JoinedGraph(parts)
    nodes = [(place, node) for place, part in parts.items() for node in part.op_nodes()]
    number = {(place, node.id): n for n, (place, node) in enumerate(nodes)}
    assert joined.names == [node.name for _, node in nodes]
    assert len(joined) == len(nodes)
    for n, (place, node) in enumerate(nodes):
        assert joined.places[joined.place[n]] == place
        assert joined.devices[joined.device_of[n]] == (node.assigned_device or node.requested_device or place)
        assert joined.op(n) == joined.properties[n].op == node.op
        assert joined.properties[n].output_types == node.properties.output_types
        inputs = [(number[place, e.src.id], e.src_output) for e in node.input_edges()]
        assert joined.inputs_of(n) == inputs
        controls = [number[place, e.src.id] for e in node.in_edges() if e.is_control and e.src.is_op]
        assert sorted(joined.controls_of(n)) == sorted(controls)
        if not node.op_def.record.is_transfer:
            assert joined.sender[n] == joined.transfers.route_of[n] == -1
            continue
        transfer = transfer_of(node.properties)
        assert joined.transfers.of(n) == transfer
        assert joined.transfers.routes[joined.transfers.route_of[n]] == transfer.route
        if node.op_def.record.is_recv:
            assert transfer_of(nodes[joined.sender[n]][1].properties).key == transfer.key
    assert_in_order(joined)


def assert_in_order(joined: JoinedGraph) -> None:
    """Every node once, behind all that it waits for; `consumers` has each wait once."""
    position = {n: i for i, n in enumerate(joined.order().tolist())}
    assert len(position) == len(joined)
    waits = []
    for n in range(len(joined)):
        sources = [src for src, _ in joined.inputs_of(n)] + joined.controls_of(n)
        sources = [src for src in sources if not joined.is_back_edge(src, n)]
        sources += [send for send in joined.sender[n : n + 1].tolist() if send >= 0]
        assert all(position[src] < position[n] for src in sources)
        waits += [(src, n) for src in sources]
    starts, targets = joined.consumers()
    pairs = [(n, int(target)) for n in range(len(joined)) for target in targets[starts[n] : starts[n + 1]]]
    assert sorted(pairs) == sorted(waits)


@given(placed_cases())
def test_columns_say_what_the_partitions_say(case: tuple[GraphCase, dict[str, str]]) -> None:
    """For partitions as they are cut and as they are read from files, and for a mixture of both."""
    parts = split_graph(placed(case[0].on(case[1])))
    assert_says_what_the_parts_say(parts)
    files = reread(parts)
    assert_says_what_the_parts_say(files)
    assert_says_what_the_parts_say({place: (parts, files)[i % 2][place] for i, place in enumerate(parts)})


def test_a_loop_over_two_devices() -> None:
    """Its back edges are left out of the order."""
    joined = JoinedGraph(split_graph(placed(counted_loop(3))))
    back = [(src, n) for n in range(len(joined)) for src, _ in joined.inputs_of(n) if joined.is_back_edge(src, n)]
    assert len(back) >= 2
    assert {joined.node_class(src) for src, _ in back} == {NodeClass.NEXT_ITERATION}
    assert_in_order(joined)


def test_two_cuts_at_once() -> None:
    """Rows of one table are not taken for rows of the other."""
    one, two = (split_graph(placed(many_nodes(40, devices=devices))) for devices in (2, 3))
    joined = JoinedGraph({**{f"1{name}": part for name, part in one.items()}, **{f"2{n}": p for n, p in two.items()}})
    for recv, send in enumerate(joined.sender.tolist()):
        if send >= 0:
            assert joined.places[joined.place[recv]][0] == joined.places[joined.place[send]][0]
            assert joined.transfers.of(recv).key == joined.transfers.of(send).key


def test_a_receive_without_a_send_says_what_it_waits_for() -> None:
    """And so do others: the error names up to three receives."""
    parts = split_graph(placed(many_nodes(60, devices=2)))
    name = next(iter(parts))
    for alone in ({name: parts[name]}, reread({name: parts[name]})):
        with pytest.raises(InvalidArgumentError, match="nothing sends 'edge_") as e:
            JoinedGraph(alone)
        assert e.value.node
        assert e.value.op == "_Recv"
        assert "more receives wait for" in e.value.message


def waiting_part(own: str, other: str) -> Graph:
    """A partition that sends `own` once it has received `other`."""
    graph = Graph()
    ends = {"send_device_incarnation": 1, "client_terminated": False, "recv_device": "/device:CPU:0"}
    recv = {"tensor_type": DataType.FLOAT, "tensor_name": other, "send_device": "/device:CPU:1", **ends}
    send = {"T": DataType.FLOAT, "tensor_name": own, "send_device": "/device:CPU:1", **ends}
    received = graph.add_node(f"get_{other}", "_Recv", recv)
    graph.add_edge(received, 0, graph.add_node(f"put_{own}", "_Send", send), 0)
    return graph


def test_a_cycle_names_the_receives_that_wait() -> None:
    """Two partitions that wait for each other."""
    joined = JoinedGraph({"cpu:0": waiting_part("a", "b"), "cpu:1": waiting_part("b", "a")})
    with pytest.raises(InvalidArgumentError, match="waits for itself") as error:
        joined.order()
    assert "'get_b' waits for 'b' from '/device:CPU:1'" in error.value.message
    assert "'get_a' waits for 'a' from" in error.value.message
