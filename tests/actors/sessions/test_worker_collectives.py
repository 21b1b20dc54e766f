"""Collectives over several graph managers: members meet in the step of their master, which can end it at any time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
import trio

from partita.actors.sessions.graph_manager import GraphManager
from partita.devices.catalog import device_spec
from partita.devices.device import Device
from partita.errors import CancelledError, InvalidArgumentError, PartitaError, UnavailableError
from partita.graph.builder import GraphBuilder
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.passes.client_graph import client_graph
from partita.graph.passes.client_request import ClientRequest
from partita.graph.protos import GraphDef
from partita.rendezvous import Key, LocalRendezvous
from tests.hangs import all_waiting


def device(task: int) -> str:
    """The CPU of a task."""
    return f"/job:localhost/replica:0/task:{task}/device:CPU:0"


def key(task: int, name: str) -> str:
    """The key under which the master sends a tensor to a task, or receives one from it."""
    return str(Key(device(task), 1, device(task), name))


def share(task: int, size: int = 2) -> GraphDef:
    """The sum of x over `size` tasks, as y, on the CPU of one of them."""
    b = GraphBuilder()
    with b.device(device(task)):
        x = b.placeholder("x", "float32", None)
        total = b.op("CollectiveReduceV2", x, size, 1, 1, [], merge_op=b"Add", final_op=b"Id")[0]
        b.identity(total, name="y")
    graph = graph_def_to_graph(b.graph_def(), add_default_attrs=True)
    graph.assign_devices(graph.requested_device_indices())
    return client_graph(
        graph, ClientRequest(("x:0",), ("y:0",), device=device(task), by_rendezvous=True)
    ).to_graph_def()


@asynccontextmanager
async def workers(count: int = 2) -> AsyncIterator[list[GraphManager]]:
    """A worker with one CPU for each task; nothing but a rendezvous connects them."""
    managers = [GraphManager([Device(device_spec("generic-cpu"), 0, task=task)]) for task in range(count)]
    async with trio.open_nursery() as nursery:
        for manager in managers:
            manager.start(nursery)
        try:
            yield managers
        finally:
            for manager in managers:
                manager.shut_down(CancelledError("Shutdown"))


class Master:
    """Runs shares on workers at one rendezvous."""

    def __init__(self) -> None:
        self.rendezvous = LocalRendezvous()
        self.failures: list[PartitaError] = []

    async def execute(self, manager: GraphManager, task: int, value: object, size: int = 2) -> None:
        """Runs the share of one task and keeps its error."""
        inputs = {key(task, "x:0"): value}
        try:
            await manager.execute(manager.register(share(task, size)), self.rendezvous, inputs)
        except PartitaError as error:
            self.failures.append(error)


async def test_members_on_several_workers_meet_in_the_step_of_their_master() -> None:
    """Steps at different rendezvous are different steps, though their groups and instances are the same."""
    async with workers() as managers, trio.open_nursery() as nursery:
        masters = [Master(), Master()]
        for number, master in enumerate(masters):
            for task, manager in enumerate(managers):
                nursery.start_soon(master.execute, manager, task, np.float32([1 + task + 10 * number]))
        for number, master in enumerate(masters):
            for task, manager in enumerate(managers):
                outputs = await manager.recv_outputs(master.rendezvous, [key(task, "y:0")])
                assert outputs[key(task, "y:0")] == [3 + 20 * number]
    assert not masters[0].failures
    assert not masters[1].failures


async def test_a_member_whose_worker_never_starts_ends_with_the_abort_of_the_master() -> None:
    """It may still come, so nothing but the master ends the step; then the worker goes on with others."""
    async with workers() as managers:
        master = Master()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(master.execute, managers[0], 0, np.ones(1, np.float32))
            await all_waiting()
            assert not master.failures
            master.rendezvous.abort(UnavailableError("worker 1 is gone"))
        assert [type(error) for error in master.failures] == [UnavailableError]
        again = Master()
        await again.execute(managers[0], 0, np.ones(1, np.float32), 1)
        assert not again.failures
        assert again.rendezvous.statistics().waiting == 0


async def test_a_worker_that_fails_ends_the_others_that_wait_for_it() -> None:
    """With its error, and without the master."""
    async with workers() as managers:
        master = Master()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(master.execute, managers[0], 0, np.ones(1, np.float32))
            await all_waiting()
            nursery.start_soon(master.execute, managers[1], 1, np.ones(2, np.float32))
        assert len(master.failures) == 2
        assert {type(error) for error in master.failures} == {InvalidArgumentError}
        assert all("Shape mismatch in group 1, instance 1" in error.message for error in master.failures)


async def test_a_master_that_has_aborted_starts_nothing() -> None:
    """Its step fails at once, also where all that it would do is wait."""
    async with workers() as managers:
        master = Master()
        master.rendezvous.abort(error := UnavailableError("too late"))
        with pytest.raises(UnavailableError, match="too late"):
            await managers[0].execute(managers[0].register(share(0)), master.rendezvous)
        assert error.message == "too late"
