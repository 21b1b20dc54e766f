"""Sessions: a graph on a set of devices, run as often as one likes.

Flows in: a GraphDef and devices, then requests: fetches, feeds, targets. Flows out: arrays. Always holds: the graph
is imported and placed once, each signature is partitioned and compiled once; a failed or cancelled step leaves
nothing behind and the session usable; exceptions of the user's own code leave `open_session` as they were raised.

The walk of a request, in a local session and over several tasks (`cluster_session`):

    names -> `preparation.prepare`: cut out, shared out to the workers, compiled -> `Prepared`, kept by its names
    step  -> one plan that needs nobody else: run in the caller's task
             otherwise: a `Step` on the actors of the worker, or one with each worker -> arrays

Partial runs (`partial_run`), callables and traces are the same walk with another way to feed, to name or to look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import trio

from ...devices.pipeline import Pipeline
from ...errors import AbortedError, CancelledError, PartitaError, UnimplementedError
from ...graph import ConfigProto, GraphDef, RunMetadata, RunOptions
from ...graph.builder.tensor_names import tensor_names
from ...graph.passes.optimizer import Optimisations
from ..running.executor import DEFAULT_BUDGET_S, DEFAULT_THREAD_LIMIT_S
from ..running.ports import Feeds, split_feeds
from .config_checks import check_options, own_copy, usable_devices
from .lifetime import Block, Home
from .partial_run import PartialRuns, partial_signature
from .preparation import Prepared, prepare
from .prepared_requests import PreparedRequests
from .requests import Signature, fed_values, inputs_of, seconds
from .session_callable import SessionCallable
from .session_graph import GraphReader
from .session_statistics import SessionStatistics
from .steps import Steps
from .workers import Workers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ...devices.cluster import Cluster
    from ...devices.pipeline import Lowered, Placed
    from ...graph.builder.tensor_names import Names
    from ...graph.dtypes import Array
    from ...graph.graph import Graph
    from ...graph.graphdef.sources import GraphSource
    from .graph_manager import GraphManager

_LARGE = 2000  # nodes of a graph and its functions whose requests take longer to prepare than a budget lasts


class Session:
    """A placed graph and the workers that run it. Made by `open_session` and `open_cluster_session`.

    Safe to share between tasks of one event loop.
    """

    def __init__(self, stage: Placed | Lowered, workers: Workers, reader: GraphReader, settings: ConfigProto) -> None:
        """`reader` made `stage`, and makes those that extend it."""
        self.cluster = stage.pipeline.cluster
        self._stage = stage
        self._home = Home()
        self._reader = reader
        self._workers = workers
        self._settings = settings
        self._bind_functions()
        self._requests = PreparedRequests(self._prepare)
        self._steps = Steps(workers, settings, self._check)
        self._num_steps = 0
        self._num_callables = 0
        self._running = 0
        self._restarts: list[str] = []
        self._partial_runs = PartialRuns(workers.actor_group, self._steps.under_way, workers.tensors)
        self._closed = False

    @property
    def graph(self) -> Graph:
        """The graph as it is now, lowered, and placed unless requests are placed one by one."""
        return self._stage.graph

    @property
    def workers(self) -> Mapping[str, GraphManager]:
        """The workers by task; a local session has one."""
        return self._workers.by_task

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
        self._check_options(options)
        signature = Signature(tensor_names(feeds), tensor_names(fetches), tensor_names(targets))
        await self._ready(signature)
        self._num_callables += 1

        @trio.lowlevel.enable_ki_protection
        async def run(values: Sequence[Any], metadata: RunMetadata | None) -> list[Array]:
            self._check_open()
            prepared = self._requests.find(signature) or await self._ready(signature)
            return await self._call(prepared, options, values, metadata)

        return SessionCallable(self._num_callables - 1, len(signature.feeds), run)

    @trio.lowlevel.enable_ki_protection
    async def extend(self, graph_def: GraphSource) -> None:
        """Adds nodes, which may read from those that are there, and functions; the versions become the new ones.

        What is there stays where it is and as it is, and so do requests made before. Raises InvalidArgumentError for a
        name that is taken, and what `open_session` raises for graphs; then nothing has changed.
        """
        self._check_entry()
        async with self._requests.lock:
            self._stage = await self._reader.read_more(self._stage, graph_def)
            self._bind_functions()

    def _bind_functions(self) -> None:
        """Lets the kernels of all devices call the functions of the graph."""
        self._workers.bind_functions(self.graph, soft=self._settings.allow_soft_placement)

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
        return self._partial_runs.begin(prepared, self.graph, self._workers.new_step(self._num_steps))

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
        await self._workers.pacer.yield_if_due()
        try:
            return await self._partial_runs.run(handle, fetches, feeds, seconds(self._settings.operation_timeout_in_ms))
        except PartitaError as error:
            error.located(inputs=inputs_of(self.graph, error))
            self._learn_of_restarts(error)
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
        return prepare(self._stage, signature, self._workers, check)

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
        error = self._workers.restart_device(self.cluster.find(name).name)
        self._restarts.append(error.message)
        self._steps.fail(AbortedError(error.message))
        self._look_again()

    def _look_again(self) -> None:
        """Prepares everything anew, on the devices as they are now."""
        self.cluster = self._workers.devices_now(self.cluster)
        self._stage = replace(self._stage, pipeline=replace(self._stage.pipeline, cluster=self.cluster))
        self._requests.clear()
        self._workers.forget_requests()
        self._bind_functions()

    def start(self, nursery: trio.Nursery) -> None:
        """Starts the actors; `open_session` does."""
        self._workers.start(nursery)

    def close(self) -> None:
        """Ends the session: steps under way fail with CancelledError, and so does every later `run`."""
        if self._closed:
            return
        self._closed = True
        self._steps.fail(_closed())
        self._partial_runs.clear(_closed())
        self._workers.shut_down(_closed())

    def _check_entry(self) -> None:
        """Raises in a thread that is not the session's, and once it is closed."""
        self._home.check()
        self._check_open()

    def _check_open(self) -> None:
        if self._closed:
            raise _closed()

    def _check_options(self, options: RunOptions | None) -> None:
        if options is not None:
            check_options(options, self._settings, distributed=self._workers.is_distributed)

    def _learn_of_restarts(self, error: PartitaError) -> None:
        """ABORTED can mean that a worker has restarted by itself: then the next step finds everything prepared anew."""
        if error.code != "ABORTED" or self._closed:
            return
        if self._requests.are_forgotten() or self._workers.devices_now(self.cluster) is not self.cluster:
            self._look_again()

    def _check(self) -> Callable[[], None]:
        """What a step that begins now asks at each rest; it raises if the step must not go on."""
        restarts = len(self._restarts)

        def check() -> None:
            self._check_open()
            if len(self._restarts) > restarts:
                raise AbortedError(self._restarts[restarts])

        return check

    async def _call(
        self, prepared: Prepared, options: RunOptions | None, values: Sequence[Any], metadata: RunMetadata | None
    ) -> list[Array]:
        """Runs one step of a request on the values of its feeds."""
        self._home.check()
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._workers.pacer.yield_if_due()
        self._check_open()  # after the last chance to close it: no step may begin once the actors have been told to end
        self._check_options(options)
        fed = fed_values(prepared.feeds, values, self._workers.tensors, copy=prepared.keeps_feeds)
        self._running += 1
        self._num_steps += 1
        number = self._num_steps
        try:
            return await self._steps.run(prepared, fed, number, options, metadata)
        except PartitaError as error:
            error.located(step=number, inputs=inputs_of(self.graph, error))
            self._learn_of_restarts(error)
            raise
        finally:
            self._running -= 1


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
        options = settings.graph_options
        pipeline = Pipeline(
            cluster,
            inline_calls=options.optimizer_options.do_function_inlining,
            lower_control_flow=not settings.experimental.disable_functional_ops_lowering,
            allow_soft_placement=settings.allow_soft_placement,
            optimisations=Optimisations.of(options),
        )
        reader = GraphReader(options, places_requests=options.place_pruned_graph)
        stage = await reader.read(pipeline, graph_def, on_read)
        workers = Workers(cluster, is_distributed=False, seed=seed, budget_s=budget_s, thread_limit_s=thread_limit_s)
        return Session(stage, workers, reader, settings)

    return Block(make)
