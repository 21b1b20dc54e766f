"""The graphs of one worker: registered as GraphDefs, cut by device, run under handles as often as a master likes.

Flows in: the share that a master has cut out for this worker's task, the rendezvous of each step, tensors by key. Flows
out: handles, tensors by key, errors. Always holds: handles, generated names and local step numbers come from one
counter, so none is given twice; a graph that is deregistered while it runs goes on to the end of that run.

    register -> handle --execute--> a step on the actors of this worker, which meets others at the master's rendezvous
                  `--deregister--> unknown: ABORTED, the master's cue to register again

    NEW --start--> RUNNING --shut_down, or the end of the nursery it was started in--> ENDED: every call gets its error
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import trio

from ...devices.cluster import Cluster
from ...devices.pipeline import Pipeline
from ...devices.state import DeviceState, SessionTensors
from ...errors import AbortedError, CancelledError, FailedPreconditionError, InvalidArgumentError, PartitaError
from ...graph import CostGraphDef, GraphDef, StepStats
from ...graph.analysis.cost_graph import CostModels
from ...graph.device_name import find_full_name
from ...graph.graph import Graph
from ...graph.graphdef.sources import parse_graph_def
from ...graph.passes.optimizer import NO_OPTIMISATIONS, Optimisations
from ...graph.tasks import WORKER_SEPARATOR
from ...rendezvous import WorkerRendezvous
from ...rendezvous.incarnations import refuse_stale, stale
from ..plans.binding import Binder
from ..plans.compiler import compile_plans
from ..running.device_actor import ActorGroup, DeviceActor
from ..running.evaluation import ConstantEvaluator
from ..running.executor import DEFAULT_BUDGET_S, DEFAULT_THREAD_LIMIT_S, Pacer
from ..running.functions import Functions
from ..running.messages import Shutdown
from ..running.part import Part, start_parts
from ..running.step import Step
from ..running.trace import step_stats
from .lifetime import Home
from .outputs import Collecting, Outputs, alive

if TYPE_CHECKING:
    from ...devices.device import Device
    from ...devices.pipeline import Partitioned
    from ...rendezvous import Policy, Rendezvous
    from ..plans.plan import Plan

Work = Sequence[tuple["Plan", DeviceActor]]


@dataclass(slots=True)
class _Item:
    """A registered graph: what each device has to do. Whoever runs it holds it."""

    handle: str
    partitions: Mapping[str, Graph]
    work: Work
    traced: Work = ()
    """the same with a clock around every node, once a step has asked for a trace"""
    from_elsewhere: bool = True
    """whether other workers have parts of the graph"""
    functions: Functions | None = None
    """what it may call"""


class GraphManager:
    """See the module. One per worker, with an actor for each of its devices."""

    def __init__(
        self,
        devices: Iterable[Device],
        *,
        seed: int | None = None,
        budget_s: float = DEFAULT_BUDGET_S,
        thread_limit_s: float = DEFAULT_THREAD_LIMIT_S,
        actor_group: ActorGroup | None = None,
        tensors: SessionTensors | None = None,
        policy: Policy = refuse_stale,
    ) -> None:
        """`devices` are those of one task; `seed` and the two limits are as in `open_session`.

        The workers of a session share its `actor_group`, whose limits count then, and its `tensors`. `policy` decides
        whether the worker receives from a past life of a device of another task.
        """
        self.cluster = devices if isinstance(devices, Cluster) else Cluster(list(devices))
        self.task = self.cluster.client.task_name
        self.policy = policy
        self._actor_group = ActorGroup(Pacer(budget_s, thread_limit_s)) if actor_group is None else actor_group
        self._tensors = SessionTensors() if tensors is None else tensors  # an empty one is false
        self.actors = {
            name: DeviceActor(name, Binder(name, DeviceState(seed, self._tensors)), self._actor_group)
            for name in self.cluster.names
        }
        self._items: dict[str, _Item] = {}
        self._functions: Functions | None = None
        self._cost_models = CostModels()
        self._next_number = 0
        self._steps: set[Step] = set()
        self._home: Home | None = None
        self._end: PartitaError | None = None
        self._ended = trio.Event()

    def start(self, nursery: trio.Nursery) -> None:
        """Starts the actors of the worker; a cancellation of the nursery shuts the worker down."""
        self.start_actors(nursery)
        nursery.start_soon(self._end_with_nursery, name=f"worker {self.task}")

    def start_actors(self, nursery: trio.Nursery) -> None:
        """Starts the actors for somebody who shuts the worker down before the nursery is left."""
        self._home = Home()
        self._actor_group.start(self.actors.values(), nursery)

    @trio.lowlevel.enable_ki_protection
    async def _end_with_nursery(self) -> None:
        """Actors are shielded, so that steps are settled before they end; this task is not, and ends them."""
        try:
            await self._ended.wait()
        finally:
            self.shut_down(CancelledError(f"the nursery that worker {self.task} was started in was cancelled"))

    @trio.lowlevel.enable_ki_protection
    def shut_down(self, error: PartitaError) -> None:
        """Fails the steps under way and every later call with `error`, forgets all graphs and ends the actors."""
        if self._end is not None:
            return
        self._end = error
        self._ended.set()
        for step in list(self._steps):
            step.fail(error)
        self.deregister_all()
        for actor in self.actors.values():
            actor.post(Shutdown())

    def _check_running(self) -> None:
        if self._end is not None:
            raise self._end
        if self._home is None:
            raise FailedPreconditionError(f"worker {self.task} has no actors yet: call its start(nursery) first")
        self._home.check()

    def register(
        self,
        graph_def: GraphDef | bytes,
        *,
        recv_scheduling: bool = False,
        optimisations: Optimisations = NO_OPTIMISATIONS,
    ) -> str:
        """Takes over a graph whose nodes are all on devices of this worker; its handle.

        With `recv_scheduling` receives wait until they are needed soon, which wants `_start_time` on every node; then
        each device's part is optimised. Raises InvalidArgumentError for devices that are malformed, missing or not of
        this worker, and what importing, partitioning and compiling raise.
        """
        share = parse_graph_def(graph_def)
        self._check_devices(share)
        self.bind_functions(Graph(share.library))
        pipeline = Pipeline(
            self.cluster, optimisations=optimisations, schedule_receives=recv_scheduling, new_name=self._new_name
        )
        return self.add(pipeline.cut_share(share).optimise(ConstantEvaluator()))

    def bind_functions(self, graph: Graph, *, soft: bool = False) -> None:
        """Lets the kernels that are made next call the functions of a graph; `soft` as in `Functions`."""
        self._functions = Functions(graph, self.cluster, self.actors, soft=soft)
        self._bind(self._functions)

    def _bind(self, functions: Functions | None) -> None:
        for actor in self.actors.values():
            actor.binder.functions = functions

    def add(self, partitioned: Partitioned, *, from_elsewhere: bool = True) -> str:
        """Takes over a graph that has been cut by device, as it is to run; its handle. Raises as `compile_plans`.

        Unless something comes `from_elsewhere`, from other workers, more of it can travel together.
        """
        handle, partitions = f"{self._number():016x}", partitioned.graphs
        work = self._compiled(partitions, from_elsewhere=from_elsewhere)
        self._items[handle] = _Item(handle, partitions, work, (), from_elsewhere, self._functions)
        return handle

    def _compiled(self, partitions: Mapping[str, Graph], *, from_elsewhere: bool, every_node: bool = False) -> Work:
        parts = [(graph, self.actors[device].binder) for device, graph in partitions.items()]
        plans = compile_plans(parts, every_node=every_node, from_elsewhere=from_elsewhere)
        return tuple(zip(plans, [self.actors[device] for device in partitions], strict=True))

    def knows(self, handle: str) -> bool:
        """Whether a graph is registered."""
        return handle in self._items

    def work(self, handle: str, *, with_trace: bool = False) -> Work:
        """The plans of a graph and who runs them; for a trace there is a clock around every node.

        Raises AbortedError for an unknown handle.
        """
        item = self._items.get(handle)
        if item is None:
            raise AbortedError(f"Graph handle is not found: {handle}")
        if with_trace and not item.traced:
            self._bind(item.functions)
            item.traced = self._compiled(item.partitions, from_elsewhere=item.from_elsewhere, every_node=True)
            self._bind(self._functions)
        return item.traced if with_trace else item.work

    def view(
        self, incarnation: Callable[[str], int], shared: Rendezvous, on_abort: Callable[[PartitaError], object]
    ) -> WorkerRendezvous:
        """How this worker sees the rendezvous of a step over several workers; `incarnation` is that of any device."""
        return WorkerRendezvous(shared, self.task, incarnation, self.policy, on_abort)

    @trio.lowlevel.enable_ki_protection
    def restart_device(self, name: str) -> AbortedError:
        """Restarts a device: what it holds is gone, and steps that `execute` runs on the worker fail with the error.

        The graphs stay, and go on naming the life that is over: other workers do not receive from it any more. Raises
        InvalidArgumentError for a device that the worker does not have.
        """
        old = self.cluster.find(name)
        self.cluster = self.cluster.with_restarted(name)
        self.actors[old.name].binder.state.reset()
        self._tensors.forget(old.name)
        error = stale(old.name, old.incarnation, self.cluster.incarnation(old.name))
        for step in list(self._steps):
            step.fail(error)
        return error

    def deregister(self, handle: str) -> None:
        """Forgets a graph; runs of it that are under way go on. Raises AbortedError for an unknown handle."""
        if handle not in self._items:
            raise AbortedError(f"Graph handle is not found: {handle}. Possibly, this worker just restarted.")
        self._forget(handle)

    def deregister_all(self) -> None:
        """Forgets all graphs, as a restart does."""
        for handle in list(self._items):
            self._forget(handle)

    def partitions(self, handle: str) -> list[GraphDef]:
        """What each device runs of a graph, as GraphDefs. Raises AbortedError for an unknown handle."""
        return [part.to_graph_def() for part in self._item(handle).partitions.values()]

    @trio.lowlevel.enable_ki_protection
    async def execute(
        self, handle: str, rendezvous: Rendezvous, inputs: Mapping[str, Any] | None = None, *, trace: bool = False
    ) -> StepStats:
        """Runs a graph to its end, `inputs` sent first; with `trace` what each node took, else empty statistics.

        Raises AbortedError for an unknown handle, the error that the rendezvous was aborted with, by whomever, or any
        other that ended the step, of which the rendezvous knows too; FailedPreconditionError if the worker has not been
        started, what it was shut down with if it has ended.
        """
        self._check_running()
        item, work = self._item(handle), self.work(handle, with_trace=trace)
        step = Step(self._number(), rendezvous)
        self._steps.add(step)
        try:
            parts = self._begin(step, work, inputs or {}, trace)
            await step.wait()
        finally:
            self._steps.discard(step)
        if not trace:
            return StepStats()
        stats = step_stats(parts)
        if self._items.get(handle) is item:
            self.learn(handle, stats)
        return stats

    def learn(self, handle: str, stats: StepStats) -> None:
        """Teaches the cost models of a graph what a traced step took. Raises AbortedError for an unknown handle."""
        self._cost_models.learn(stats, self._item(handle).partitions)

    @trio.lowlevel.enable_ki_protection
    def send_inputs(self, rendezvous: Rendezvous, inputs: Mapping[str, Any]) -> None:
        """Sends tensors by key; raises the error of the rendezvous once it has been aborted."""
        self._check_running()
        with np.errstate(all="ignore"):
            for key, value in inputs.items():
                rendezvous.send(key, value)
            self._actor_group.serve_mailboxes()

    async def recv_outputs(self, rendezvous: Rendezvous, keys: Iterable[str]) -> Outputs:
        """Waits for tensors by key: read-only arrays.

        Raises the error of the step, InvalidArgumentError for one that is dead.
        """
        found: Outputs = {}
        for key in keys:
            found[key] = alive(key, await rendezvous.recv(key))
        return found

    def recv_outputs_async(
        self, rendezvous: Rendezvous, keys: Iterable[str], done: Callable[[Outputs | PartitaError], object]
    ) -> None:
        """`recv_outputs` for callers without a task: `done` is called once, with all tensors or the first error."""
        Collecting(rendezvous, list(keys), done)

    def build_cost_model(self, handle: str, cost_graph: CostGraphDef) -> None:
        """Appends what traced steps have taught of a graph. Raises AbortedError for an unknown handle."""
        self._cost_models.add_all(self._item(handle).partitions.values(), cost_graph)

    def _begin(
        self, step: Step, work: Iterable[tuple[Plan, DeviceActor]], inputs: Mapping[str, Any], trace: bool
    ) -> list[Part]:
        with np.errstate(all="ignore"):
            for key, value in inputs.items():
                step.rendezvous.send(key, value)  # before anything is started: it raises once there was an abort
            parts = start_parts(step, list(work), [], with_trace=trace)
            self._actor_group.serve_mailboxes()
        return parts

    def _item(self, handle: str) -> _Item:
        found = self._items.get(handle)
        if found is None:
            raise AbortedError(f"Graph handle is not found: {handle}")
        return found

    def _forget(self, handle: str) -> None:
        for graph in self._items.pop(handle).partitions.values():
            self._cost_models.remove(graph)

    def _check_devices(self, share: GraphDef) -> None:
        for node in share.node:
            if node.device and find_full_name(node.device) is None:
                raise InvalidArgumentError(f"Missing device name in: {node.name}", node=node.name, op=node.op)
            if not node.device:
                raise InvalidArgumentError(f"Node {node.name!r} is missing a device specification", node=node.name)
            if node.device not in self.actors:
                raise InvalidArgumentError(
                    f"Creating a partition for {node.device} which doesn't exist in the list of available devices. "
                    f"Available devices: {','.join(self.actors)}",
                    node=node.name,
                    op=node.op,
                )

    def _new_name(self, prefix: str) -> str:
        return f"{prefix}{WORKER_SEPARATOR}{self._number()}"

    def _number(self) -> int:
        self._next_number += 1
        return self._next_number - 1
