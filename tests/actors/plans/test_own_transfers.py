"""`_Send` and `_Recv` nodes that a graph came with: they meet in the step's rendezvous, and nobody has to listen.

What TensorFlow 2.21 does with each of these graphs was tried out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import trio
import trio.testing
from hypothesis import given, strategies as st

from partita.actors.sessions.cluster_session import open_cluster_session
from partita.actors.sessions.local_session import open_session
from partita.devices.catalog import device_spec
from partita.devices.cluster import Cluster
from partita.devices.device import Device
from partita.errors import CancelledError, DeadlineExceededError, InvalidArgumentError
from partita.graph import GraphDef, RunOptions
from partita.graph.attrs import encode
from partita.graph.dtypes import DataType
from partita.graph.protos import NodeDef
from partita.graph.tensor import numpy_to_tensor
from tests.hangs import all_waiting
from tests.runs import assert_same_values, values
from tests.strategies import GraphCase, cpu, placed_cases

FLOAT = encode(DataType.FLOAT, "type")
OPS = [("_Send", "_Recv"), ("_HostSend", "_HostRecv"), ("_Send", "_HostRecv")]


def add_transfer(graph: GraphDef, name: str, op: str, device: str, route: tuple[str, str], key: str = "t") -> NodeDef:
    """A float32 transfer node under a key of its own name space."""
    node = graph.node.add(name=name, op=op, device=device)
    node.attr["tensor_type" if op.endswith("Recv") else "T"].CopyFrom(FLOAT)
    node.attr["tensor_name"].s = key.encode()
    node.attr["send_device"].s, node.attr["recv_device"].s = route[0].encode(), route[1].encode()
    node.attr["send_device_incarnation"].i = 1
    return node


def add_constant(graph: GraphDef, value: float, device: str = "") -> None:
    node = graph.node.add(name="c", op="Const", device=device)
    node.attr["dtype"].CopyFrom(FLOAT)
    node.attr["value"].tensor.CopyFrom(numpy_to_tensor(np.array(value, np.float32)))


def lone_send(op: str = "_Send", key: str = "t", route: tuple[str, str] = (cpu(0), cpu(0))) -> GraphDef:
    """c is sent by s and received by nobody; i is c after s."""
    graph = GraphDef()
    add_constant(graph, 3)
    add_transfer(graph, "s", op, "", route, key).input.append("c")
    after = graph.node.add(name="i", op="Identity", input=["c", "^s"])
    after.attr["T"].CopyFrom(FLOAT)
    return graph


def pair(ops: tuple[str, str], devices: tuple[str, str]) -> GraphDef:
    """s sends 3, r receives it."""
    graph = GraphDef()
    add_constant(graph, 3, devices[0])
    add_transfer(graph, "s", ops[0], devices[0], devices).input.append("c")
    add_transfer(graph, "r", ops[1], devices[1], devices)
    return graph


@pytest.mark.parametrize("op", ["_Send", "_HostSend"])
@pytest.mark.parametrize("receiver", [cpu(0), cpu(1), "/job:worker/replica:0/task:7/device:GPU:3", "/cpu:0", ""])
async def test_what_nobody_receives_is_dropped(op: str, receiver: str) -> None:
    """A graph with one partition that sends runs again and again, and so do the nodes after the send."""
    async with open_session(lone_send(op, route=(cpu(0), receiver)), "cpu:1") as session:
        for _ in range(3):
            assert await session.run("i", targets="s") == [3]
        assert await session.run([], targets="s") == []
        handle = await session.partial_run_setup("i", [], "s")
        assert await session.partial_run(handle, "i") == [3]
        assert session.statistics().steps_running == 0


@pytest.mark.parametrize("ops", OPS)
@pytest.mark.parametrize("receiver", [0, 1])
async def test_a_pair_hands_over_its_tensor_in_one_partition_or_two(ops: tuple[str, str], receiver: int) -> None:
    async with open_session(pair(ops, (cpu(0), cpu(receiver))), "cpu:2") as session:
        for _ in range(2):
            assert await session.run("r", targets="s") == [3]


async def test_a_pair_meets_across_the_workers_of_a_cluster() -> None:
    spec = device_spec("generic-cpu")
    cluster = Cluster([Device(spec, 0, task=task) for task in (0, 1)])
    first, second = cluster.names
    async with open_cluster_session(pair(("_Send", "_Recv"), (first, second)), cluster) as session:
        assert await session.run("r", targets="s") == [3]


async def test_a_fed_receive_receives_nothing() -> None:
    """The feed takes the place of the receive, the send that belongs to it is dropped."""
    graph = pair(("_Send", "_Recv"), (cpu(0), cpu(0)))
    graph.node.add(name="i", op="Identity", input=["r"]).attr["T"].CopyFrom(FLOAT)
    async with open_session(graph, "cpu:1") as session:
        assert await session.run("i", {"r:0": np.float32(8)}, "s") == [8]


async def test_a_receive_that_nobody_serves_waits_and_can_be_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    """It waits without work to do, and ends with the caller's cancellation, the time limit or the session."""
    graph = pair(("_Send", "_Recv"), (cpu(0), cpu(0)))
    async with open_session(graph, "cpu:1") as session:
        with trio.move_on_after(60) as scope:
            await session.run("r")
        assert scope.cancelled_caught
        with pytest.raises(DeadlineExceededError):
            await session.run("r", options=RunOptions(timeout_in_ms=1000))
        assert await session.run("r", targets="s") == [3], "the session works on"
        async with trio.open_nursery() as nursery:

            async def waits() -> None:
                with pytest.raises(CancelledError):
                    await session.run("r")

            nursery.start_soon(waits)
            await all_waiting()
            session.close()


