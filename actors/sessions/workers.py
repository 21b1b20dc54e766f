"""The workers of a session: which devices each has, and which share of a request.

A local session has one worker with all devices: a request is cut by device once and registered as it is. A session over
several tasks has a worker per task: a request is cut by task, and each worker gets its share as a GraphDef and cuts it
by device, as in TensorFlow. Both are `SessionWorkers`, in the process of the session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ... import rendezvous
from ...devices.cluster import Cluster
from ...devices.state import SessionTensors
from ...rendezvous import LocalRendezvous, refuse_stale
from .. import running
from ..plans.binding import Binder, check_complete
from ..plans.levels import Unfoldable
from ..running.actor_group import ActorGroup
from ..running.functions import Functions
from ..running.make_evaluator import make_evaluator
from ..running.pacing import DEFAULT_BUDGET_S, DEFAULT_THREAD_LIMIT_S, Pacer
from ..running.step import Step
from .graph_manager import GraphManager
from .local_request import LocalRequest, WorkerShare
from .whole_requests import InterpretedRequest, VirtualRequest
from .worker_steps import WorkerSteps

if TYPE_CHECKING:
    import trio

    from ...devices.device import Device
    from ...devices.pipeline import Pruned
    from ...devices.timing import CostSource
    from ...errors import AbortedError, PartitaError
    from ...graph.graph import Graph
    from ...rendezvous import Policy, Rendezvous
    from ..running.interpretation import Interpretation
    from ..running.virtual.body import VirtualBody
    from ..running.virtual.clock import VirtualClock
    from .whole_requests import WholeRequest
    from .worker_protocol import DevicesLost


class WorkerSettings(NamedTuple):
    """What the callers of a session decide about its workers; see `open_session`."""

    seed: int | None = None
    policy: Policy = refuse_stale
    budget_s: float = DEFAULT_BUDGET_S
    thread_limit_s: float = DEFAULT_THREAD_LIMIT_S
    costs: CostSource | None = None
    """with them steps run on a virtual clock"""
    keeps_steps: bool = False
    """whether that clock keeps the records of all steps"""


class Workers:
    """The workers of one session. `by_task` maps the task of a worker's first device to the worker."""

    def __init__(self, cluster: Cluster, settings: WorkerSettings, *, is_distributed: bool) -> None:
        """Without `is_distributed` one worker has all devices, of whatever tasks; with it each task has a worker."""
        self.is_distributed = is_distributed
        self.pacer = Pacer(settings.budget_s, settings.thread_limit_s, only_device=len(cluster.names) == 1)
        self.actor_group = ActorGroup(self.pacer)
        self.tensors = SessionTensors()
        self.clock: VirtualClock | None = None
        self._functions: Functions | None = None
        functions = Functions
        if settings.costs is not None:
            from ..running.virtual.calls import VirtualFunctions  # other sessions need no simulated hardware
            from ..running.virtual.clock import VirtualClock

            self.clock = VirtualClock(cluster, settings.costs, self.pacer, keeps_steps=settings.keeps_steps)
            functions = VirtualFunctions
        self.by_task = {
            task: GraphManager(
                devices,
                seed=settings.seed,
                actor_group=self.actor_group,
                tensors=self.tensors,
                policy=settings.policy,
                functions=functions,
            )
            for task, devices in (_by_task(cluster) if is_distributed else {cluster.client.task_name: cluster}).items()
        }
        self._worker_of = {name: worker for worker in self.by_task.values() for name in worker.actors}
        self.actors = {name: worker.actors[name] for name, worker in self._worker_of.items()}
        self.client_actor = self.actors[cluster.client.name]
        views = {worker.task: partial(worker.view, self._incarnation) for worker in self.by_task.values()}
        self._views = {actor: views[self._worker_of[name].task] for name, actor in self.actors.items()}

    def start(self, nursery: trio.Nursery) -> None:
        """As `SessionWorkers.start`."""
        for worker in self.by_task.values():
            worker.start_actors(nursery)
        if self.clock is not None:
            nursery.start_soon(self.clock.run, name="virtual clock")

    async def ready(self) -> None:
        """As `SessionWorkers.ready`: they are."""

    def watch(self, lost: DevicesLost, moved: Callable[[], object]) -> None:
        """As `SessionWorkers.watch`: the devices of a process are lost with it."""

    def preparing(self) -> AbstractContextManager[None]:
        """Stops the time of a virtual clock while a request is prepared."""
        return nullcontext() if self.clock is None else self.clock.preparing()

    def shut_down(self, error: PartitaError) -> None:
        """Ends all actors; later calls of a worker raise `error`."""
        if self.clock is not None:
            self.clock.shut_down()
        for worker in self.by_task.values():
            worker.shut_down(error)

    @property
    def by_rendezvous(self) -> bool:
        """As `SessionWorkers.by_rendezvous`: the workers of several tasks have no common call frame."""
        return self.is_distributed

    def register(self, pruned: Pruned, check: Callable[[], object]) -> LocalRequest:
        """Cuts a request and registers a share with every worker that has nodes in it; calls `check` between stages.

        Raises what cutting, compiling and `check` raise; over several tasks also Unfoldable, for loops that cannot be
        compiled.
        """
        if not self.is_distributed:
            return self._register_locally(pruned, check)
        pipeline = pruned.pipeline
        shares = []
        for task, graph in pruned.cut_by_task().items():
            check()
            worker = self.by_task[task]
            handle = worker.register(graph, recv_scheduling=pipeline.schedule_receives, passes=pipeline.passes)
            shares.append(WorkerShare(worker, handle))
        return self._request(tuple(shares), {})

    def _register_locally(self, pruned: Pruned, check: Callable[[], object]) -> LocalRequest:
        (worker,) = self.by_task.values()
        partitioned = pruned.cut()
        check()
        optimised = partitioned.optimise(make_evaluator)
        check()
        if self.clock is not None:
            body = self._virtual_body(optimised.in_order())
            virtual = VirtualRequest(self._own_step, self.client_actor, body, self.clock)
            return self._request((), optimised.graphs, virtual)
        try:
            handle = worker.graphs.add(optimised, self._functions, from_elsewhere=False)
        except Unfoldable:
            graph = running.interpret(pruned.graph, self._binders(self._functions))
            whole = InterpretedRequest(self._own_step, self.client_actor, graph, partial(self._traced, graph))
            return self._request((), partitioned.graphs, whole)
        return self._request((WorkerShare(worker, handle),), optimised.graphs)

    def _request(
        self, shares: tuple[WorkerShare, ...], partitions: Mapping[str, Graph], whole: WholeRequest | None = None
    ) -> LocalRequest:
        return LocalRequest(shares, partitions, whole, self.new_step, self.actor_group)

    def _virtual_body(self, graphs: Mapping[str, Graph]) -> VirtualBody:
        from ..running.virtual.body import VirtualBody  # other sessions need no simulated hardware

        binders = self._binders(self._functions)
        (worker,) = self.by_task.values()
        body = VirtualBody(graphs, binders, worker.cluster)
        check_complete(binders.values())
        body.bodies.body(0)  # made now, in the thread that prepares, and not in the first step
        return body

    def forget_requests(self) -> None:
        """Deregisters all graphs; running steps go on."""
        for worker in self.by_task.values():
            worker.graphs.deregister_all()

    def bind_functions(self, graph: Graph, *, soft: bool) -> None:
        """Makes the functions of a graph callable. Over several tasks this does nothing: each share has its own."""
        if not self.is_distributed:
            (worker,) = self.by_task.values()
            self._functions = worker.functions_of(graph, soft=soft)

    def _binders(self, functions: Functions | None) -> dict[str, Binder]:
        return {name: actor.binder.calling(functions) for name, actor in self.actors.items()}

    def new_step(self, number: int, with_trace: bool = False) -> Step | WorkerSteps:
        """A step that is not started yet, with a rendezvous of its own; that of a traced step records its transfers."""
        shared: Rendezvous = LocalRendezvous()
        if with_trace:
            shared = rendezvous.TracedRendezvous(shared)
        if self.is_distributed:
            return WorkerSteps(number, shared, self._views)
        return Step(number, shared)

    def _own_step(self, number: int) -> Step:
        """A step of a local session."""
        step = self.new_step(number)
        assert isinstance(step, Step)  # sessions over several tasks interpret nothing, and have no virtual clock
        return step

    def serve(self) -> None:
        """As `SessionWorkers.serve`."""
        self.actor_group.serve_mailboxes()

    def _traced(self, graph: Interpretation) -> Interpretation:
        """An interpreted graph of a local session, with functions that leave records."""
        return running.interpret(graph.graph, self._binders(self._functions and self._functions.traced))

    def restart_device(self, name: str) -> AbortedError:
        """Restarts a device, given by its full name, and returns the error for steps that used its state."""
        return self._worker_of[name].restart_device(name)

    def clear(self, containers: Iterable[str]) -> None:
        """Removes the resources of all devices in these containers; unknown containers are empty."""
        for container in containers:
            for actor in self.actors.values():
                actor.binder.state.reset(container)

    def devices_now(self, known: Cluster) -> Cluster:
        """The cluster with the current incarnations of the devices of `known`; `known` itself if none has restarted."""
        devices = [self._worker_of[name].cluster.find(name) for name in known.names]
        if all(current is old for current, old in zip(devices, known, strict=True)):
            return known
        return Cluster(devices, known.topology.rules)

    def _incarnation(self, device: str) -> int:
        worker = self._worker_of.get(device)
        return 0 if worker is None else worker.cluster.incarnation(device)


def _by_task(cluster: Cluster) -> dict[str, list[Device]]:
    tasks: dict[str, list[Device]] = {}
    for device in cluster:
        tasks.setdefault(device.task_name, []).append(device)
    return tasks
