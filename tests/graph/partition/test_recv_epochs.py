"""Receives wait for the trigger six epochs before they are due, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph import Graph, GraphDef, PartitionOptions, add_control_edges, graph_def_to_graph, partition
from partita.graph.partition.recv_epochs import MAX_EPOCHS, PREFETCH_EPOCHS, topological_order
from partita.graph.tensor_id import parse_tensor_name
from tests.strategies import GraphCase, placed_cases


def scheduled(graph: Graph, spacing: int) -> tuple[dict[str, GraphDef], PartitionOptions]:
    """The parts of a graph whose nodes start `spacing` microseconds apart, by id."""
    times = {node.name: node.id * spacing for node in graph.op_nodes()}
    options = PartitionOptions(need_to_record_start_times=True, scheduling_for_recvs=True, start_times=times)
    return partition(graph, options), options


def placed(case: tuple[GraphCase, dict[str, str]]) -> Graph:
    graph = graph_def_to_graph(case[0].graph_def, add_default_attrs=True)
    for node in graph.op_nodes():
        node.assigned_device = case[1][node.name]
    return graph


@given(placed_cases())
def test_the_order_is_topological_and_never_goes_back_in_time(case: tuple[GraphCase, dict[str, str]]) -> None:
    """Every node of an acyclic part comes after its producers; its time is not before the ones popped earlier."""
    for part in scheduled(placed(case), 7)[0].values():
        order = topological_order(part)
        position = {part.node[index].name: place for place, (index, _) in enumerate(order)}
        assert len(position) == len(part.node)
        times = [time for _, time in order]
        assert times == sorted(times)
        for node in part.node:
            assert all(position[parse_tensor_name(name).node] < position[node.name] for name in node.input)


@given(placed_cases())
def test_only_triggers_and_edges_to_receives_are_added(case: tuple[GraphCase, dict[str, str]]) -> None:
    """Taking the triggers away again gives the parts as they were; the result still imports, so it has no cycle."""
    parts, options = scheduled(placed(case), 50)
    before = {location: GraphDef.FromString(part.SerializeToString()) for location, part in parts.items()}
    assert add_control_edges(parts, options) is parts
    for location, part in parts.items():
        triggers = [node for node in part.node if node.name.startswith("synch_")]
        assert 0 < len(triggers) <= MAX_EPOCHS
        graph_def_to_graph(part, allow_internal_names=True)
        del part.node[len(part.node) - len(triggers) :]
        for node in part.node:
            if node.op == "_Recv" and node.input and node.input[-1].startswith("^synch_"):
                del node.input[-1]
        assert part == before[location]


def chain(length: int, receives_at: list[int]) -> GraphDef:
    """No-ops a hundred microseconds apart, and receives that start at given times."""
    part = GraphDef()
    for number in range(length):
        node = part.node.add(name=f"n{number}", op="NoOp", device="/device:CPU:0")
        node.input.extend([f"^n{number - 1}"] if number else [])
        node.attr["_start_time"].i = number * 100
    for number, time in enumerate(receives_at):
        node = part.node.add(name=f"r{number}", op="_Recv", device="/device:CPU:0")
        node.attr["_start_time"].i = time
    return part


def test_a_receive_waits_for_the_epoch_six_before_its_own() -> None:
    """20 nodes span 1900 us: epochs of 20 us, so a receive at 1000 us is in epoch 50 and follows synch_44."""
    part = chain(20, [0, 119, 120, 1000])
    add_control_edges({"": part}, PartitionOptions())
    nodes = {node.name: node for node in part.node}
    assert [list(nodes[f"r{i}"].input) for i in range(4)] == [[], [], ["^synch_0/_0"], ["^synch_44/_44"]]
    assert nodes["synch_44/_44"].attr["_start_time"].i == 880
    assert list(nodes["synch_44/_44"].input) == ["^n8"]
    assert PREFETCH_EPOCHS == 6


def test_a_node_that_would_start_before_its_producer_is_moved() -> None:
    part = chain(3, [])
    part.node[2].attr["_start_time"].i = 0
    assert topological_order(part) == [(0, 0), (1, 100), (2, 101)]


def test_a_receive_is_due_when_what_it_waits_for_lets_it_start() -> None:
    """Its attr says 0 us, but its control input starts at 1000 us, so it is in epoch 50 and not in epoch 0."""
    part = chain(20, [0])
    part.node[-1].input.append("^n10")
    add_control_edges({"": part}, PartitionOptions())
    (receive,) = [node for node in part.node if node.op == "_Recv"]
    assert list(receive.input) == ["^n10", "^synch_44/_44"]
    assert receive.attr["_start_time"].i == 0, "the attr stays as it was given"


@given(placed_cases(), st.data())
def test_receives_go_by_the_times_of_the_order(case: tuple[GraphCase, dict[str, str]], data: st.DataObject) -> None:
    """Whatever the attrs claim, a receive follows the trigger six epochs before the time the order gives it."""
    parts, options = scheduled(placed(case), 50)
    for part in parts.values():
        for node in part.node:
            node.attr["_start_time"].i = data.draw(st.integers(0, 5000))
        for node in [node for node in part.node if node.op == "_Recv"]:
            node.input.extend(f"^{other.name}" for other in part.node if not other.input and other.op != "_Recv")
    due = {id(part): topological_order(part) for part in parts.values()}
    add_control_edges(parts, options)
    for part in parts.values():
        order = due[id(part)]
        resolution = order[-1][1] // MAX_EPOCHS + 1
        for index, time in order:
            node, epoch = part.node[index], time // resolution - PREFETCH_EPOCHS
            waits = [name for name in node.input if name.startswith("^synch_")]
            if node.op == "_Recv" and epoch >= 0:
                assert [name.split("/")[0] for name in waits] == [f"^synch_{epoch}"]
            else:
                assert not waits


def test_an_unknown_input_is_named() -> None:
    part = chain(2, [])
    part.node[1].input.append("^nobody")
    with pytest.raises(InvalidArgumentError, match=r"n1.*nobody"):
        add_control_edges({"": part}, PartitionOptions())


def test_a_missing_start_time_changes_nothing() -> None:
    """The error names the attr and the node; the other parts are as before."""
    good, bad = chain(3, []), chain(3, [])
    del bad.node[1].attr["_start_time"]
    before = good.SerializeToString(deterministic=True)
    with pytest.raises(NotFoundError, match=r"_start_time.*n1"):
        add_control_edges({"a": good, "b": bad}, PartitionOptions())
    assert good.SerializeToString(deterministic=True) == before