async def test_an_error_ends_a_step_that_waits_for_a_receive() -> None:
    graph = pair(("_Send", "_Recv"), (cpu(0), cpu(0)))
    graph.node.add(name="no", op="Const").attr["dtype"].CopyFrom(encode(DataType.BOOL, "type"))
    graph.node[-1].attr["value"].tensor.CopyFrom(numpy_to_tensor(np.array(False)))
    graph.node.add(name="fails", op="Assert", input=["no", "c"]).attr["T"].CopyFrom(
        encode([DataType.FLOAT], "list(type)")
    )
    async with open_session(graph, "cpu:1") as session:
        with pytest.raises(InvalidArgumentError, match="assertion failed"):
            await session.run("r", targets="fails")


@pytest.mark.parametrize("key", ["", "a;b"])
@pytest.mark.parametrize("node", ["s", "r"])
async def test_attrs_that_spell_no_key_are_refused(key: str, node: str) -> None:
    graph = pair(("_Send", "_Recv"), (cpu(0), cpu(0)))
    for end in graph.node:
        if end.name == node:
            end.attr["tensor_name"].s = key.encode()
    async with open_session(graph, "cpu:1") as session:
        with pytest.raises(InvalidArgumentError, match=r"Invalid  rendezvous key: .*CPU:0;.*") as caught:
            await session.run("r", targets="s")
        assert caught.value.node == node


@given(placed_cases(max_steps=6), st.data())
async def test_edges_cut_by_hand_change_nothing(placed: tuple[GraphCase, dict[str, str]], data: st.DataObject) -> None:
    """Some data edges are replaced by a pair: the same values arrive, dead ones included, wherever the nodes are."""
    case, placement = placed
    graph = case.on(placement)
    dtypes = {node.name: node.attr["dtype"].type or DataType.FLOAT for node in graph.node}
    sends: list[str] = []
    for node in list(graph.node):
        for port, source in enumerate(node.input):
            producer = source.partition(":")[0]
            if source[0] == "^" or dtypes[producer] != DataType.FLOAT or not data.draw(st.booleans()):
                continue
            route, key = (placement[producer], placement[node.name]), f"own_{len(sends)}"
            send = add_transfer(graph, f"{key}_send", "_Send", route[0], route, key)
            send.input.append(source)
            node.input[port] = add_transfer(graph, f"{key}_recv", "_Recv", route[1], route, key).name
            sends.append(send.name)
    cut = replace(case, graph_def=graph, targets=(*case.targets, *sends))
    assert_same_values(await values(graph, cut), await values(case.on_one_device(), case))
