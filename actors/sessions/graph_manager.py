"""One worker: the devices of a task, their actors, and the graphs that a master has registered.

register   a graph on the worker's devices -> a handle; the graph is cut by device and compiled
execute    runs a registered graph once; the step exchanges tensors with other workers at the master's rendezvous
deregister forgets the graph; running steps go on. Later calls with its handle raise AbortedError, after which a
           master registers the graph again

NEW --start--> RUNNING --shut_down, or the end of the nursery--> ENDED: every call raises the error of the end
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
from ...graph.passes.selection import NO_PASSES, Passes
from ...graph.tasks import WORKER_SEPARATOR
from ...rendezvous import WorkerRendezvous
from ...rendezvous.incarnations import refuse_stale, stale
from .. import running
from ..plans.binding import Binder
from ..plans.compiler import compile_plans
from ..running.device_actor import ActorGroup, DeviceActor
from ..running.executor import DEFAULT_BUDGET_S, DEFAULT_THREAD_LIMIT_S, Pacer
from ..running.functions import Functions
from ..running.make_evaluator import make_evaluator
from ..running.messages import Shutdown
from ..running.step import Step
from .lifetime import OwnerThread
from .outputs import Outputs, PendingOutputs, live_array
from .worker_steps import start_step

if TYPE_CHECKING:
    from ...devices.device import Device
    from ...devices.pipeline import Partitioned
    from ...rendezvous import Policy, Rendezvous
    from ..plans.plan import Plan
    from ..running.interpretation import Interpretation

PlacedPlans = Sequence[tuple["Plan", DeviceActor]]


@dataclass(slots=True)
class _RegisteredGraph:
    """A registered graph, cut by device and compiled. Running steps keep it when it is deregistered."""

    handle: str
    partitions: Mapping[str, Graph]
    work: PlacedPlans
    traced_work: PlacedPlans = ()
    """the same plans with a clock around every node, compiled for the first traced step"""
    from_elsewhere: bool = True
    """whether other workers have parts of the graph"""
    functions: Functions | None = None
    """the functions that its nodes may call"""


class GraphManager:
    """One worker, with an actor for each of its devices.

    Handles, generated node names and the worker's own step numbers come from one counter, as in TensorFlow.
    """

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
        functions: type[Functions] = Functions,
    ) -> None:
        """`devices` are those of one task; `seed` and the two limits are as in `open_session`.

        The workers of a session share its `tensors` and its `actor_group`, which has the limits then. `policy` decides
        about receives from devices of other tasks that have restarted. `functions` runs the functions that nodes call.
        """
        self.cluster = devices if isinstance(devices, Cluster) else Cluster(list(devices))
        self.task = self.cluster.client.task_name
        self._policy = policy
        if actor_group is None:
            actor_group = ActorGroup(Pacer(budget_s, thread_limit_s, only_device=len(self.cluster.names) == 1))
        self._actor_group = actor_group
        self._tensors = SessionTensors() if tensors is None else tensors  # an empty one is false
        self.actors = {
            name: DeviceActor(name, Binder(name, DeviceState(seed, self._tensors)), self._actor_group)
            for name in self.cluster.names
        }
        self._graphs: dict[str, _RegisteredGraph] = {}
        self._make_functions = functions
        self._functions: Functions | None = None
        self._cost_models = CostModels()
        self._next_number = 0
        self._steps: set[Step] = set()
        self._thread: OwnerThread | None = None
        self._end_error: PartitaError | None = None
        self._ended = trio.Event()

    def start(self, nursery: trio.Nursery) -> None:
        """Starts the actors; a cancellation of the nursery shuts the worker down."""
        self.start_actors(nursery)
        nursery.start_soon(self._end_with_nursery, name=f"worker {self.task}")

    def start_actors(self, nursery: trio.Nursery) -> None:
        """Starts the actors only; the caller must call `shut_down` before the nursery ends."""
        self._thread = OwnerThread()
        self._actor_group.start(self.actors.values(), nursery)

    @trio.lowlevel.enable_ki_protection
    async def _end_with_nursery(self) -> None:
        """Shuts the worker down when the nursery is cancelled: actors are shielded from that, so that steps can end."""
        try:
            await self._ended.wait()
        finally:
            self.shut_down(CancelledError(f"the nursery that worker {self.task} was started in was cancelled"))

    @trio.lowlevel.enable_ki_protection
    def shut_down(self, error: PartitaError) -> None:
        """Fails running steps and every later call with `error`, forgets all graphs and ends the actors."""
        if self._end_error is not None:
            return
        self._end_error = error
        self._ended.set()
        for step in list(self._steps):
            step.fail(error)
        self.deregister_all()
        for actor in self.actors.values():
            actor.post(Shutdown())

    def _check_running(self) -> None:
        if self._end_error is not None:
            raise self._end_error
        if self._thread is None:
            raise FailedPreconditionError(f"worker {self.task} has no actors yet: call its start(nursery) first")
        self._thread.check()

    @trio.lowlevel.enable_ki_protection
    def register(
        self,
        graph_def: GraphDef | bytes,
        *,
        recv_scheduling: bool = False,
        passes: Passes = NO_PASSES,
    ) -> str:
        """Cuts by device and compiles a graph whose nodes are on devices of this worker; returns its handle.

        `passes` over partitions run in between.

        With `recv_scheduling` a receive waits until its tensor is needed soon; every node must have `_start_time` then.
        Raises InvalidArgumentError for devices that are malformed, missing or not of this worker, and what importing,
        partitioning and compiling raise.
        """
        share = parse_graph_def(graph_def)
        self._check_devices(share)
        self.bind_functions(Graph(share.library))
        pipeline = Pipeline(self.cluster, passes, schedule_receives=recv_scheduling, new_name=self._new_name)
        return self.add(pipeline.cut_share(share).optimise(make_evaluator))

    def bind_functions(self, graph: Graph, *, soft: bool = False) -> None:
        """Makes the functions of a graph callable for graphs that are registered later; `soft` as in `Functions`."""
        self._functions = self._make_functions(graph.functions, self.cluster, self.actors, soft=soft)
        for actor in self.actors.values():
            actor.binder.functions = self._functions

    def add(self, partitioned: Partitioned, *, from_elsewhere: bool = True) -> str:
        """Compiles a graph that has been cut by device and returns its handle. Raises as `compile_plans`.

        `from_elsewhere` says that other workers may send to the graph; otherwise more tensors share a message.
        """
        handle, partitions = f"{self._next():016x}", partitioned.graphs
        work = self._compiled(partitions, self._functions, from_elsewhere=from_elsewhere)
        self._graphs[handle] = _RegisteredGraph(handle, partitions, work, (), from_elsewhere, self._functions)
        return handle

    def _compiled(
        self,
        partitions: Mapping[str, Graph],
        functions: Functions | None,
        *,
        from_elsewhere: bool,
        every_node: bool = False,
    ) -> PlacedPlans:
        parts = [(graph, self.actors[device].binder.calling(functions)) for device, graph in partitions.items()]
        plans = compile_plans(parts, every_node=every_node, from_elsewhere=from_elsewhere)
        return tuple(zip(plans, [self.actors[device] for device in partitions], strict=True))

    def has_graph(self, handle: str) -> bool:
        return handle in self._graphs

    def work(self, handle: str, *, with_trace: bool = False) -> PlacedPlans:
        """The plans of a graph with their actors; with `with_trace` the plans have a clock around every node.

        Raises AbortedError for an unknown handle.
        """
        graph = self._graph(handle)
        if with_trace and not graph.traced_work:
            graph.traced_work = self._compiled(
                graph.partitions,
                None if graph.functions is None else graph.functions.traced,
                from_elsewhere=graph.from_elsewhere,
                every_node=True,
            )
        return graph.traced_work if with_trace else graph.work

    def interpretation(self, graph: Graph, *, traced: bool = False) -> Interpretation:
        """A graph on the devices of this worker, ready to be interpreted; raises as `interpret`."""
        functions = self._functions
        if traced and functions is not None:
            functions = functions.traced
        return running.interpret(graph, {name: actor.binder.calling(functions) for name, actor in self.actors.items()})

    def view(
        self, incarnation: Callable[[str], int], shared: Rendezvous, on_abort: Callable[[PartitaError], object]
    ) -> WorkerRendezvous:
        """The rendezvous of a step as this worker uses it: `shared`, with a check of incarnations at receives."""
        return WorkerRendezvous(shared, self.task, incarnation, self._policy, on_abort)

    @trio.lowlevel.enable_ki_protection
    def restart_device(self, name: str) -> AbortedError:
        """Restarts a device: its state is lost, and the steps that `execute` runs fail with the returned error.

        Registered graphs stay and still name the old incarnation, so other workers refuse to receive from them. Raises
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

    @trio.lowlevel.enable_ki_protection
    def deregister(self, handle: str) -> None:
        """Forgets a graph; running steps of it go on. Raises AbortedError for an unknown handle."""
        if handle not in self._graphs:
            raise AbortedError(f"Graph handle is not found: {handle}. Possibly, this worker just restarted.")
        self._forget(handle)

    @trio.lowlevel.enable_ki_protection
    def deregister_all(self) -> None:
        """Forgets all graphs, as the restart of a worker does."""
        for handle in list(self._graphs):
            self._forget(handle)

    def partitions(self, handle: str) -> list[GraphDef]:
        """The optimised graph of each device. Raises AbortedError for an unknown handle."""
        return [graph.to_graph_def() for graph in self._graph(handle).partitions.values()]

    @trio.lowlevel.enable_ki_protection
    async def execute(
        self, handle: str, rendezvous: Rendezvous, inputs: Mapping[str, Any] | None = None, *, trace: bool = False
    ) -> StepStats:
        """Sends `inputs` (tensors by key), runs a graph to its end, and returns how long each node took if `trace`.

        Without `trace` the statistics are empty. Raises AbortedError for an unknown handle, the error that any worker
        or the caller aborted the rendezvous with, the first error of a node (the rendezvous is then aborted with it),
        FailedPreconditionError before `start`, and the error of `shut_down` after it.
        """
        self._check_running()
        graph, work = self._graph(handle), self.work(handle, with_trace=trace)
        step = Step(self._next(), rendezvous)
        self._steps.add(step)
        try:
            messages = () if inputs is None else inputs.items()
            parts = start_step(step, work, [], self._actor_group, messages=messages, with_trace=trace)
            await step.wait()
        finally:
            self._steps.discard(step)
        if not trace:
            return StepStats()
        stats = running.step_stats(parts)
        if self._graphs.get(handle) is graph:  # not deregistered meanwhile
            self.learn(handle, stats)
        return stats

    def learn(self, handle: str, stats: StepStats) -> None:
        """Adds the times of a traced step to the cost models of a graph. Raises AbortedError for an unknown handle."""
        self._cost_models.learn(stats, self._graph(handle).partitions)

    @trio.lowlevel.enable_ki_protection
    def send_inputs(self, rendezvous: Rendezvous, inputs: Mapping[str, Any]) -> None:
        """Sends tensors by key; raises the error of the rendezvous if that was aborted."""
        self._check_running()
        with np.errstate(all="ignore"):
            for key, value in inputs.items():
                rendezvous.send(key, value)
            self._actor_group.serve_mailboxes()

    @trio.lowlevel.enable_ki_protection
    async def recv_outputs(self, rendezvous: Rendezvous, keys: Iterable[str]) -> Outputs:
        """Waits for the tensors of these keys; read-only arrays by key.

        Raises the error of the step, InvalidArgumentError for a dead tensor.
        """
        outputs: Outputs = {}
        for key in keys:
            outputs[key] = live_array(key, await rendezvous.recv(key))
        return outputs

    def recv_outputs_async(
        self, rendezvous: Rendezvous, keys: Iterable[str], done: Callable[[Outputs | PartitaError], object]
    ) -> None:
        """As `recv_outputs`, with a callback: `done` is called once, with all arrays or the first error."""
        PendingOutputs(rendezvous, list(keys), done)

    def build_cost_model(self, handle: str, cost_graph: CostGraphDef) -> None:
        """Appends the cost models of a graph to `cost_graph`. Raises AbortedError for an unknown handle."""
        self._cost_models.add_all(self._graph(handle).partitions.values(), cost_graph)

    def _graph(self, handle: str) -> _RegisteredGraph:
        graph = self._graphs.get(handle)
        if graph is None:
            raise AbortedError(f"Graph handle is not found: {handle}")
        return graph

    def _forget(self, handle: str) -> None:
        for graph in self._graphs.pop(handle).partitions.values():
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
        return f"{prefix}{WORKER_SEPARATOR}{self._next()}"

    def _next(self) -> int:
        self._next_number += 1
        return self._next_number - 1
