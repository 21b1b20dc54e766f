"""The rows "processes/...": sessions over two worker processes of dask.distributed, and what lies below them.

to a worker    tensors in one message from the event loop of this process to that of a worker, and a short answer
in a step      a step in which the device of one worker sends them to that of the other; floor: both in one process
hop            per hop of a chain that goes to and fro between the two workers
step           a small step over two devices in two processes, against the same in one
open           a session on two workers that run already, until it can be used
growth         of the memory of the process that has grown most, between step 1,000 and step 10,000

16 MB in 16.8 ms are 1 GB/s. The rows are skipped where distributed is missing.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import trio

from partita.actors import Session, open_session
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array

from .answering import HOST
from .bench import Bench
from .memory import resident_bytes
from .rows import IN_PROCESS, Case, Figure, Measured, Skipped, limit
from .running import Ours, repeated
from .sampling import Sample, interleave, now
from .workloads import Workload, chain, device_name

if TYPE_CHECKING:
    from distributed import LocalCluster

    from partita.actors.sessions.processes.connection import Connection
    from partita.devices.wire import WireMessage

_FIRST_LOOK = 10  # the part of the steps after which memory is looked at first


@asynccontextmanager
async def _workers() -> AsyncIterator[LocalCluster]:
    """Two worker processes."""
    try:
        from partita.actors.sessions.processes.local_cluster import start_local_cluster
    except ModuleNotFoundError:
        raise Skipped("distributed is not installed") from None
    with start_local_cluster(2) as cluster:
        yield cluster


class _Asker:
    """Sends tensors to a worker, and waits for its answer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._answered = trio.Event()
        connection.start(self._hear, self._lose)

    def _hear(self, _messages: list[WireMessage]) -> None:
        self._answered.set()

    def _lose(self, error: Exception) -> None:
        raise error

    async def ask(self, tensors: list[Any], count: int) -> Sample:
        """Sends them so many times, one message after the other."""
        from partita.devices.wire import WireMessage

        before = now()
        for _ in range(count):
            self._answered = trio.Event()
            self._connection.post(WireMessage({"op": "take"}, tensors))
            await self._answered.wait()
        return now() - before


