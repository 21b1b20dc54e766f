"""A session over processes for tests: each process has some of the devices, and all are in one event loop.

    async with open_processes(graph_def, 3, "ABA") as session:       CPU:0 and CPU:2 are of process A, CPU:1 is of B
        (y,) = await session.run(["y"], {"x": x})

It prepares requests as a local session does, cuts them by device, and gives each process its plans.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import trio

from partita.actors.plans.binding import Binder
from partita.actors.plans.compiler import compile_plans
from partita.actors.plans.plan import Plan
from partita.actors.plans.tracing import TraceScope
from partita.actors.running.actor_group import ActorGroup
from partita.actors.running.device_actor import DeviceActor
from partita.actors.running.messages import Shutdown
from partita.actors.running.pacing import Pacer
from partita.actors.running.part import Part, start_parts
from partita.actors.running.ports import feed_value, fetched_array, ports, split_feeds
from partita.actors.running.remote.coordination import StepCoordination
from partita.actors.running.remote.functions import Hosting, RemoteFunctions
from partita.actors.running.remote.messages import SESSION, StepMessage
from partita.actors.running.remote.step import RemoteStep
from partita.actors.running.trace import statistics_of_records
from partita.actors.running.traced.parts import TracedPart
from partita.devices.cluster import Cluster, local_cluster
from partita.devices.pipeline import Pipeline
from partita.devices.state import DeviceState, SessionTensors
from partita.errors import PartitaError
from partita.graph.protos import GraphDef, StepStats
from tests.actors.running.remote.network import FakeNetwork, FakeRendezvous

FUNCTIONS = 7  # the number of the functions of the only graph


class FakeProcess:
    """Devices with their actors and functions."""

    def __init__(self, own: str, names: Sequence[str], hosting: Mapping[str, str], cluster: Cluster, seed: int) -> None:
        self.name = own
        self.cluster = cluster
        self.group = ActorGroup(Pacer())
        self.tensors = SessionTensors()
        self.actors = {
            name: DeviceActor(name, Binder(name, DeviceState(seed, self.tensors)), self.group) for name in names
        }
        self.hosting = Hosting(own, hosting)

    def functions_of(self, library: Any, *, soft: bool) -> RemoteFunctions:
        return RemoteFunctions(library, self.cluster, self.actors, soft=soft, number=FUNCTIONS, hosting=self.hosting)

    def start(self, nursery: trio.Nursery) -> None:
        self.group.start(self.actors.values(), nursery)


class ProcessesSession:
    """Runs requests on a graph over processes."""

    def __init__(self, graph_def: GraphDef, hosts: str, *, soft: bool, seed: int, order: int) -> None:
        self.cluster = local_cluster(f"cpu:{len(hosts)}")
        self.process_of = dict(zip(self.cluster.names, hosts, strict=True))
        self.network = FakeNetwork(order)
        self.processes = {
            own: FakeProcess(
                own, [n for n, p in self.process_of.items() if p == own], self.process_of, self.cluster, seed
            )
            for own in dict.fromkeys(hosts)
        }
        self.stage = Pipeline(self.cluster, allow_soft_placement=soft).read(graph_def).lower().place()
        self.functions = {
            name: process.functions_of(self.stage.graph.functions, soft=soft)
            for name, process in self.processes.items()
        }
        self._prepared: dict[Any, Any] = {}
        self._numbers = count(1)
        self.last: SessionStep | None = None
        self.nursery: trio.Nursery | None = None
        self.pushed: list[tuple[str, int]] = []

    def waiting(self) -> int:
        """How many members of collectives wait."""
        return sum(process.tensors.waiting.count for process in self.processes.values())

    def _plans(self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], traced: bool) -> Any:
        """Ports of feeds and fetches, and the plans of each process."""
        key = tuple(feeds), tuple(fetches), tuple(targets), traced
        if key not in self._prepared:
            pruned = self.stage.prune(feeds=feeds, fetches=fetches, targets=targets).place()
            parts = pruned.cut().graphs
            plans: dict[str, list[Plan]] = {}
            for name, process in self.processes.items():
                functions = self.functions[name].traced if traced else self.functions[name]
                bound = [
                    (graph, process.actors[device].binder.calling(functions))
                    for device, graph in parts.items()
                    if device in process.actors
                ]
                plans[name] = compile_plans(bound, from_elsewhere=True, every_node=traced)
            self._prepared[key] = ports(feeds, pruned.feed_types), ports(fetches, pruned.fetch_types), plans
        return self._prepared[key]

    async def run(
        self, fetches: Sequence[str], feeds: Any = None, targets: Sequence[str] = (), *, traced: bool = False
    ) -> list[Any]:
        """Runs a step."""
        names, values = split_feeds(feeds)
        feed_ports, fetch_ports, plans = self._plans(names, fetches, targets, traced)
        fed = [feed_value(port, value) for port, value in zip(feed_ports, values, strict=True)]
        step = self.last = SessionStep(self, next(self._numbers))
        results = await step.run(plans, fed, traced=traced)
        return [fetched_array(port, results[port.number]) for port in fetch_ports]


class SessionStep:
    """One step in all processes."""

    def __init__(self, session: ProcessesSession, number: int) -> None:
        self.session = session
        self.number = number
        self.coordination = StepCoordination(
            list(session.processes),
            partial(self.tell, SESSION),
            session.cluster.incarnation,
            self.after,
        )
        self.steps: dict[str, RemoteStep] = {}
        self.rendezvous: dict[str, FakeRendezvous] = {}
        self.running = set(session.processes)
        self.is_over = False
        for name, process in session.processes.items():
            meeting = FakeRendezvous(name, session.process_of, partial(self.push, name))
            step = RemoteStep(
                number,
                meeting,
                name,
                partial(self.tell, name),
                self.functions_of(name),
                process.group,
                partial(self.ended, name),
            )
            meeting.traffic = step.traffic
            self.rendezvous[name], self.steps[name] = meeting, step

    def functions_of(self, name: str) -> Callable[[int], RemoteFunctions]:
        def find(number: int) -> RemoteFunctions:
            assert number == FUNCTIONS
            return self.session.functions[name]

        return find

    def tell(self, source: str, target: str, message: StepMessage) -> None:
        if target == SESSION:
            self.session.network.post(source, target, partial(self.coordination.receive, source, message))
        else:
            self.session.network.post(source, target, partial(self.receive, target, source, message))

    def receive(self, target: str, source: str, message: Any) -> None:
        self.steps[target].receive(source, message)
        self.session.processes[target].group.serve_mailboxes()
        self.look(target)

    def push(self, source: str, target: str, key: str, value: Any, is_dead: bool) -> None:
        self.session.pushed.append((key, getattr(value, "nbytes", 0)))

        def arrive() -> None:
            self.rendezvous[target].arrived(key, value, is_dead)
            self.session.processes[target].group.serve_mailboxes()
            self.look(target)

        self.session.network.post(source, target, arrive)

    def after(self, _seconds: float, callback: Callable[[], None]) -> None:
        """Calls a function when nothing moves: no test waits for a clock."""

        async def wait() -> None:
            await trio.testing.wait_all_tasks_blocked()
            if not self.is_over:
                callback()

        assert self.session.nursery is not None
        self.session.nursery.start_soon(wait)

    def look(self, name: str) -> None:
        """The error of a process goes to all others."""
        error = self.steps[name].error
        if error is not None and name in self.running:
            self.running.discard(name)
            for other in self.steps:
                if other != name:
                    self.session.network.post(name, other, partial(self.fail, other, error))

    def fail(self, name: str, error: PartitaError) -> None:
        self.steps[name].fail(error)

    def ended(self, name: str) -> None:
        self.running.discard(name)
        if not self.running and all(step.error is None for step in self.steps.values()):
            for step in self.steps.values():
                step.over()

    async def run(self, plans: Mapping[str, Sequence[Plan]], fed: list[Any], *, traced: bool) -> dict[int, Any]:
        parts: list[Part] = []
        with np.errstate(all="ignore"):
            for name, step in self.steps.items():
                process = self.session.processes[name]
                work = [(plan, process.actors[plan.device]) for plan in plans[name]]
                if not work:
                    step.begin(0)
                elif traced:
                    parts += start_parts(step, work, fed, TracedPart, TraceScope(step.records))
                else:
                    parts += start_parts(step, work, fed)
                process.group.serve_mailboxes()
        errors: list[PartitaError] = []

        async def wait(name: str) -> None:
            try:
                await self.steps[name].wait()
            except PartitaError as error:
                errors.append(error)
                for other in self.steps:
                    self.fail(other, error)

        try:
            async with trio.open_nursery() as nursery:
                for name in self.steps:
                    nursery.start_soon(wait, name)
        finally:
            self.is_over = True
        if errors:
            raise errors[0]
        return {result.index: part.slots[result.slot] for part in parts for result in part.plan.results}

    def stats(self) -> StepStats:
        records = [record for step in self.steps.values() for record in step.records]
        return statistics_of_records(records, self.session.cluster.names)


@asynccontextmanager
async def open_processes(
    graph_def: GraphDef, hosts: str, *, soft: bool = False, seed: int = 0, order: int = 0
) -> AsyncIterator[ProcessesSession]:
    """A session with a CPU for each letter of `hosts`, which is its process; `order` draws an interleaving."""
    session = ProcessesSession(graph_def, hosts, soft=soft, seed=seed, order=order)
    async with trio.open_nursery() as nursery:
        session.nursery = nursery
        nursery.start_soon(session.network.run)
        for process in session.processes.values():
            process.start(nursery)
        try:
            yield session
        finally:
            for process in session.processes.values():
                for actor in process.actors.values():
                    actor.post(Shutdown())
            nursery.cancel_scope.cancel()
