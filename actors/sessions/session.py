"""Sessions: a graph on a set of devices, run as often as one likes.

Flows in: a GraphDef and devices, then requests: fetches, feeds, targets. Flows out: arrays. Always holds: the graph
is imported and placed once, each signature is partitioned and compiled once; a failed or cancelled step leaves
nothing behind and the session usable; exceptions of the user's own code leave `open_session` as they were raised.

The walk of a request: names -> `preparation.prepare` -> plans -> either the plan alone, in the caller's task, or a
`Step` over several actors -> arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import trio

from ...devices.state import DeviceState, SessionTensors
from ...errors import CancelledError, DeadlineExceededError, PartitaError, UnimplementedError
from ...graph import ConfigProto, GraphDef, RunMetadata, RunOptions
from ...graph.builder.tensor_names import tensor_names
from ...graph.collector import collector_paused
from ...graph.partition import PartitionOptions, name_counter
from ...graph.passes.pipeline import Optimisations
from ...rendezvous import LocalRendezvous
from ..plans.binding import Binder
from ..running.device_actor import Crew, DeviceActor
from ..running.executor import DEFAULT_BUDGET_S, DEFAULT_THREAD_LIMIT_S, Pacer, fresh_slots, run_alone
from ..running.functions import Functions
from ..running.interpreted_part import start_interpreted
from ..running.messages import Shutdown
from ..running.part import Part, start_parts
from ..running.ports import Feeds, split_feeds
from ..running.step import Step
from .config_checks import check_options, own_copy, usable_devices
from .lifetime import Block, Home
from .partial_run import PartialRuns, partial_signature
from .preparation import Prepared, Stages, prepare
from .prepared_requests import PreparedRequests
from .requests import Signature, fed_values, inputs_of, seconds
from .restart import Restarts
from .session_callable import SessionCallable
from .session_graph import GraphReader
from .session_statistics import SessionStatistics
from .session_traces import SessionTraces

if TYPE_CHECKING:
    from pathlib import Path

    from ...devices.cluster import Cluster
    from ...graph.builder.tensor_names import Names
    from ...graph.dtypes import Array
    from ...graph.graph import Graph
    from ...graph.graphdef.sources import GraphSource
    from ..plans.plan import Plan
    from ..running.interpretation import Interpretation

_LARGE = 2000  # nodes of a graph and its functions whose requests take longer to prepare than a budget lasts


class Session:
    """A placed graph and the actors of its devices. Made by `open_session`; safe to share between tasks of one loop."""

    def __init__(
        self,
        graph: Graph,
        cluster: Cluster,
        reader: GraphReader,
        *,
        seed: int | None,
        budget_s: float,
        thread_limit_s: float,
        settings: ConfigProto,
    ) -> None:
        """`reader` made `graph`, and makes those that extend it."""
        self.graph = graph
        self.cluster = cluster
        self._home = Home()
        self._reader = reader
        self._pacer = Pacer(budget_s, thread_limit_s)
        self._crew = Crew(self._pacer)
        self._tensors = SessionTensors()
        self._actors = {
            name: DeviceActor(name, Binder(name, DeviceState(seed, self._tensors)), self._crew)
            for name in cluster.names
        }
        self._settings = settings
        self._bind_functions()
        self._options = PartitionOptions(new_name=name_counter(), get_incarnation=cluster.incarnation)
        self._requests = PreparedRequests(self._prepare)
        self._traces = SessionTraces(settings.graph_options, self._actors)
        self._timeout_ms = settings.operation_timeout_in_ms
        self._is_plain = not (self._timeout_ms or self._traces.for_costs.are_wanted)
        self._optimisations = Optimisations.of(settings.graph_options)
        self._num_steps = 0
        self._num_callables = 0
        self._steps: set[Step] = set()
        self._running = 0
        self._restarts = Restarts()
        client = cluster.client.name
        self._partial_runs = PartialRuns(client, cluster.incarnation(client), self._crew, self._steps, self._tensors)
        self._closed = False

    @property
    def devices(self) -> list[str]:
        """Full names of the devices; the first is the client's, where feeds come from and fetches go to."""
        return self.cluster.names

    @property
    def graph_def(self) -> GraphDef:
        """The graph as it is now; with `graph_options.infer_shapes` nodes say the shapes of their outputs."""
        return self._reader.written(self.graph)

    @trio.lowlevel.enable_ki_protection
    async def run(
        self,
        fetches: Names,
        feeds: Feeds | None = None,
        targets: Names = (),
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
    ) -> list[Array]:
        """Runs one step: the values of `fetches`, in that order, duplicates included; always a list.

        Tensors are given by name ("x" means "x:0") or as a `GraphBuilder` made them. `feeds` maps them to values, or is
        a sequence of pairs; `targets` are nodes to run for their effect. Arrays are fed with exactly the tensor's
        element type, Python numbers and lists with a fitting one, handles that GetSessionHandleV2 gave for their
        tensors. The arrays returned are read-only. `options` and `metadata` are as in TensorFlow: traces, partition
        graphs, a time limit. Raises InvalidArgumentError, NotFoundError or OutOfRangeError for the request,
        UnimplementedError for ops without kernel, the error of the first node that failed, CancelledError once the
        session is closed, FailedPreconditionError in a thread that is not the session's.
        """
        names, values = split_feeds(feeds)
        self._check_open()
        signature = Signature(names, tensor_names(fetches), tensor_names(targets))
        prepared = self._requests.find(signature) or await self._ready(signature)
        return await self._call(prepared, options, values, metadata)

    @trio.lowlevel.enable_ki_protection
    async def make_callable(
        self, feeds: Names, fetches: Names, targets: Names = (), options: RunOptions | None = None
    ) -> SessionCallable:
        """Names a request once, to be called with values in the order of `feeds`; raises as `run` does for names."""
        self._check_open()
        if options is not None:
            check_options(options, self._settings)
        prepared = await self._ready(Signature(tensor_names(feeds), tensor_names(fetches), tensor_names(targets)))
        self._num_callables += 1
        run = partial(self._call, prepared, options)
        return SessionCallable(self._num_callables - 1, len(prepared.feeds), run)

    @trio.lowlevel.enable_ki_protection
    async def extend(self, graph_def: GraphSource) -> None:
        """Adds nodes, which may read from those that are there, and functions; the versions become the new ones.

        What is there stays where it is and as it is, and so do requests made before. Raises InvalidArgumentError for a
        name that is taken, and what `open_session` raises for graphs; then nothing has changed.
        """
        self._check_entry()
        async with self._requests.lock:
            self.graph = await self._reader.read_more(self.graph, graph_def)
            self._bind_functions()

    def _bind_functions(self) -> None:
        """Lets the kernels of all devices call the functions of the graph."""
        functions = Functions(self.graph, self.cluster, self._actors, soft=self._settings.allow_soft_placement)
        for actor in self._actors.values():
            actor.binder.functions = functions

    @trio.lowlevel.enable_ki_protection
    async def partial_run_setup(self, fetches: Names, feeds: Names, targets: Names = ()) -> str:
        """Begins a step that is fed and fetched from in several calls; the handle of it for `partial_run`.

        All that will be fed and fetched is named here. The step goes as far as it can without feeds at once. Raises
        as `run` does for names.
        """
        self._check_open()
        signature = partial_signature(feeds, fetches, targets)
        prepared = await self._ready(signature)
        if prepared.interpretation is not None:
            raise UnimplementedError("loops built like these are interpreted, and cannot be fed while they run")
        self._num_steps += 1
        return self._partial_runs.begin(prepared, self.graph, Step(self._num_steps, LocalRendezvous()))

    @trio.lowlevel.enable_ki_protection
    async def partial_run(self, handle: str, fetches: Names = (), feeds: Feeds | None = None) -> list[Array]:
        """Goes on with a step that `partial_run_setup` began: sends it `feeds` and waits for `fetches`.

        Returns as `run` does. Raises InvalidArgumentError for a handle that is unknown or over, for names that were not
        announced or have been used, for values of another type or shape, and for fetches that need what is not fed yet:
        none of these changes anything. Any other error ends the step: that of a node that failed, a fetch that is dead,
        DeadlineExceededError, CancelledError once the session is closed; so does a cancellation of the caller.
        """
        self._check_entry()
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._pacer.rest_if_due()
        try:
            return await self._partial_runs.run(handle, fetches, feeds, seconds(self._timeout_ms))
        except PartitaError as error:
            error.located(inputs=inputs_of(self.graph, error))
            raise

    @trio.lowlevel.enable_ki_protection
    def prepare(self, feeds: Names, fetches: Names, targets: Names = ()) -> Prepared:
        """Partitions and compiles a request if that has not been done before; raises as `run` does."""
        self._check_entry()
        return self._requests.now(Signature(tensor_names(feeds), tensor_names(fetches), tensor_names(targets)))

    async def _ready(self, signature: Signature) -> Prepared:
        """The request, prepared; the session is still open."""
        self._home.check()
        size = self.graph.num_nodes + self.graph.functions.num_nodes
        prepared = await self._requests.ready(signature, in_thread=size >= _LARGE)
        self._check_open()
        return prepared

    def _prepare(self, signature: Signature, check: Callable[[], object]) -> Prepared:
        client, stages = self.cluster.client.name, Stages(self._reader.place_pruned, check)
        return prepare(self.graph, signature, self._actors, client, self._options, self._optimisations, stages)

    def statistics(self) -> SessionStatistics:
        """What the session has done so far."""
        running = self._running + len(self._partial_runs)
        return SessionStatistics(self._num_steps, running, len(self._requests), self._closed)

    @trio.lowlevel.enable_ki_protection
    def restart_device(self, name: str) -> None:
        """Restarts a device: what it holds is gone, and steps under way, on whatever device, fail with AbortedError.

        Raises InvalidArgumentError for an unknown device.
        """
        self._check_entry()
        self.cluster = self._restarts.restart(name, self.cluster, self._actors, self._tensors, self._steps)
        self._options = replace(self._options, get_incarnation=self.cluster.incarnation)
        client = self.cluster.client.name
        self._partial_runs.route = client, self.cluster.incarnation(client)
        self._requests.clear()
        self._traces.clear()
        self._bind_functions()

    def start(self, nursery: trio.Nursery) -> None:
        """Starts the actors; `open_session` does."""
        self._crew.start(self._actors.values(), nursery)

    def close(self) -> None:
        """Ends the session: steps under way fail with CancelledError, and so does every later `run`."""
        if self._closed:
            return
        self._closed = True
        for step in list(self._steps):
            step.fail(_closed())
        self._partial_runs.clear(_closed())
        for actor in self._actors.values():
            actor.post(Shutdown())

    def _check_entry(self) -> None:
        """Raises in a thread that is not the session's, and once it is closed."""
        self._home.check()
        self._check_open()

    def _check_open(self) -> None:
        if self._closed:
            raise _closed()

    def _check(self) -> Callable[[], None]:
        """What a step that begins now asks at each rest; it raises if the step must not go on."""
        restarts = len(self._restarts)

        def check() -> None:
            self._check_open()
            self._restarts.check(restarts)

        return check

    async def _call(
        self, prepared: Prepared, options: RunOptions | None, values: Sequence[Any], metadata: RunMetadata | None
    ) -> list[Array]:
        """Runs one step of a request on the values of its feeds."""
        self._home.check()
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._pacer.rest_if_due()
        self._check_open()  # after the last chance to close it: no step may begin once the actors have been told to end
        if options is not None:
            check_options(options, self._settings)
        fed = fed_values(prepared.feeds, values, self._tensors, copy=prepared.keeps_feeds)
        self._running += 1
        self._num_steps += 1
        number = self._num_steps
        try:
            if options is None and metadata is None and self._is_plain:
                return await self._run(prepared, fed, number)
            return await self._run_with(prepared, fed, number, options or RunOptions(), metadata or RunMetadata())
        except PartitaError as error:
            error.located(step=number, inputs=inputs_of(self.graph, error))
            raise
        finally:
            self._running -= 1

    async def _run(self, prepared: Prepared, fed: list[Any], number: int) -> list[Array]:
        if prepared.alone is not None:
            slots = fresh_slots(prepared.alone, fed)
            with np.errstate(all="ignore"):
                await run_alone(prepared.alone, slots, self._pacer, prepared.work[0][1].limiter, self._check())
            return prepared.fetched([(prepared.alone, slots)], fed)
        if prepared.interpretation is not None:
            return await self._interpret(prepared.interpretation, prepared, fed, number)
        return prepared.fetched([(p.plan, p.slots) for p in await self._run_parts(prepared.work, fed, number)], fed)

    async def _interpret(self, graph: Interpretation, prepared: Prepared, fed: list[Any], number: int) -> list[Array]:
        """Runs a graph with unusual loops in the tagged-frame interpreter, on the client's actor."""
        step = Step(number, LocalRendezvous())
        self._steps.add(step)
        try:
            with np.errstate(all="ignore"):
                part = start_interpreted(step, graph, self._actors[self.cluster.client.name], fed)
                self._crew.work()
            await step.wait()
        finally:
            self._steps.discard(step)
        return prepared.arrays({port.number: part.result(port.number) for port in prepared.fetches}, fed)

    async def _run_parts(
        self, work: Sequence[tuple[Plan, DeviceActor]], fed: list[Any], number: int, *, with_trace: bool = False
    ) -> list[Part]:
        """Runs plans on their actors; their parts when the step is done."""
        step = Step(number, LocalRendezvous())
        self._steps.add(step)
        try:
            with np.errstate(all="ignore"), collector_paused():
                parts = start_parts(step, work, fed, with_trace=with_trace)
                self._crew.work()
            await step.wait()
        finally:
            self._steps.discard(step)
        return parts

    async def _run_with(
        self, prepared: Prepared, fed: list[Any], number: int, options: RunOptions, metadata: RunMetadata
    ) -> list[Array]:
        """Runs a step with the extras that options ask for."""
        if options.output_partition_graphs:
            metadata.partition_graphs.extend(part.to_graph_def() for part in prepared.partitions.values())
        if self._settings.experimental.HasField("session_metadata"):
            metadata.session_metadata.CopyFrom(self._settings.experimental.session_metadata)
        with_costs = self._traces.for_costs.begin(prepared.signature)
        timeout_ms = options.timeout_in_ms if options.timeout_in_ms > 0 else self._timeout_ms
        with trio.move_on_after(seconds(timeout_ms)):
            if not prepared.work or not (with_costs or options.trace_level != RunOptions.NO_TRACE):
                return await self._run(prepared, fed, number)
            parts = await self._run_parts(self._traces.work(prepared), fed, number, with_trace=True)
            self._traces.record(parts, prepared, metadata, with_costs=with_costs)
            return prepared.fetched([(part.plan, part.slots) for part in parts], fed)
        raise DeadlineExceededError(f"the step was not done after timeout_in_ms = {timeout_ms}")


