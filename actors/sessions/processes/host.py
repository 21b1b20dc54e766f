"""One session in one worker process: its devices there, their actors and state, its shares of requests and steps.

    serve(connection, node)     what the plugin calls for each session that connects

    HostOpen, Arrange           devices get actors, other workers become peers
    RegisterShare               compiled (`hosted_requests`)
    StartShare 7                a `HostedStep`; its tensors go to peers that ask, as soon as they are there
    AskedKeys of step 8         from a peer that has heard of the step before: they wait in its table

Sessions know nothing of each other: each has a `Host` of its own. When the connection to the session ends, however that
may be, its steps fail, its actors end, and its state is gone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import trio

from ....devices.kernels.blas_threads import LIMIT
from ....devices.state import DeviceState
from ....errors import CancelledError, InternalError, PartitaError
from ....graph.tasks import task_of
from ....rendezvous.step_tables import StepTables
from ...plans.binding import Binder
from ...running.actor_group import ActorGroup
from ...running.device_actor import DeviceActor
from ...running.messages import Shutdown
from ...running.pacing import Pacer
from ...running.remote.functions import Hosting
from ...running.remote.messages import SESSION
from ...running.remote.traffic import Traffic
from . import hosted_state
from .hosted_requests import HostedRequests
from .hosted_step import HostedStep, quiet_numpy
from .messages import control
from .messages.layout import HostLayout, cluster_of
from .messages.tensors import arrived
from .peers import Peers, ProcessConnection, StepPeer
from .session_tensors import HostedTensors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ....devices.cluster import Cluster
    from ....rendezvous.exchange import TensorExchange
    from ....rendezvous.key import Key
    from ....rendezvous.remote import KeyRoute, RemoteRendezvous
    from ...running.remote.messages import StepMessage


class HostNode(Protocol):
    """What a host needs of a `node.WorkerNode`."""

    on_retire: Callable[[], None] | None

    @property
    def process_id(self) -> str:
        """The name of this process."""

    @property
    def is_retiring(self) -> bool:
        """Whether dask closes the worker."""

    def connection_to(self, process_id: str, address: str) -> ProcessConnection:
        """The connection to another worker, a new one if the last has ended."""


async def serve(connection: ProcessConnection, node: HostNode, kind: type[Host] | None = None) -> None:
    """Hosts devices of one session until it closes the connection or is lost; by a `Host`, or another `kind` of it."""
    async with trio.open_nursery() as nursery:
        host = (kind or Host)(connection, node, nursery)
        try:
            host.session.start()
            if node.is_retiring:
                host.retire()
            await host.over.wait()
        finally:
            host.end()


class Host:
    """The devices of one session in one worker; `serve` makes it. `session` is the way to the session."""

    def __init__(self, connection: ProcessConnection, node: HostNode, nursery: trio.Nursery) -> None:
        self.over = trio.Event()
        self.actors: dict[str, DeviceActor] = {}
        self.steps: dict[int, HostedStep] = {}
        self._node = node
        self._nursery = nursery
        self._tables = StepTables()
        self._traffic: dict[int, Traffic] = {}
        self._early: dict[int, list[tuple[str, StepMessage]]] = {}  # of steps that begin later
        self._requests = HostedRequests(self.actors)
        self._tensors = HostedTensors(self._is_here)
        self._kinds = hosted_state.KindsToldLast()
        self._cluster: Cluster | None = None
        self._process_of: dict[str, str] = {}
        self._exchange_of: dict[str, TensorExchange | None] = {}
        self._seed: int | None = None
        self._group = ActorGroup(Pacer())
        self._error: PartitaError | None = None
        self.peers = Peers(self, self)
        self.session = self.peers.add(connection, SESSION)
        node.on_retire = self.retire

    def receive(self, peer: StepPeer, record: Any) -> None:  # Any: a message of `messages.control`
        """As `PeerOwner.receive`."""
        match record:
            case control.OfStep(step, message):
                self._receive_of_step(peer.process, step, message)
            case control.StartShare():
                self._start(record)
            case control.StepsOver(steps):
                self._end_steps(steps)
            case control.StopShare(step, error):
                self._stop(step, error)
            case control.RegisterShare():
                self._say(control.ShareRegistered(record.handle, self._requests.register(record, self.cluster)))
            case control.ForgetShares(handles):
                self._requests.forget(handles)
                self._forget_functions()
            case control.BindFunctions(devices=devices):
                hosting = Hosting(self._node.process_id, self._process_of)
                self._requests.bind(record, hosted_state.part_of(self.cluster, devices), hosting)
                self._forget_functions()
            case control.Arrange(layout):
                self._arrange(layout)
            case control.HostOpen():
                self._open(record)
            case control.HostClose():
                self.over.set()
            case _:
                self._receive_of_state(record)

    def _receive_of_state(self, record: Any) -> None:
        match record:
            case control.RestartDevice(device):
                self.actors[device].binder.state.reset()
                self._tensors.forget(device)
            case control.TakeVariables(device):
                self._say(hosted_state.variables_of(device, self.actors[device].binder.state))
            case control.PutVariables(device):
                hosted_state.put_variables(self.actors[device].binder.state, record)
            case control.ReportTimes(step):
                stats = self.steps[step].times(list(self.actors), self._is_elsewhere)
                self._say(control.ShareTimes(step, stats.SerializeToString()))
            case _:
                raise InternalError(f"{type(record).__name__} is no message for a worker")

    def served(self) -> None:
        """As `PeerOwner.served`."""
        with quiet_numpy():
            self._group.serve_mailboxes()

    def lost(self, peer: StepPeer, error: PartitaError) -> None:
        """As `PeerOwner.lost`: without the session the host ends; the loss of another worker is told to the session."""
        if peer is self.session:
            self._error = error
            self.over.set()
            return
        peer.exchange.close(error)
        self._say(control.PeerLost(peer.process, error))

    def end(self) -> None:
        """Fails all steps and ends the actors; called once."""
        self._node.on_retire = None
        error = self._error or CancelledError("the session has left the worker")
        for step in list(self.steps.values()):
            step.stop(error)
        for actor in self.actors.values():
            actor.post(Shutdown())
        self.actors.clear()
        self.steps.clear()
        for rendezvous in self._tables:
            self._tables.forget(rendezvous.step)
        self._traffic.clear()
        self._early.clear()

    def retire(self) -> None:
        """dask closes the worker; the session moves the devices and leaves."""
        self._say(control.HostRetires())

    @property
    def cluster(self) -> Cluster:
        """All devices of the session, with their incarnations."""
        if self._cluster is None:
            raise InternalError("the session has not said yet who hosts what")
        return self._cluster

    def find(self, step: int) -> RemoteRendezvous | None:
        """As `StepsHere.find`."""
        return self._tables.find(step)

    def traffic_of(self, step: int) -> Traffic | None:
        """As `StepsHere.traffic_of`."""
        traffic = self._traffic.get(step)
        if traffic is None and self._tables.find(step) is not None:
            traffic = self._traffic[step] = Traffic()
        return traffic

    def _say(self, record: tuple[Any, ...]) -> None:  # Any: the fields of a message
        self.session.post(record)

    def _say_of_step(self, record: tuple[Any, ...]) -> None:  # Any: the fields of a message
        """Says how a step ends; before that, what it has left here: the process may be gone at the next moment."""
        self._tell_kinds()
        self._say(record)

    def _tell_kinds(self) -> None:
        for record in self._kinds.changed(self.actors):
            self._say(record)

    def _tell(self, step: int, process: str, message: StepMessage) -> None:
        self.peers.by_process[process].post(control.OfStep(step, message))

    def _open(self, opened: control.HostOpen) -> None:
        self._seed = opened.seed
        self._group = ActorGroup(Pacer(opened.budget_s, opened.thread_limit_s))

    def _arrange(self, layout: HostLayout) -> None:
        """Makes the devices that are new here, forgets those that have gone, and connects to the other workers."""
        self._cluster = cluster_of(layout)
        self._process_of = layout.process_of
        own = self._node.process_id
        mine = [name for name in self._cluster.names if self._process_of[name] == own]
        for name in [name for name in self.actors if name not in mine]:
            self.actors.pop(name).post(Shutdown())
            self._tensors.forget(name)
        new = {name: self._new_actor(name) for name in mine if name not in self.actors}
        self.actors.update(new)
        self._group.start(new.values(), self._nursery)
        for process, address, _ in layout.hosts:
            known = self.peers.by_process.get(process)
            if process != own and (known is None or known.connection.is_over):
                self.peers.add(self._node.connection_to(process, address), process).start()
        self._exchange_of = {
            name: None if process == own else self.peers.by_process[process].exchange
            for name, process in self._process_of.items()
        }

    def _new_actor(self, name: str) -> DeviceActor:
        return DeviceActor(name, Binder(name, DeviceState(self._seed, self._tensors)), self._group)

    def _start(self, start: control.StartShare) -> None:
        number = start.step
        try:
            share = self._requests.find(start.handle)
            work = self._requests.work(share, with_trace=start.with_trace)
        except PartitaError as error:
            self._tables.begin(number, start.lowest, lambda _key: None)
            self._say(control.ShareFailed(number, error))
            return
        route = self._route(share.feeds, start.fed)
        rendezvous = self._tables.begin(number, start.lowest, route)
        traffic = self.traffic_of(number) or Traffic()
        step = HostedStep(
            number,
            rendezvous,
            self._node.process_id,
            partial(self._tell, number),
            self._requests.functions,
            self._group,
            self._say_of_step,
            traffic,
            share.functions,
        )
        step.awaits_host = start.awaits_host
        rendezvous.begin(route, step.fail)
        self.steps[number] = step
        with quiet_numpy():
            step.start(work, with_trace=start.with_trace)
            rendezvous.arrive((share.feeds[place], arrived(value)) for place, value in start.fed.items())
            for process, message in self._early.pop(number, ()):
                step.receive(process, message)

    def _route(self, feeds: Sequence[str], fed: Mapping[int, Any]) -> KeyRoute:
        """Where the keys of a step come from: the session has the `feeds`, other workers what their devices send.

        Feeds that are `fed` have come already; they are sent to the table of this process.
        """
        exchange_of = self._exchange_of
        from_session = {key: None if place in fed else self.session.exchange for place, key in enumerate(feeds)}

        def route(key: str) -> TensorExchange | None:
            return from_session[key] if key in from_session else exchange_of[key.partition(";")[0]]

        return route

    def _receive_of_step(self, process: str, number: int, message: StepMessage | PartitaError) -> None:
        step = self.steps.get(number)
        if isinstance(message, PartitaError):
            if step is not None:
                step.fail(message)
        elif step is not None:
            with quiet_numpy():
                step.receive(process, message)
        elif self._tables.find(number) is not None:
            self._early.setdefault(number, []).append((process, message))

    def _stop(self, number: int, error: PartitaError) -> None:
        step = self.steps.get(number)
        if step is None:
            self._say(control.ShareStopped(number, ()))
        else:
            step.stop(error)

    def _end_steps(self, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            step = self.steps.pop(number, None)
            if step is not None:
                step.over()
            self._tables.forget(number)
            self._traffic.pop(number, None)
            self._early.pop(number, None)
        self._tell_kinds()
        LIMIT.keep()

    def _forget_functions(self) -> None:
        self._requests.forget_functions({step.share_functions for step in self.steps.values()})

    def _is_here(self, device: str) -> bool:
        return device in self.actors

    def _is_elsewhere(self, key: Key) -> bool:
        """Whether a tensor has come from another process or task."""
        src, dst = key.src_device, key.dst_device
        return self._process_of.get(src) != self._process_of.get(dst) or task_of(src) != task_of(dst)
