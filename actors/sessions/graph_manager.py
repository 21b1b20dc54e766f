"""One worker: the devices of a task, their actors, and the graphs that a master has registered.

    handle = worker.register(share)                          "0000000000000000": y = -x on its devices, compiled
    await worker.execute(handle, rendezvous, {key_x: 2.0})   sends x, runs every plan, and ends
    await worker.recv_outputs(rendezvous, [key_y])           {key_y: array(-2.)}

register   a graph on the worker's devices -> a handle; the graph is cut by device and compiled
execute    runs a registered graph once; the step exchanges tensors with other workers at the master's rendezvous
graphs     those registered: their plans by handle (`registered_graphs`)

NEW --start--> RUNNING --shut_down, or the end of the nursery--> ENDED: every call raises the error of the end
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import trio

from ...devices.cluster import Cluster
from ...devices.pipeline import Pipeline
from ...devices.state import DeviceState, SessionTensors
from ...errors import AbortedError, CancelledError, FailedPreconditionError, InvalidArgumentError, PartitaError
from ...graph import GraphDef, StepStats
from ...graph.device_name import find_full_name
from ...graph.graph import Graph
from ...graph.graphdef.sources import parse_graph_def
from ...graph.passes.selection import NO_PASSES, Passes
from ...graph.tasks import WORKER_SEPARATOR
from ...rendezvous import WorkerRendezvous
from ...rendezvous.incarnations import refuse_stale, stale
from .. import running
from ..plans.binding import Binder
from ..plans.plan import Plan
from ..running.actor_group import ActorGroup
from ..running.device_actor import DeviceActor
from ..running.functions import Functions
from ..running.make_evaluator import make_evaluator
from ..running.messages import Shutdown
from ..running.pacing import Pacer
from ..running.ports import read_only
from ..running.step import Step
from .lifetime import OwnerThread
from .registered_graphs import RegisteredGraphs, free_in_turns
from .shared_states import state_at
from .worker_steps import RequestStep

if TYPE_CHECKING:
    from ...devices.device import Device
    from ...graph.dtypes import Array
    from ...rendezvous import Outcome, Policy, Rendezvous


_MANY = 1000  # nodes of a plan: to free fewer takes a fraction of a millisecond


class GraphManager:
    """One worker, with an actor for each of its devices.

    Handles, generated node names and the worker's own step numbers come from one counter, as in TensorFlow.
    """

    def __init__(
        self,
        devices: Iterable[Device],
        *,
        seed: int | None = None,
        actor_group: ActorGroup | None = None,
        tensors: SessionTensors | None = None,
        policy: Policy = refuse_stale,
        functions: type[Functions] = Functions,
    ) -> None:
        """`devices` are those of one task; `seed` is as in `open_session`.

        The workers of a session share its `tensors` and its `actor_group`. `policy` decides about receives from devices
        of other tasks that have restarted. `functions` runs the functions that nodes call.
        """
        self.cluster = devices if isinstance(devices, Cluster) else Cluster(list(devices))
        self.task = self.cluster.client.task_name
        self._policy = policy
        if actor_group is None:
            only_device = len(self.cluster.names) == 1
            actor_group = ActorGroup(Pacer(only_device=only_device))
        self._actor_group = actor_group
        self._tensors = SessionTensors() if tensors is None else tensors  # an empty one is false
        self.actors = {
            name: DeviceActor(name, Binder(name, DeviceState(seed, self._tensors)), self._actor_group)
            for name in self.cluster.names
        }
        self._numbers = count()
        self.graphs = RegisteredGraphs(self.actors, self._numbers)
        self._make_functions = functions
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
        self._free_in_turns(self.graphs.take_all())
        for actor in self.actors.values():
            actor.post(Shutdown())

    def _free_in_turns(self, forgotten: list[Plan | Graph]) -> None:
        """Frees large plans in a task of the actors' nursery, which ends after it."""
        nursery = self._actor_group.nursery
        if nursery is not None and any(len(whole.names) > _MANY for whole in forgotten if isinstance(whole, Plan)):
            nursery.start_soon(free_in_turns, forgotten, self._actor_group.pacer, name=f"freeing of {self.task}")

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
        functions = self.functions_of(Graph(share.library))
        pipeline = Pipeline(self.cluster, passes, schedule_receives=recv_scheduling, new_name=self._new_name)
        return self.graphs.add(pipeline.cut_share(share).optimise(make_evaluator), functions)

    def functions_of(self, graph: Graph, *, soft: bool = False) -> Functions:
        """The functions of a graph, to be called by nodes on this worker; `soft` as in `Functions`."""
        return self._make_functions(graph.functions, self.cluster, self.actors, soft=soft)

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
    async def execute(
        self, handle: str, rendezvous: Rendezvous, inputs: Mapping[str, Any] | None = None, *, trace: bool = False
    ) -> StepStats:
        """Sends `inputs` (tensors by key), runs a graph to its end, and returns how long each node took if `trace`.

        Without `trace` the statistics are empty. Raises AbortedError for an unknown handle, the error that any worker
        or the caller aborted the rendezvous with, the first error of a node (the rendezvous is then aborted with it),
        FailedPreconditionError before `start`, and the error of `shut_down` after it.
        """
        self._check_running()
        work = self.graphs.work(handle, with_trace=trace)
        with state_at(rendezvous) as state:
            step = Step(next(self._numbers), rendezvous, state)
            self._steps.add(step)
            try:
                request_step = RequestStep(step, work, self._actor_group, trace)
                request_step.start([], () if inputs is None else inputs.items(), awaits_host=True)
                with self._ended_by_abort(step):
                    await step.wait()
            finally:
                self._steps.discard(step)
        if not trace:
            return StepStats()
        stats = running.step_stats(request_step.parts)
        if handle in self.graphs:  # not deregistered meanwhile
            self.graphs.learn(handle, stats)
        return stats

    @contextmanager
    def _ended_by_abort(self, step: Step) -> Iterator[None]:
        """Fails a step when its rendezvous is aborted, though no node of it may wait there: one may wait for members
        of a collective on other workers."""

        def end(outcome: Outcome) -> None:
            if isinstance(outcome, PartitaError):
                step.fail(outcome)

        # Nobody sends under this key. It begins with the task, as keys do that the policy does not look at.
        waiter = step.rendezvous.recv_callback(f"{self.task}/end of step {step.number}", end)
        try:
            yield
        finally:
            waiter.cancel()

    @trio.lowlevel.enable_ki_protection
    def send_inputs(self, rendezvous: Rendezvous, inputs: Mapping[str, Any]) -> None:
        """Sends tensors by key; raises the error of the rendezvous if that was aborted."""
        self._check_running()
        with np.errstate(all="ignore"):
            for key, value in inputs.items():
                rendezvous.send(key, value)
            self._actor_group.serve_mailboxes()

    @trio.lowlevel.enable_ki_protection
    async def recv_outputs(self, rendezvous: Rendezvous, keys: Iterable[str]) -> dict[str, Array]:
        """Waits for the tensors of these keys; read-only arrays by key.

        Raises the error of the step, InvalidArgumentError for a dead tensor.
        """
        outputs: dict[str, Array] = {}
        for key in keys:
            received = await rendezvous.recv(key)
            if received.is_dead:
                raise InvalidArgumentError(f"The tensor returned for {key} was not valid.")
            outputs[key] = read_only(received.value)
        return outputs

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
        return f"{prefix}{WORKER_SEPARATOR}{next(self._numbers)}"
