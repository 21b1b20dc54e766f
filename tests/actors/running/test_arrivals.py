"""Tensors from senders that were not compiled with the receive: types are checked, fetches are arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import trio

from partita.actors import open_session
from partita.actors.plans.binding import Binder
from partita.actors.plans.instructions import Bundle, Slots
from partita.actors.running.part import Part
from partita.actors.running.reference import run_reference
from partita.actors.sessions.graph_manager import GraphManager
from partita.devices import local_cluster
from partita.devices.state import DeviceState
from partita.errors import CancelledError, InternalError
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType, numpy_dtype
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.protos import GraphDef, NodeDef
from partita.graph.tensor_id import parse_tensor_name
from partita.rendezvous import Key, LocalRendezvous
from tests.runs import HARD_PLACEMENT, cpus
from tests.strategies import cpu


def send_and_receive(sent: DataType, received: DataType) -> GraphDef:
    """A user's own `_Send` and `_Recv` of a tensor `t` on two devices; `y` is the received tensor."""
    b = GraphBuilder()
    b.constant(np.ones((), numpy_dtype(sent)), name="c", device=cpu(0))
    graph_def = b.graph_def()
    ends = {"tensor_name": "t", "send_device": cpu(0), "recv_device": cpu(1)}
    for name, op, dtype in (("s", "_Send", sent), ("r", "_Recv", received)):
        node = graph_def.node.add(name=name, op=op, device=cpu(0) if op == "_Send" else cpu(1))
        node.attr["T" if op == "_Send" else "tensor_type"].CopyFrom(encode(dtype, "type"))
        for attr, value in ends.items():
            node.attr[attr].s = value.encode()
        node.attr["send_device_incarnation"].i = 1
    graph_def.node[-2].input.append("c")
    y = graph_def.node.add(name="y", op="Identity", device=cpu(1), input=["r"])
    y.attr["T"].CopyFrom(encode(received, "type"))
    return graph_def


async def test_a_tensor_of_another_type_does_not_arrive() -> None:
    """The types of a user's own `_Send` and `_Recv` are compared at run time."""
    for received, fits in ((DataType.FLOAT, True), (DataType.INT32, False)):
        graph_def = send_and_receive(DataType.FLOAT, received)

        async def main(graph_def: GraphDef = graph_def) -> Any:
            async with open_session(graph_def, cpus(2), config=HARD_PLACEMENT) as session:
                return await session.run("y", {}, ["s"])

        if fits:
            assert await main() == [1]
            continue
        with pytest.raises(InternalError, match="of type float does not match declared output type int32") as caught:
            await main()
        assert (caught.value.node, caught.value.op) == ("r", "_Recv")
        partitions = graph_def_to_graph(graph_def)
        partitions.assign_devices(partitions.requested_device_indices())
        binders = {cpu(n): Binder(cpu(n), DeviceState(1)) for n in range(2)}
        with pytest.raises(InternalError, match="declared output type int32"):
            run_reference([partitions], binders, [], 0)


def client_key(name: str) -> str:
    return str(Key(cpu(0), 1, cpu(0), name))


def share() -> GraphDef:
    """What a master sends: y = -x, and the variable v, which is fetched as it is."""
    b = GraphBuilder()
    b.variable("v", "float32", (2,), device=cpu(0))
    graph_def = b.graph_def()
    del graph_def.node[1:]
    _client_end(graph_def.node.add(name="recv", op="_Recv", device=cpu(0)), "x:0", "tensor_type", DataType.FLOAT)
    neg = graph_def.node.add(name="y", op="Neg", device=cpu(0), input=["recv"])
    neg.attr["T"].CopyFrom(encode(DataType.FLOAT, "type"))
    for name in ("y:0", "v:0"):
        source = parse_tensor_name(name).node
        node = graph_def.node.add(name=f"send_{source}", op="_Send", device=cpu(0), input=[source])
        _client_end(node, name, "T", DataType.FLOAT)
    return graph_def


def _client_end(node: NodeDef, tensor: str, type_attr: str, dtype: DataType) -> None:
    node.attr[type_attr].CopyFrom(encode(dtype, "type"))
    node.attr["tensor_name"].s = tensor.encode()
    node.attr["send_device"].s = node.attr["recv_device"].s = cpu(0).encode()
    node.attr["send_device_incarnation"].i = 1
    node.attr["client_terminated"].b = True


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (np.ones(2, np.float64), "of type double does not match declared output type float"),
        ([1.0, 2.0], "of class list"),
        (1.0, "of class float"),
        ("text", "of class str"),
    ],
)
async def test_what_a_worker_is_sent_is_of_the_type_that_is_received(sent: Any, why: str) -> None:
    """For inputs that come with the call, and before or after it through the rendezvous."""
    manager = GraphManager(local_cluster(cpus(1)), seed=1)
    async with trio.open_nursery() as nursery:
        manager.start(nursery)
        handle = manager.register(share())
        rendezvous = LocalRendezvous()
        with pytest.raises(InternalError, match=why) as caught:
            await manager.execute(handle, rendezvous, {client_key("x:0"): sent})
        assert (caught.value.node, caught.value.op) == ("recv", "_Recv")
        manager.shut_down(CancelledError("Shutdown"))


async def test_outputs_of_a_worker_are_arrays_that_nobody_can_write_to() -> None:
    """A variable is read when its tensor is received; later updates do not change the output."""
    manager = GraphManager(local_cluster(cpus(1)), seed=1)
    variable = manager.actors[cpu(0)].binder.state.variable("", "v", DataType.FLOAT, (2,))
    variable.value = np.ones(2, np.float32)
    async with trio.open_nursery() as nursery:
        manager.start(nursery)
        handle = manager.register(share())
        rendezvous = LocalRendezvous()
        await manager.execute(handle, rendezvous, {client_key("x:0"): np.float32(1)})
        keys = [client_key("y:0"), client_key("v:0")]
        received = await manager.recv_outputs(rendezvous, keys)
        assert all(type(value) is np.ndarray and not value.flags.writeable for value in received.values())
        np.testing.assert_array_equal(received[keys[0]], -1)
        variable.value = np.zeros(2, np.float32)
        np.testing.assert_array_equal(received[keys[1]], [1, 1])
        manager.shut_down(CancelledError("Shutdown"))


@pytest.mark.parametrize(("size", "sent"), [(1, Bundle([1, 2])), (2, np.float32(1)), (2, Bundle([1, 2, 3]))])
async def test_a_message_of_another_size_is_an_error_that_names_the_key(size: int, sent: Any) -> None:
    """A bundle where a single tensor is received, the other way round, and a bundle of another size."""
    graph_def = send_and_receive(DataType.FLOAT, DataType.FLOAT)
    with pytest.MonkeyPatch.context() as patch:
        start = Part.start

        def start_with_a_stranger(part: Part, slots: Slots, frame: str = "", **keywords: bool) -> None:
            arrivals = replace(part.plan.arrivals, sizes=[size] * len(part.plan.arrivals))
            part.plan = replace(part.plan, arrivals=arrivals, unchecked={})
            for arrival in arrivals:
                part.step.rendezvous.send(arrival.key + frame, sent)
            start(part, slots, frame, **keywords)

        patch.setattr(Part, "start", start_with_a_stranger)
        async with open_session(graph_def, cpus(2), config=HARD_PLACEMENT) as session:
            with pytest.raises(InternalError, match=r"/job.*;0:0: a message of \d tensors was sent where one of \d"):
                await session.run("y", {}, ["s"])