def _closed() -> CancelledError:
    return CancelledError("Session has been closed.")


def open_session(
    graph_def: GraphSource,
    devices: str | Path | Cluster = "cpu:1",
    *,
    config: ConfigProto | None = None,
    seed: int | None = None,
    budget_s: float = DEFAULT_BUDGET_S,
    thread_limit_s: float = DEFAULT_THREAD_LIMIT_S,
    on_read: Callable[[int], object] | None = None,
) -> AbstractAsyncContextManager[Session]:
    """Imports a graph, places it on `devices` ("cpu:4", "cpu:2,gpu:4", or a `Cluster`) and opens a session on it.

    The graph may be a GraphDef, its bytes, the path of its file, a `GraphBuilder` or a `Graph`; the devices may be the
    path of a cluster file. docs/config.md says what each field of `config` does; one that would change values or
    placement and is not honoured is refused by name. `seed` makes random ops that have no seed of their own repeatable;
    `budget_s` is how long, in seconds, a step may keep the event loop from its other tasks; a kernel that takes more
    than `thread_limit_s` (on a single device: more than the budget too) is run in a worker thread from then on;
    `on_read` hears of the progress of the import, as in `graph_def_to_graph`, in whatever thread that runs. Raises
    InvalidArgumentError or NotFoundError for a graph that cannot be read, imported, lowered or placed, for devices that
    are none, and for settings that cannot be honoured.
    """

    async def make() -> Session:
        settings = own_copy(config)
        cluster = usable_devices(devices, settings)
        reader = GraphReader(cluster, settings, by_request=settings.graph_options.place_pruned_graph)
        return Session(
            await reader.read(graph_def, on_read),
            cluster,
            reader,
            seed=seed,
            budget_s=budget_s,
            thread_limit_s=thread_limit_s,
            settings=settings,
        )

    return Block(make)
