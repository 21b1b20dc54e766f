"""The workers of one session: who has which devices, how a request is shared out among them, how they begin a step.

Flows in: pruned requests, restarts of devices. Flows out: shares that are registered with their workers, steps. Always
holds: a local session has one worker, with all devices of its cluster, whose share is cut by device at once and goes
through no GraphDef; a session over several tasks has one for each, which is sent its share as a GraphDef and cuts it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ...devices.cluster import Cluster
from ...devices.state import SessionTensors
from ...rendezvous import LocalRendezvous, TracedRendezvous
from ..plans.levels import Unfoldable
from ..running.device_actor import ActorGroup
from ..running.evaluation import ConstantEvaluator
from ..running.executor import Pacer
from ..running.interpretation import interpret
from ..running.step import Step
from .graph_manager import GraphManager
from .worker_steps import WorkerSteps

if TYPE_CHECKING:
    import trio

    from ...devices.device import Device
    from ...devices.pipeline import Pruned
    from ...errors import AbortedError, PartitaError
    from ...graph.graph import Graph
    from ...rendezvous import Rendezvous
    from ..running.interpretation import Interpretation


class Share(NamedTuple):
    """What one worker does of a request: a graph that is registered with it."""

    worker: GraphManager
    handle: str


class Shares(NamedTuple):
    """What all workers do of a request.

    `partitions` are the graphs by device as a local session has cut them, before they were optimised; workers of other
    tasks keep theirs. A graph whose loops cannot be compiled has an `interpretation`, of the uncut graph, and no share.
    """

    shares: tuple[Share, ...]
    partitions: Mapping[str, Graph]
    interpretation: Interpretation | None = None


class Workers:
    """See the module. `by_task` has them by the task of their (first) device."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        is_distributed: bool,
        seed: int | None,
        budget_s: float,
        thread_limit_s: float,
    ) -> None:
        """Unless the session `is_distributed`, one worker has all devices, whatever tasks they are of."""
        self.is_distributed = is_distributed
        self.pacer = Pacer(budget_s, thread_limit_s)
        self.actor_group = ActorGroup(self.pacer)
        self.tensors = SessionTensors()
        self.by_task = {
            task: GraphManager(devices, seed=seed, actor_group=self.actor_group, tensors=self.tensors)
            for task, devices in (_by_task(cluster) if is_distributed else {cluster.client.task_name: cluster}).items()
        }
        self._worker_of = {name: worker for worker in self.by_task.values() for name in worker.actors}
        self.actors = {name: worker.actors[name] for name, worker in self._worker_of.items()}
        self.client = self.actors[cluster.client.name]
        views = {worker.task: partial(worker.view, self._incarnation) for worker in self.by_task.values()}
        self._views = {actor: views[self._worker_of[name].task] for name, actor in self.actors.items()}

    def start(self, nursery: trio.Nursery) -> None:
        """Starts their actors, which `shut_down` ends."""
        for worker in self.by_task.values():
            worker.start_actors(nursery)

    def shut_down(self, error: PartitaError) -> None:
        """Ends their actors; whatever is asked of them afterwards raises `error`."""
        for worker in self.by_task.values():
            worker.shut_down(error)

    def share_out(self, pruned: Pruned, check: Callable[[], object]) -> Shares:
        """Registers a request with every worker that has a part in it; `check` is called between stages.

        Raises what cutting, compiling and `check` raise, over several tasks Unfoldable too.
        """
        if not self.is_distributed:
            return self._share_of_one(pruned, check)
        how, by_task = pruned.pipeline, pruned.cut_by_task()
        shares = []
        for task, graph in by_task.items():
            check()
            worker = self.by_task[task]
            handle = worker.register(graph, recv_scheduling=how.schedule_receives, optimisations=how.optimisations)
            shares.append(Share(worker, handle))
        return Shares(tuple(shares), {})

    def _share_of_one(self, pruned: Pruned, check: Callable[[], object]) -> Shares:
        """All of a request: the one worker takes it over as it is, cut by device."""
        (worker,) = self.by_task.values()
        partitioned = pruned.cut()
        check()
        optimised = partitioned.optimise(ConstantEvaluator())
        check()
        try:
            handle = worker.add(optimised, from_elsewhere=False)
        except Unfoldable:
            binders = {name: actor.binder for name, actor in self.actors.items()}
            return Shares((), partitioned.graphs, interpret(pruned.graph, binders))
        return Shares((Share(worker, handle),), partitioned.graphs)

    def forget_requests(self) -> None:
        """Deregisters everything; steps under way go on."""
        for worker in self.by_task.values():
            worker.deregister_all()

    def bind_functions(self, graph: Graph, *, soft: bool) -> None:
        """Lets nodes call the functions of a graph. On several tasks every share brings those that it calls."""
        if not self.is_distributed:
            for worker in self.by_task.values():
                worker.bind_functions(graph, soft=soft)

    def new_step(self, number: int, *, with_trace: bool = False) -> Step | WorkerSteps:
        """A step that is still to be started; a traced one meets where everything is recorded."""
        rendezvous: Rendezvous = LocalRendezvous()
        if with_trace:
            rendezvous = TracedRendezvous(rendezvous)
        if self.is_distributed:
            return WorkerSteps(number, rendezvous, self._views)
        return Step(number, rendezvous)

    def restart_device(self, name: str) -> AbortedError:
        """Restarts a device by its full name; the error of what has been counting on it."""
        return self._worker_of[name].restart_device(name)

    def devices_now(self, known: Cluster) -> Cluster:
        """The cluster with the devices in their present lives: `known` itself if none has restarted since."""
        devices = [self._worker_of[name].cluster.find(name) for name in known.names]
        if all(now is then for now, then in zip(devices, known, strict=True)):
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
