"""The workers of a session in other processes: the `SessionWorkers` of a session that was opened with `workers=`.

    session            RemoteWorkers                              Host in each worker
    register           cuts, writes bytes                         compiles
    step.start         `SpreadStep` -> StartShare, feeds   --->   `HostedStep`
    restart_device     a new incarnation at once, Arrange  --->   state is reset
    (nothing)          `losses`: devices move              <---   the connection ends

Partitions are cut here, so that names, optimised graphs and cost models are those of a session in one process. What
changes the session takes effect here at once; the workers hear of it in the same order as of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import trio

from .....devices.pipeline import Pipeline
from .....errors import AbortedError, InternalError, PartitaError
from .....graph.analysis.cost_graph import CostModels
from .....graph.graph import Graph
from .....graph.graphdef.sources import parse_graph_def
from .....graph.tasks import WORKER_SEPARATOR
from .....rendezvous.incarnations import stale
from .....rendezvous.step_tables import StepTables
from ....running.make_evaluator import make_evaluator
from ....running.pacing import Pacer
from ..messages import control
from ..peers import Peers, StepPeer
from ..session_tensors import HostedTensors
from .layouts import DeviceHomes
from .losses import Losses
from .refused_edges import check_edges
from .remote_request import RemoteRequest, RequestPart, may_call
from .worker_member import WorkerMember

if TYPE_CHECKING:
    from .....devices.cluster import Cluster
    from .....devices.pipeline import Pruned
    from .....rendezvous.remote import RemoteRendezvous
    from ....running.remote.traffic import Traffic
    from ...graph_manager import GraphManager
    from ...worker_protocol import DevicesLost
    from ...workers import WorkerSettings
    from .spread import NamedWorker
    from .spread_step import SpreadStep
    from .worker_member import WorkerPool


class RemoteWorkers:
    """The workers of one session. `opening.open_remote_workers` makes it; `cluster` has the present incarnations."""

    clock = None

    def __init__(
        self,
        pool: WorkerPool,
        cluster: Cluster,
        hosts: Mapping[str, str],
        settings: WorkerSettings,
        *,
        is_distributed: bool,
    ) -> None:
        """`hosts` gives the process of each device; `is_distributed` says whether tasks follow rules of their own."""
        self.is_distributed = is_distributed
        self.by_rendezvous = True
        self.by_task: dict[str, GraphManager] = {}
        self.pacer = Pacer(settings.budget_s, settings.thread_limit_s)
        self.tensors = HostedTensors(lambda _device: False)
        self.costs = CostModels()
        self.homes = DeviceHomes(cluster, hosts)
        self.members: dict[str, WorkerMember] = {}
        self.pool = pool
        self.peers = Peers(self, self)
        self.nursery: trio.Nursery | None = None
        self._closed_by: PartitaError | None = None
        self._settings = settings
        self._steps: dict[int, SpreadStep] = {}
        self._tables = StepTables()
        self._requests: dict[int, RemoteRequest] = {}
        self._handles = count(1)
        self._numbers = count(1)  # of functions
        self._functions: control.BindFunctions | None = None
        self._names: dict[str, count[int]] = {}
        self._ends = trio.Event()
        self._waits_for_steps = trio.lowlevel.ParkingLot()
        self.losses = Losses(self)

    @property
    def is_closed(self) -> bool:
        """Whether the session is."""
        return self._closed_by is not None

    @property
    def cluster(self) -> Cluster:
        """All devices, with their present incarnations."""
        return self.homes.cluster

    async def connect(self, worker: NamedWorker) -> WorkerMember:
        """Makes a live worker one of the session's; UnavailableError if it cannot be reached."""
        connection = await self.pool.open(worker)
        peer = self.peers.add(connection, worker.process_id)
        member = self.members[worker.process_id] = WorkerMember(worker, peer)
        peer.start()
        settings = self._settings
        peer.post(control.HostOpen(settings.seed, settings.budget_s, settings.thread_limit_s))
        return member

    def arrange(self) -> None:
        """Tells all workers who hosts what."""
        addresses = {process: member.worker.address for process, member in self.members.items() if not member.is_lost}
        layout = self.homes.layout(addresses)
        for process in addresses:
            self.members[process].peer.post(control.Arrange(layout))

    # What a session asks of its workers.

    def start(self, nursery: trio.Nursery) -> None:
        """As `SessionWorkers.start`."""
        nursery.start_soon(self._live, name="workers of a session")

    @trio.lowlevel.enable_ki_protection
    async def _live(self) -> None:
        """Until the session is closed and its steps have stopped; then closes the connections.

        What is at work on connections has ended by then: one that was made later would never be closed.
        """
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as self.nursery:
                self.losses.begin()
                await self._ends.wait()
                self.nursery.cancel_scope.cancel()
            while any(step.is_stopping for step in self._steps.values()):
                await self._waits_for_steps.park()
            await self.pool.aclose()

    def shut_down(self, error: PartitaError) -> None:
        """As `SessionWorkers.shut_down`."""
        if self.is_closed:
            return
        self._closed_by = error
        self.losses.end()
        for step in list(self._steps.values()):
            step.fail(error)
        for member in self.members.values():
            member.peer.post(control.HostClose())
        for request in self._requests.values():
            request.end(error)
        self._requests.clear()
        self._ends.set()

    async def abandon(self, error: PartitaError) -> None:
        """Closes the workers of a session that could not be opened."""
        self.shut_down(error)
        with trio.CancelScope(shield=True):
            await self.pool.aclose()

    def preparing(self) -> AbstractContextManager[None]:
        """As `SessionWorkers.preparing`."""
        return nullcontext()

    async def ready(self) -> None:
        """As `SessionWorkers.ready`."""
        await self.losses.settled()
        if self._closed_by is not None:
            raise copy(self._closed_by)

    def watch(self, lost: DevicesLost, moved: Callable[[], object]) -> None:
        """As `SessionWorkers.watch`."""
        self.losses.watch(lost, moved)

    def register(self, pruned: Pruned, check: Callable[[], object]) -> RemoteRequest:
        """As `SessionWorkers.register`; may be called in a worker thread."""
        check_edges(pruned, self.homes)
        if self.is_distributed:
            parts = self._cut_by_task(pruned, check)
        else:
            partitioned = pruned.cut()
            check()
            graphs = partitioned.optimise(make_evaluator).graphs
            functions = self._functions if may_call(graphs.values()) else None
            parts = [RequestPart(graphs, 0 if functions is None else functions.number, None)]
        check()
        process_of = self.homes.process_of
        devices = {device for part in parts for device in self._devices_of(part)}
        members = {
            process: member
            for process, member in self.members.items()
            if any(process_of[device] == process for device in devices)
        }
        client = pruned.pipeline.cluster.client.name
        return RemoteRequest(next(self._handles), parts, members, process_of, client, self)

    def _devices_of(self, part: RequestPart) -> Iterable[str]:
        """The devices that a part may use: nobody has looked at what functions do where."""
        if not part.functions:
            return part.partitions
        return part.bind.devices if part.bind is not None else self.homes.process_of

    def _cut_by_task(self, pruned: Pruned, check: Callable[[], object]) -> list[RequestPart]:
        """As a master and its workers cut: by task, then by device, with a counter of names for each task."""
        how, parts = pruned.pipeline, []
        for task, message in pruned.cut_by_task().items():
            check()
            numbers = self._names.setdefault(task, count())
            share, cluster = parse_graph_def(message), self.homes.task(task)
            pipeline = Pipeline(
                cluster,
                how.passes,
                schedule_receives=how.schedule_receives,
                new_name=partial(_new_name, numbers),
            )
            graphs = pipeline.cut_share(share).optimise(make_evaluator).graphs
            next(numbers)  # which a worker of the session's process takes for the handle
            bind = None
            if may_call(graphs.values()):
                bind = self._binding(Graph(share.library), tuple(cluster.names), soft=False)
            parts.append(RequestPart(graphs, 0 if bind is None else bind.number, bind))
        return parts

    def _binding(self, graph: Graph, devices: tuple[str, ...], *, soft: bool) -> control.BindFunctions:
        return control.BindFunctions(next(self._numbers), graph.functions.message.SerializeToString(), soft, devices)

    def bind_functions(self, graph: Graph, *, soft: bool) -> None:
        """As `SessionWorkers.bind_functions`."""
        if self.is_distributed:
            return
        self._functions = self._binding(graph, (), soft=soft)
        for member in self.members.values():
            member.peer.post(self._functions)

    def forget_requests(self) -> None:
        """As `SessionWorkers.forget_requests`."""
        for request in list(self._requests.values()):
            request.deregister()

    def serve(self) -> None:
        """As `SessionWorkers.serve`: nothing runs in this process."""

    def restart_device(self, name: str) -> AbortedError:
        """As `SessionWorkers.restart_device`."""
        old, new = self.homes.restart(name)
        self.members[self.homes.process_of[name]].peer.post(control.RestartDevice(name))
        self.arrange()
        return stale(name, old, new)

    def clear(self, containers: Iterable[str]) -> None:
        """As `SessionWorkers.clear`: a session that is closed has left nothing in its workers."""

    def devices_now(self, known: Cluster) -> Cluster:
        """As `SessionWorkers.devices_now`."""
        present = self.homes.cluster
        if all(device.incarnation == present.incarnation(device.name) for device in known):
            return known
        return present

    # What steps and requests need.

    def begin(self, step: SpreadStep) -> tuple[RemoteRendezvous, int]:
        """As `StepOwner.begin`."""
        self._steps[step.number] = step
        lowest = min(next(iter(self._steps)), step.number)
        for member in step.members.values():
            member.num_steps += 1
        return self._tables.begin(step.number, lowest, lambda _key: None), lowest

    def ended(self, step: SpreadStep) -> None:
        """As `StepOwner.ended`."""
        if self._steps.pop(step.number, None) is not None:
            for member in step.members.values():
                member.num_steps -= 1
                member.changed.unpark_all()
        self._tables.forget(step.number)

    def stopped(self) -> None:
        """As `StepOwner.stopped`."""
        self._waits_for_steps.unpark_all()

    def incarnation(self, device: str) -> int:
        """As `StepOwner.incarnation`."""
        return self.homes.cluster.incarnation(device)

    def after(self, seconds: float, callback: Callable[[], None]) -> trio.CancelScope:
        """As `StepOwner.after`."""
        scope = trio.CancelScope(deadline=trio.current_time() + seconds)
        if self.nursery is not None and not self.is_closed:
            self.nursery.start_soon(self._wait, scope, scope.deadline, callback)
        return scope

    @trio.lowlevel.enable_ki_protection
    async def _wait(self, scope: trio.CancelScope, deadline: float, callback: Callable[[], None]) -> None:
        with scope:
            await trio.sleep_forever()
        if trio.current_time() >= deadline:
            with self.peers.serving():
                callback()

    def serving(self) -> AbstractContextManager[None]:
        """As `StepOwner.serving`."""
        return self.peers.serving()

    def registers(self, request: RemoteRequest) -> None:
        """As `RequestOwner.registers`."""
        self._requests[request.handle] = request
        if self._closed_by is not None:
            request.end(self._closed_by)

    def forgets(self, request: RemoteRequest) -> None:
        """As `RequestOwner.forgets`."""
        self._requests.pop(request.handle, None)
        for graph in request.partitions.values():
            self.costs.remove(graph)

    def find(self, step: int) -> RemoteRendezvous | None:
        """As `StepsHere.find`."""
        return self._tables.find(step)

    def traffic_of(self, step: int) -> Traffic | None:
        """As `StepsHere.traffic_of`."""
        known = self._steps.get(step)
        return None if known is None else known.traffic

    # What workers say.

    def receive(self, peer: StepPeer, record: Any) -> None:  # Any: a message of `messages.control`
        """As `PeerOwner.receive`."""
        member = self.members.get(peer.process)
        if member is None or member.peer is not peer:
            return  # it has been left
        match record:
            case control.ShareRegistered(handle, error):
                request = self._requests.get(handle)
                if request is not None:
                    request.answered(peer.process, error)
            case control.StateKinds(device, kinds):
                member.kinds[device] = kinds
            case control.VariablesTaken(device):
                member.taken[device] = record
                member.changed.unpark_all()
            case control.PeerLost(process, error):
                self.losses.peer_lost(member, process, error)
            case control.HostRetires():
                self.losses.retires(member)
            case control.OfStep(number) | control.ShareEnded(number) | control.ShareFailed(number):
                self._tell_step(member, number, record)
            case control.ShareStopped(number) | control.ShareTimes(number):
                self._tell_step(member, number, record)
            case _:
                raise InternalError(f"{type(record).__name__} is no message for a session")

    def _tell_step(self, member: WorkerMember, number: int, record: Any) -> None:
        step = self._steps.get(number)
        if step is not None:
            step.receive(member, record)

    def served(self) -> None:
        """As `PeerOwner.served`."""

    def lost(self, peer: StepPeer, error: PartitaError) -> None:
        """As `PeerOwner.lost`."""
        member = self.members.get(peer.process)
        if member is not None and member.peer is peer:
            self.losses.lose(member, error)

    def steps_of(self, *processes: str) -> list[SpreadStep]:
        """The steps that run in all of these processes."""
        return [step for step in self._steps.values() if all(process in step.members for process in processes)]

    def requests_of(self, process: str) -> list[RemoteRequest]:
        """The requests with a share in a process."""
        return [request for request in self._requests.values() if process in request.members]


def _new_name(numbers: Iterator[int], prefix: str) -> str:
    """As workers of the session's process number the nodes that they make."""
    return f"{prefix}{WORKER_SEPARATOR}{next(numbers)}"
