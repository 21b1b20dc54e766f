"""Meetings of collectives: what waits is counted, and members on several workers meet in their master's step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
import trio

from partita.actors import Session
from partita.actors.sessions.graph_manager import GraphManager
from partita.devices.catalog import device_spec
from partita.devices.device import Device
from partita.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    PartitaError,
    UnavailableError,
)
from partita.graph.builder import GraphBuilder
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.passes.client_graph import client_graph
from partita.graph.passes.client_request import ClientRequest
from partita.graph.protos import GraphDef
from partita.rendezvous import Key, LocalRendezvous
from tests.actors.sessions.deployments import Deployment, on_every_deployment
from tests.hangs import all_waiting
from tests.strategies import cpu

LATE, BYTES = 2, 40


def late_member(**limit: Any) -> GraphBuilder:
    """Sums y0, y1 and y2 over three CPUs, of which the last takes its value from a queue that "put" fills."""
    b = GraphBuilder()
    for n in range(LATE + 1):
        with b.device(cpu(n)):
            x = b.constant(np.full(BYTES // 4, n, np.float32))
            if n == LATE:
                queue = b.op("FIFOQueueV2", component_types=["float32"], shapes=[(BYTES // 4,)])[0]
                b.op("QueueEnqueueV2", queue, [x], name="put")
                x = b.op("QueueDequeueV2", queue, component_types=["float32"])[0]
            y = b.op("CollectiveReduceV2", x, LATE + 1, 1, 1, [], merge_op=b"Add", final_op=b"Id", **limit)
            b.identity(y[0], name=f"y{n}")
    return b


def waiting(session: Session) -> tuple[int, int, int, int]:
    """Members and bytes that wait, now and at most."""
    counts = session.statistics()
    return counts.members_waiting, counts.bytes_waiting, counts.most_members_waiting, counts.most_bytes_waiting


@on_every_deployment
async def test_what_waits_is_counted_until_the_last_member_has_come(deployment: Deployment) -> None:
    """Over all steps at once; a step that is cancelled takes its members away."""
    async with deployment.open(late_member().graph_def(), 3) as session, trio.open_nursery() as nursery:
        assert waiting(session) == (0, 0, 0, 0)
        nursery.start_soon(session.run, ["y0", "y1", "y2"])
        await all_waiting()
        assert waiting(session) == (2, 2 * BYTES, 2, 2 * BYTES)
        scope = trio.CancelScope()

        async def second() -> None:
            with scope:
                await session.run(["y0", "y1", "y2"])

        nursery.start_soon(second)
        await all_waiting()
        assert waiting(session) == (4, 4 * BYTES, 4, 4 * BYTES)
        scope.cancel()
        await all_waiting()
        assert waiting(session) == (2, 2 * BYTES, 4, 4 * BYTES)
        await session.run([], targets=["put"])
        await all_waiting()
        assert waiting(session) == (0, 0, 4, 4 * BYTES)


async def test_a_member_whose_time_is_up_waits_no_more(autojump_clock: object) -> None:
    """Nor do the others of its step."""
    async with Deployment.LOCAL.open(late_member(timeout_seconds=1.0).graph_def(), 3) as session:
        with pytest.raises(DeadlineExceededError, match="1 of 3 members has not come"):
            await session.run(["y0", "y1", "y2"])
        assert waiting(session) == (0, 0, 2, 2 * BYTES)


async def test_a_group_that_can_never_be_complete_waits_no_more() -> None:
    """Its step has failed, and what it held is gone."""
    b = GraphBuilder()
    key = b.placeholder("key", "int32", ())
    with b.device(cpu(0)):
        b.op("CollectiveReduceV2", np.ones(10), 2, key, 1, [], merge_op=b"Add", final_op=b"Id", name="y")
    async with Deployment.LOCAL.open(b.graph_def(), 1) as session:
        with pytest.raises(InvalidArgumentError, match="nothing else can go on"):
            await session.run("y", {"key": 1})
        assert waiting(session) == (0, 0, 1, 80)


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
                nursery.start_soon(master.execute, manager, task, np.array([1 + task + 10 * number], np.float32))
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
