"""The graphs of one worker: registered as GraphDefs, cut by device, run under handles as often as a master likes.

Flows in: the share that a master has cut out for this worker's task, the rendezvous of each step, tensors by key. Flows
out: handles, tensors by key, errors. Always holds: handles, generated names and local step numbers come from one
counter, so none is given twice; a graph that is deregistered while it runs goes on to the end of that run.

    register -> handle --execute--> a step on the actors of this worker, which meets others at the master's rendezvous
                  `--deregister--> unknown: ABORTED, the master's cue to register again

    NEW --start--> RUNNING --shut_down, or the end of the nursery it was started in--> ENDED: every call gets its error
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import trio

from ...devices.cluster import Cluster
from ...devices.state import DeviceState
from ...errors import AbortedError, CancelledError, FailedPreconditionError, InvalidArgumentError, PartitaError
from ...graph import CostGraphDef, GraphDef, StepStats
from ...graph.analysis.cost_graph import CostModels
from ...graph.device_name import find_full_name
from ...graph.graph import Graph
from ...graph.graphdef.importer import graph_def_to_graph
from ...graph.graphdef.sources import parse_graph_def
from ...graph.partition import PartitionOptions, add_control_edges
from ...graph.passes.pipeline import NO_OPTIMISATIONS, Optimisations, optimize
from ...graph.tasks import WORKER_SEPARATOR, partition_within_task, task_of
from ...rendezvous import Received
from ..plans.binding import Binder
from ..plans.compiler import compile_plans
from ..plans.tracing import traced
from ..running.device_actor import Crew, DeviceActor
from ..running.evaluation import ConstantEvaluator
from ..running.executor import DEFAULT_BUDGET_S, DEFAULT_THREAD_LIMIT_S, Pacer
from ..running.functions import Functions
from ..running.messages import Shutdown
from ..running.part import Part, start_parts
from ..running.ports import read_only
from ..running.step import Step
from ..running.trace import step_stats
from .lifetime import Home

if TYPE_CHECKING:
    from ...devices.device import Device
    from ...graph.dtypes import Array
    from ...rendezvous import Outcome, Rendezvous
    from ..plans.plan import Plan

Outputs = dict[str, Any]  # Any: tensors of any type, by key


@dataclass(frozen=True, slots=True)
class _Item:
    """A registered graph: what each device has to do. Whoever runs it holds it."""

    handle: str
    partitions: Mapping[str, Graph]
    work: tuple[tuple[Plan, DeviceActor], ...]


class GraphManager:
    """See the module. One per worker, with an actor for each of its devices."""

    def __init__(
        self,
        devices: Iterable[Device],
        *,
        seed: int | None = None,
        budget_s: float = DEFAULT_BUDGET_S,
        thread_limit_s: float = DEFAULT_THREAD_LIMIT_S,
    ) -> None:
        """`devices` are those of one task; the other arguments are as in `open_session`."""
        self._cluster = Cluster(list(devices))
        self._devices = {device.name: device for device in self._cluster}
        self.task = task_of(next(iter(self._devices)))
        self._crew = Crew(Pacer(budget_s, thread_limit_s))
        self._actors = {name: DeviceActor(name, Binder(name, DeviceState(seed)), self._crew) for name in self._devices}
        self._items: dict[str, _Item] = {}
        self._cost_models = CostModels()
        self._next_number = 0
        self._steps: set[Step] = set()
        self._home: Home | None = None
        self._end: PartitaError | None = None
        self._ended = trio.Event()

    def start(self, nursery: trio.Nursery) -> None:
        """Starts the actors of the worker; a cancellation of the nursery shuts the worker down."""
        self._home = Home()
        self._crew.start(self._actors.values(), nursery)
        nursery.start_soon(self._end_with_nursery, name=f"worker {self.task}")

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
        for actor in self._actors.values():
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
        each device's part is optimised. Raises
        InvalidArgumentError for devices that are malformed, missing or not of this worker, and what importing,
        partitioning and compiling raise.
        """
        share = parse_graph_def(graph_def)
        self._check_devices(share)
        options = PartitionOptions(
            new_name=self._new_name, get_incarnation=self._incarnation, scheduling_for_recvs=recv_scheduling
        )
        parts = partition_within_task(share, self.task, options)
        if recv_scheduling:
            add_control_edges(parts, options)
        self._bind_functions(share)
        evaluator = ConstantEvaluator()
        graphs = {device: optimize(self._imported(part), optimisations, evaluator) for device, part in parts.items()}
        plans = compile_plans(
            [(graph, self._actors[device].binder) for device, graph in graphs.items()], from_elsewhere=True
        )
        handle = f"{self._number():016x}"
        actors = [self._actors[device] for device in graphs]
        self._items[handle] = _Item(handle, graphs, tuple(zip(plans, actors, strict=True)))
        return handle

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
        item = self._item(handle)
        step = Step(self._number(), rendezvous)
        self._steps.add(step)
        work = [(traced(plan), actor) for plan, actor in item.work] if trace else item.work
        try:
            parts = self._begin(step, work, inputs or {}, trace)
            await step.wait()
        finally:
            self._steps.discard(step)
        if not trace:
            return StepStats()
        stats = step_stats(parts)
        if self._items.get(handle) is item:
            self._cost_models.learn(stats, item.partitions)
        return stats

    @trio.lowlevel.enable_ki_protection
    def send_inputs(self, rendezvous: Rendezvous, inputs: Mapping[str, Any]) -> None:
        """Sends tensors by key; raises the error of the rendezvous once it has been aborted."""
        self._check_running()
        with np.errstate(all="ignore"):
            for key, value in inputs.items():
                rendezvous.send(key, value)
            self._crew.work()

    async def recv_outputs(self, rendezvous: Rendezvous, keys: Iterable[str]) -> Outputs:
        """Waits for tensors by key: read-only arrays.

        Raises the error of the step, InvalidArgumentError for one that is dead.
        """
        found: Outputs = {}
        for key in keys:
            found[key] = _alive(key, await rendezvous.recv(key))
        return found

    def recv_outputs_async(
        self, rendezvous: Rendezvous, keys: Iterable[str], done: Callable[[Outputs | PartitaError], object]
    ) -> None:
        """`recv_outputs` for callers without a task: `done` is called once, with all tensors or the first error."""
        _Collecting(rendezvous, list(keys), done)

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
            self._crew.work()
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
            if node.device not in self._devices:
                raise InvalidArgumentError(
                    f"Creating a partition for {node.device} which doesn't exist in the list of available devices. "
                    f"Available devices: {','.join(self._devices)}",
                    node=node.name,
                    op=node.op,
                )

    def _bind_functions(self, share: GraphDef) -> None:
        """Lets the kernels that are made next call the functions of a share."""
        functions = Functions(Graph(share.library), self._cluster, self._actors, soft=False)
        for actor in self._actors.values():
            actor.binder.functions = functions

    def _imported(self, part: GraphDef) -> Graph:
        return graph_def_to_graph(part, allow_internal_names=True, expect_device=True)

    def _new_name(self, prefix: str) -> str:
        return f"{prefix}{WORKER_SEPARATOR}{self._number()}"

    def _number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

    def _incarnation(self, device: str) -> int:
        return self._devices[device].incarnation


class _Collecting:
    """Receives of several keys that end in one call."""

    def __init__(
        self, rendezvous: Rendezvous, keys: list[str], done: Callable[[Outputs | PartitaError], object]
    ) -> None:
        self._done = done
        self._found: Outputs = {}
        self._missing = len(keys)
        self._is_over = False
        if not keys:
            self._end(self._found)
        for key in keys:
            rendezvous.recv_callback(key, partial(self._arrived, key))

    def _arrived(self, key: str, received: Outcome) -> None:
        if isinstance(received, PartitaError):
            self._end(received)
            return
        try:
            self._found[key] = _alive(key, received)
        except PartitaError as error:
            self._end(error)
            return
        self._missing -= 1
        if not self._missing:
            self._end(self._found)

    def _end(self, result: Outputs | PartitaError) -> None:
        if not self._is_over:
            self._is_over = True
            self._done(result)


def _alive(key: str, received: Received) -> Array:
    """What was received, as session fetches are: a variable is read now, and nobody can write to the array."""
    if received.is_dead:
        raise InvalidArgumentError(f"The tensor returned for {key} was not valid.")
    return read_only(received.value)
