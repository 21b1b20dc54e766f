"""Graph managers: handles, inputs and outputs by key, the ends of steps, and errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
import trio

from partita.actors.sessions.graph_manager import GraphManager
from partita.devices.cluster import local_cluster
from partita.errors import (
    AbortedError,
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PartitaError,
    UnavailableError,
)
from partita.graph.builder import GraphBuilder
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.passes.client_graph import client_graph
from partita.graph.passes.client_request import ClientRequest
from partita.graph.protos import CostGraphDef, GraphDef
from partita.rendezvous import Key, LocalRendezvous
from tests.hangs import all_waiting
from tests.strategies import cpu

DEVICES = 3


def key(name: str) -> str:
    """The key under which the client sends or receives a tensor."""
    return str(Key(cpu(0), 1, cpu(0), name))


def share(fetches: tuple[str, ...] = ("y:0", "last:0"), start_times: bool = False) -> GraphDef:
    """The share of a worker: y = -x through all devices, last = y as a pair, live = y if p."""
    b = GraphBuilder()
    value = b.placeholder("x", "float32", device=cpu(0))
    for i in range(5):
        value = b.op("Neg", value, name=f"n{i}", device=cpu(i % DEVICES))[0]
    b.op("Identity", value, name="y", device=cpu(1))
    b.op("Reshape", value, b.constant([2], device=cpu(2)), name="last", device=cpu(2))
    switch = b.op("Switch", value, b.placeholder("p", "bool", (), device=cpu(0)), name="switch", device=cpu(1))
    b.op("Identity", switch[1], name="live", device=cpu(0))
    graph = graph_def_to_graph(b.graph_def(), add_default_attrs=True)
    graph.assign_devices(graph.requested_device_indices())
    feeds = ("p:0", "x:0") if "live:0" in fetches else ("x:0",)
    request = ClientRequest(feeds, fetches, device=cpu(0), by_rendezvous=True)
    graph_def = client_graph(graph, request).to_graph_def()
    for number, node in enumerate(graph_def.node):
        if start_times:
            node.attr["_start_time"].i = number
    return graph_def


@asynccontextmanager
async def worker() -> AsyncIterator[GraphManager]:
    """A worker of three CPUs."""
    manager = GraphManager(local_cluster(f"cpu:{DEVICES}"), seed=1)
    async with trio.open_nursery() as nursery:
        manager.start(nursery)
        try:
            yield manager
        finally:
            manager.shut_down(CancelledError("Shutdown"))


TWO, THREE = np.ones(2, np.float32), np.ones(3, np.float32)


async def works(manager: GraphManager, handle: str, size: int = 2) -> list[Any]:
    """The outputs of a step that must succeed."""
    rendezvous = LocalRendezvous()
    await manager.execute(handle, rendezvous, {key("x:0"): np.ones(size, np.float32)})
    outputs = await manager.recv_outputs(rendezvous, [key("y:0"), key("last:0")])
    assert rendezvous.statistics().queued == rendezvous.statistics().waiting == 0
    return [outputs[key(name)].tolist() for name in ("y:0", "last:0")]


async def test_handles_are_numbers_that_are_not_used_again() -> None:
    async with worker() as manager:
        handles = [manager.register(share()) for _ in range(2)]
        assert all(len(handle) == len("0123456789abcdef") and int(handle, 16) for handle in handles)
        for handle in handles * 2:
            assert await works(manager, handle) == [[-1, -1], [-1, -1]]
        names = {node.name for handle in handles for part in manager.graphs.partitions(handle) for node in part.node}
        numbers = [int(name.rpartition("_G")[2]) for name in names if "_G" in name]
        assert len(numbers) == len(set(numbers))
        assert not set(numbers) & {int(handle, 16) for handle in handles}
        manager.graphs.deregister(handles[0])
        message = f"^Graph handle is not found: {handles[0]}"
        with pytest.raises(AbortedError, match=rf"{message}\. Possibly, this worker just restarted\."):
            manager.graphs.deregister(handles[0])
        with pytest.raises(AbortedError, match=f"{message}$"):
            await manager.execute(handles[0], LocalRendezvous())
        await works(manager, handles[1])
        manager.graphs.deregister_all()
        with pytest.raises(AbortedError):
            manager.graphs.partitions(handles[1])
        assert manager.register(share()) not in handles


async def test_a_cancelled_nursery_ends_its_worker() -> None:
    """The running step and later calls fail with the reason, and the nursery ends."""
    manager, failures = GraphManager(local_cluster(f"cpu:{DEVICES}")), list[PartitaError]()

    async def execute() -> None:
        with trio.CancelScope(shield=True):  # not the caller's own cancellation is what ends it
            try:
                await manager.execute(handle, LocalRendezvous())
            except CancelledError as error:
                failures.append(error)

    async with trio.open_nursery() as nursery:
        manager.start(nursery)
        handle = manager.register(share())
        nursery.start_soon(execute)
        await all_waiting()
        nursery.cancel_scope.cancel()
    assert "the nursery that worker" in str(failures[0])
    with pytest.raises(CancelledError, match="the nursery that worker"):
        await manager.execute(handle, LocalRendezvous())


async def test_an_abort_from_outside_ends_the_step() -> None:
    """`execute` and `recv_outputs` raise the error of the abort, which may come before the step or during it."""
    async with worker() as manager:
        handle, rendezvous, caught = manager.register(share()), LocalRendezvous(), list[PartitaError]()

        async def wait(waiting: Callable[[], Awaitable[object]]) -> None:
            with pytest.raises(UnavailableError, match="the link is down") as raised:
                await waiting()
            caught.append(raised.value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, partial(manager.execute, handle, rendezvous))
            nursery.start_soon(wait, partial(manager.recv_outputs, rendezvous, [key("last:0")]))
            await all_waiting()
            rendezvous.abort(UnavailableError("the link is down"))
        for inputs in ({}, {key("x:0"): TWO}):
            await wait(partial(manager.execute, handle, rendezvous, inputs))
        assert len(caught) == 4
        await works(manager, handle)


async def test_a_worker_without_actors_or_of_another_thread_is_refused() -> None:
    """There a call would wait forever."""
    manager = GraphManager(local_cluster("cpu:1"))
    with pytest.raises(FailedPreconditionError, match=r"call its start\(nursery\) first"):
        await manager.execute("0", LocalRendezvous())
    async with worker() as manager:
        handle = manager.register(share())
        elsewhere = partial(trio.run, manager.execute, handle, LocalRendezvous())
        with pytest.raises(FailedPreconditionError, match="another thread"):
            await trio.to_thread.run_sync(elsewhere)


async def test_a_run_outlives_its_registration() -> None:
    async with worker() as manager:
        handle, rendezvous = manager.register(share()), LocalRendezvous()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(manager.execute, handle, rendezvous)
            await all_waiting()
            manager.graphs.deregister(handle)
            manager.send_inputs(rendezvous, {key("x:0"): TWO})
            outputs = await manager.recv_outputs(rendezvous, [key("last:0")])
        assert outputs[key("last:0")].tolist() == [-1, -1]


async def test_a_dead_output_is_an_error() -> None:
    """Outputs are those of live tensors; an aborted rendezvous raises its error."""
    async with worker() as manager:
        handle, keys = manager.register(share(("y:0", "live:0"))), [key("y:0"), key("live:0")]
        rendezvous = LocalRendezvous()
        await manager.execute(handle, rendezvous, {key("x:0"): TWO, key("p:0"): np.bool_(True)})
        outputs = await manager.recv_outputs(rendezvous, keys)
        assert {name: value.tolist() for name, value in outputs.items()} == {name: [-1, -1] for name in keys}
        rendezvous = LocalRendezvous()
        await manager.execute(handle, rendezvous, {key("x:0"): TWO, key("p:0"): np.bool_(False)})
        with pytest.raises(InvalidArgumentError, match="was not valid"):
            await manager.recv_outputs(rendezvous, keys)
        rendezvous.close()


async def test_an_error_ends_one_step() -> None:
    """The step and its rendezvous have the error of the node; later steps work."""
    async with worker() as manager:
        handle = manager.register(share())
        for _ in range(2):
            rendezvous = LocalRendezvous()
            with pytest.raises(InvalidArgumentError, match=r"^Input to reshape") as caught:
                await manager.execute(handle, rendezvous, {key("x:0"): THREE})
            assert (caught.value.node, caught.value.device) == ("last", cpu(2))
            with pytest.raises(InvalidArgumentError, match=r"^Input to reshape"):
                await manager.recv_outputs(rendezvous, [key("y:0")])
            assert await works(manager, handle) == [[-1, -1], [-1, -1]]


async def test_the_end_of_a_worker_ends_its_steps() -> None:
    async with worker() as manager:
        handle, rendezvous = manager.register(share()), LocalRendezvous()

        async def step() -> None:
            with pytest.raises(CancelledError, match=r"^Shutdown"):
                await manager.execute(handle, rendezvous)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(step)
            await all_waiting()
            manager.shut_down(CancelledError("Shutdown"))
        assert rendezvous.statistics().waiting == 0


async def test_receives_are_scheduled_when_asked_for() -> None:
    """Values are the same; without start times there is nothing to schedule by."""
    async with worker() as manager:
        handle = manager.register(share(start_times=True), recv_scheduling=True)
        ops = [node.op for part in manager.graphs.partitions(handle) for node in part.node]
        assert "ControlTrigger" in ops
        assert await works(manager, handle) == [[-1, -1], [-1, -1]]
        with pytest.raises(NotFoundError, match="_start_time"):
            manager.register(share(), recv_scheduling=True)


async def test_traced_steps_update_a_cost_model() -> None:
    """A cost graph has all nodes of all partitions, with time for those that a traced step ran."""
    async with worker() as manager:
        handle, untaught = manager.register(share()), CostGraphDef()
        manager.graphs.build_cost_model(handle, untaught)
        stats = await manager.execute(handle, LocalRendezvous(), {key("x:0"): TWO}, trace=True)
        ran = {node.node_name for device in stats.dev_stats for node in device.node_stats}
        assert {"n0", "n1", "last"} <= ran
        taught = CostGraphDef()
        manager.graphs.build_cost_model(handle, taught)
        assert [node.name for node in taught.node] == [node.name for node in untaught.node]
        assert ran <= {node.name for node in taught.node}
        assert not (await manager.execute(handle, LocalRendezvous(), {key("x:0"): TWO})).dev_stats


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("/foo:bar", "^Missing device name in: "),
        ("", "is missing a device specification"),
        (cpu(7), "^Creating a partition for .*CPU:7 which doesn't exist in the list of available devices"),
    ],
)
async def test_devices_of_a_share_are_checked(device: str, message: str) -> None:
    async with worker() as manager:
        graph = share()
        graph.node[3].device = device
        with pytest.raises(InvalidArgumentError, match=message):
            manager.register(graph)