def _tensors(bench: Bench, what: str) -> list[Any]:  # Any: arrays and numpy scalars
    sizes = bench.sizes
    if what == "scalars":
        return list(np.arange(sizes.sent_scalars, dtype=np.float32))
    return [np.ones(sizes.sent_bytes[what == "16 MB"] // 4, np.float32)]


async def _to_worker(bench: Bench, what: str) -> Measured:
    tensors = _tensors(bench, what)
    async with _workers() as cluster:
        from partita.actors.sessions.processes.client import connect_workers
        from partita.actors.sessions.processes.plugin import PartitaPlugin

        workers = await connect_workers(cluster.scheduler_address, plugin=PartitaPlugin("partita-answers", HOST))
        try:
            asker = _Asker(await workers.open(next(iter(workers.live.values()))))
            run = await repeated(bench, partial(asker.ask, tensors))
            taken = await interleave({"ours": run}, bench.sizes.rounds)
        finally:
            await workers.aclose()
    return Measured(Figure.of(taken["ours"]))


def _sender(bench: Bench, what: str) -> GraphBuilder:
    """A variable on the first device, which sends it whole or as scalars to the second; "y" is made of what comes."""
    builder, tensors = GraphBuilder(), _tensors(bench, what)
    value = np.array(tensors, np.float32) if what == "scalars" else tensors[0]
    with builder.device(device_name(0)):
        variable = builder.op("VarHandleOp", shared_name="v", dtype="float32", shape=value.shape)[0]
        filled = builder.op("Fill", builder.constant(value.shape, "int32"), builder.constant(1.0, "float32"))
        builder.op("AssignVariableOp", variable, filled, name="init")
        read = builder.op("ReadVariableOp", variable, dtype="float32")[0]
        parts = list(builder.op("Unpack", read, num=len(value))) if what == "scalars" else []
    with builder.device(device_name(1)):
        here = builder.op("Pack", parts)[0] if parts else read
        builder.op("Slice", here, builder.constant([0], "int32"), builder.constant([1], "int32"), name="y")
    return builder


async def _in_step(bench: Bench, what: str) -> Measured:
    graph = _sender(bench, what)

    async def steps(session: Session, count: int) -> Sample:
        before = now()
        for _ in range(count):
            await session.run("y")
        return now() - before

    async with (
        _workers() as cluster,
        open_session(graph, "cpu:2", workers=cluster.scheduler_address) as ours,
        open_session(graph, "cpu:2") as alone,
    ):
        for session in (ours, alone):
            await session.run([], targets="init")
        runs = {
            "ours": await repeated(bench, partial(steps, ours)),
            "alone": await repeated(bench, partial(steps, alone)),
        }
        taken = await interleave(runs, bench.sizes.rounds)
    return Measured(Figure.of(taken["ours"]), None, taken["alone"].wall_s)


async def _both(bench: Bench, workload: Workload) -> dict[str, Sample]:
    """A step over two processes, "ours", and in one, "alone"; their values are compared."""
    devices = f"cpu:{workload.devices}"
    async with (
        _workers() as cluster,
        open_session(workload.data, devices, workers=cluster.scheduler_address) as session,
        open_session(workload.data, devices) as other,
    ):
        ours, alone = Ours(session, workload), Ours(other, workload)
        _check_same(await ours.step(), await alone.step())
        runs = {"ours": await repeated(bench, ours.steps), "alone": await repeated(bench, alone.steps)}
        return await interleave(runs, bench.sizes.rounds)


def _check_same(ours: list[Array], theirs: list[Array]) -> None:
    if [value.tobytes() for value in ours] != [value.tobytes() for value in theirs]:
        raise AssertionError(f"{ours} over processes, {theirs} in one")


async def _hop(bench: Bench) -> Measured:
    hops = bench.sizes.process_hops
    taken = await _both(bench, chain(hops + 1, (16,), devices=2))
    return Measured(Figure.of(taken["ours"], hops), None, taken["alone"].wall_s / hops)


async def _step(bench: Bench) -> Measured:
    taken = await _both(bench, chain(2, devices=2))
    return Measured(Figure.of(taken["ours"]), Figure.of(taken["alone"]))


async def _open(bench: Bench) -> Measured:
    workload = chain(2, devices=2)
    async with _workers() as cluster:

        async def ours() -> Sample:
            before = now()
            async with open_session(workload.data, "cpu:2", workers=cluster.scheduler_address):
                return now() - before

        await ours()
        taken = await interleave({"ours": ours}, bench.sizes.rounds)
    return Measured(Figure.of(taken["ours"]))


async def _growth(bench: Bench) -> Measured:
    workload = chain(20, (16,), devices=2)
    async with (
        _workers() as cluster,
        open_session(workload.data, "cpu:2", workers=cluster.scheduler_address) as session,
    ):
        pids = [os.getpid(), *(nanny.pid for nanny in cluster.workers.values())]
        ours, first = Ours(session, workload), []
        for number in range(bench.sizes.steps):
            if number == bench.sizes.steps // _FIRST_LOOK:
                first = [resident_bytes(pid) for pid in pids]
            await ours.step()
        grown = [resident_bytes(pid) - before for pid, before in zip(pids, first, strict=True)]
    return Measured(Figure(max(*grown, 0)))


_SENT = (("1 MB", limit(3e-3, 1.5e-3)), ("16 MB", limit(16.8e-3, 8.4e-3)), ("scalars", limit(3e-3, 1e-3)))
CASES = [
    *(Case(f"processes/{what} to a worker", "", promise, partial(_to_worker, what=what)) for what, promise in _SENT),
    *(Case(f"processes/{what} in a step", "", None, partial(_in_step, what=what)) for what, _ in _SENT),
    Case("processes/hop", "", limit(1e-3, 0.5e-3), _hop),
    Case("processes/step of 2 devices", IN_PROCESS, None, _step),
    Case("processes/open", "", None, _open),
    Case("processes/growth", "", limit(5e6), _growth, unit="B"),
]
