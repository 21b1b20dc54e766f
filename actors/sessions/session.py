"""`Session`: a placed graph that runs any number of steps, in one process or over several simulated tasks.

A session imports and places its graph once, and partitions and compiles each signature (names of feeds, fetches and
targets) once. A step that fails or is cancelled leaves the session usable. The docstring of this package draws how
`Session.run` gets from names to arrays; callables and partial runs use the same classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import trio

from ...devices.state import DEFAULT_CONTAINER
from ...errors import AbortedError, PartitaError, UnimplementedError
from ...graph import ConfigProto, GraphDef, RunMetadata, RunOptions
from ...graph.builder.tensor_names import tensor_names
from ..running.ports import Feeds, split_feeds
from ..running.threads import run_in_thread
from .lifetime import OwnerThread, session_closed
from .options.callable_options import callable_request
from .options.config_checks import check_options
from .partial_run import PartialRuns, partial_signature
from .preparation import Prepared, prepare, takes_long
from .prepared_requests import DEFAULT_MAX_REQUESTS, PreparedRequests, Restarts
from .requests import RequestNames, copied, fed_values, inputs_of, timeout_seconds
from .session_callable import SessionCallable
from .session_graph import GraphReader
from .session_statistics import SessionStatistics
from .steps import Steps
from .virtual_sessions import (
    SimulatedTime,
    StepRecording,
    check_recording,
    check_virtual_options,
    no_partial_runs,
)
from .worker_protocol import RequestForgottenError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...devices.pipeline import Lowered, Placed
    from ...graph import CallableOptions
    from ...graph.builder.tensor_names import Names
    from ...graph.dtypes import Array
    from ...graph.graph import Graph
    from ...graph.graphdef.sources import GraphSource
    from .graph_manager import GraphManager
    from .worker_protocol import SessionWorkers


class Session(SimulatedTime):
    """A placed graph and the workers that run it. `open_session` and `open_cluster_session` make sessions.

    Several tasks of one event loop may use a session at the same time.
    """

    def __init__(
        self,
        stage: Placed | Lowered,
        workers: SessionWorkers,
        reader: GraphReader,
        settings: ConfigProto,
        max_requests: int = DEFAULT_MAX_REQUESTS,
    ) -> None:
        """`stage` is the graph as `reader` read it; `extend` uses `reader` again."""
        self.cluster = stage.pipeline.cluster
        self.graph_version = 0
        """how often the graph was extended"""
        self._stage = stage
        self._thread = OwnerThread()
        self._reader = reader
        self._workers = workers
        self._settings = settings
        self._bind_functions()
        self._restarts = Restarts()
        self._requests = PreparedRequests(
            lambda names, check: prepare(self._stage, names, self._workers, check), self._restarts, max_requests
        )
        self._steps = Steps(workers, settings, self._step_check)
        self._num_callables = self._running = 0
        self._partial_runs = PartialRuns(workers, self._steps.under_way)
        self._closed = False
        workers.watch(self._lose, self._refresh)

    @property
    def graph(self) -> Graph:
        """The current graph: lowered, and placed unless `graph_options.place_pruned_graph` places each request."""
        return self._stage.graph

    @property
    def workers(self) -> Mapping[str, GraphManager]:
        """The workers of this process by task name; a local session has one, and one over worker processes none."""
        return self._workers.by_task

    @property
    def devices(self) -> list[str]:
        """Full names of the devices. The first is the client device: it feeds and fetches."""
        return self.cluster.names

    @property
    def graph_def(self) -> GraphDef:
        """The current graph; with `graph_options.infer_shapes` its nodes have `_output_shapes`."""
        return self._reader.to_graph_def(self.graph)

    @trio.lowlevel.enable_ki_protection
    async def graph_def_in_thread(self) -> GraphDef:
        """As `graph_def`, written in a thread, so that the event loop goes on."""
        self._thread.check()
        return await run_in_thread(self._reader.to_graph_def, self.graph)

    @trio.lowlevel.enable_ki_protection
    async def run(
        self,
        fetches: Names,
        feeds: Feeds | None = None,
        targets: Names = (),
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
        recording: StepRecording | None = None,
    ) -> list[Array]:
        """Runs one step and returns a list with a read-only array for each fetch, in order, duplicates included.

        A tensor is a name ("x" means "x:0") or what a `GraphBuilder` returned. `feeds` is a mapping from tensors to
        values or an iterable of pairs; `targets` are nodes to run for their effect. A fed array must have exactly the
        tensor's element type, Python numbers and lists are converted, and a handle from GetSessionHandleV2 stands for
        the tensor that it names. `options` and `metadata` are as in TensorFlow: traces, partition graphs, a time limit.
        `recording` takes up the step on a virtual clock.

        Raises InvalidArgumentError, NotFoundError or OutOfRangeError for the request, UnimplementedError for an op
        without kernel, the error of the first node that failed, CancelledError once the session is closed,
        FailedPreconditionError in another thread than the session's.
        """
        self._check_open()
        names, values = split_feeds(feeds)
        signature = RequestNames(names, tensor_names(fetches), tensor_names(targets))
        prepared = self._requests.find(signature) or await self._prepared(signature)
        return await self._run_prepared(prepared, options, values, metadata, recording)

    @trio.lowlevel.enable_ki_protection
    async def make_callable(
        self, feeds: Names, fetches: Names, targets: Names = (), options: RunOptions | None = None
    ) -> SessionCallable:
        """Prepares a request; the result is called with values in the order of `feeds`. Raises as `run` for names."""
        return await self._callable(RequestNames.of(feeds, fetches, targets, is_callable=True), options)

    @trio.lowlevel.enable_ki_protection
    async def make_callable_from_options(self, options: CallableOptions) -> SessionCallable:
        """As `make_callable`, for TensorFlow's message: with `tensor_connection`, `feed_devices` and `fetch_devices`.

        Raises also as `callable_request`, and InvalidArgumentError for connections of tensors that do not exist, whose
        types differ or that would close a cycle.
        """
        distributed = self._workers.is_distributed
        return await self._callable(*callable_request(options, self.cluster, distributed=distributed))

    async def _callable(self, signature: RequestNames, options: RunOptions | None) -> SessionCallable:
        self._check_open()
        self._check_options(options)
        await self._prepared(signature)
        self._num_callables += 1

        @trio.lowlevel.enable_ki_protection
        async def run(
            values: Sequence[Any], metadata: RunMetadata | None, recording: StepRecording | None
        ) -> list[Array]:
            self._check_open()
            prepared = self._requests.find(signature) or await self._prepared(signature)
            return await self._run_prepared(prepared, options, values, metadata, recording)

        return SessionCallable(self._num_callables - 1, len(signature.feeds), run)

    @trio.lowlevel.enable_ki_protection
    async def extend(self, graph_def: GraphSource, *, current_version: int | None = None) -> int:
        """Adds nodes, which may read from existing nodes, and functions; takes over the versions of `graph_def`.

        Existing nodes keep their devices and their state, and prepared requests stay valid. Returns the new
        `graph_version`. Raises AbortedError unless `current_version`, if given, is the version to be extended,
        InvalidArgumentError for a name that exists already, and what `open_session` raises for graphs; the graph is
        then unchanged.
        """
        self._check_entry()
        async with self._requests.lock:
            if current_version not in (None, self.graph_version):
                raise AbortedError(f"Current version is {self.graph_version} but caller expected {current_version}.")
            self._stage = await self._reader.read_more(self._stage, graph_def)
            self.graph_version += 1
            self._bind_functions()
            return self.graph_version

    def _bind_functions(self) -> None:
        """Lets the kernels of all devices call the functions of the graph."""
        self._workers.bind_functions(self.graph, soft=self._settings.allow_soft_placement)

    @trio.lowlevel.enable_ki_protection
    async def partial_run_setup(self, fetches: Names, feeds: Names, targets: Names = ()) -> str:
        """Starts a step that is fed and fetched in several calls, and returns its handle for `partial_run`.

        `feeds` and `fetches` name everything that the calls will feed and fetch. The step runs at once as far as it can
        without feeds. Raises as `run` for names, but NotFoundError for unknown feeds and fetches.
        """
        self._check_open()
        if self._workers.clock is not None:
            raise no_partial_runs()
        signature = partial_signature(feeds, fetches, targets)
        prepared = await self._prepared(signature)
        if prepared.whole is not None:
            raise UnimplementedError(
                "the graph has loops that only the interpreter can run, which needs all feeds at the start: use `run`"
            )
        number = self._requests.begin_step(prepared)
        return self._partial_runs.begin(prepared, self.graph, prepared.request.new_step(number))

    @trio.lowlevel.enable_ki_protection
    async def partial_run(self, handle: str, fetches: Names = (), feeds: Feeds | None = None) -> list[Array]:
        """Continues the step of `handle`: sends it `feeds`, waits for `fetches` and returns them as `run` does.

        Raises InvalidArgumentError for a handle that is unknown or finished, for names that `partial_run_setup` did not
        name or that were used before, for values of another type or shape, and for fetches that need missing feeds:
        after these the call may be repeated, corrected. Any other error ends the step: the error of a failed node, a
        dead fetch, DeadlineExceededError, CancelledError once the session is closed. A cancellation of the caller ends
        it too.
        """
        self._check_entry()
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._workers.pacer.yield_if_due()
        timeout_s = timeout_seconds(self._settings.operation_timeout_in_ms)
        try:
            return await self._partial_runs.run(handle, fetches, feeds, timeout_s)
        except PartitaError as error:
            error.located(inputs=inputs_of(self.graph, error))
            self._refresh_after_restart(error)
            raise

    @trio.lowlevel.enable_ki_protection
    def prepare(self, feeds: Names, fetches: Names, targets: Names = ()) -> Prepared:
        """Partitions and compiles a request unless that was done before; raises as `run` for names and kernels."""
        self._check_entry()
        return self._requests.prepare_now(RequestNames.of(feeds, fetches, targets))

    @trio.lowlevel.enable_ki_protection
    async def prepare_in_thread(self, feeds: Names, fetches: Names, targets: Names = ()) -> Prepared:
        """As `prepare`; where that may take long it is done in a thread, so that the event loop goes on."""
        self._check_open()
        return await self._prepared(RequestNames.of(feeds, fetches, targets))

    async def _prepared(self, signature: RequestNames) -> Prepared:
        """Prepares a request; raises CancelledError if the session was closed meanwhile."""
        self._thread.check()
        in_thread = takes_long(self.graph, len(self.devices))
        try:
            prepared = await self._requests.make_ready(signature, self._workers, in_thread=in_thread)
        except PartitaError:
            self._check_open()
            raise
        self._check_open()
        return prepared

    def statistics(self) -> SessionStatistics:
        """Counts of steps, prepared requests and what waits at collectives since the session was opened."""
        requests, waiting = self._requests, self._workers.tensors.waiting
        return SessionStatistics(
            steps=requests.num_steps,
            steps_running=self._running + len(self._partial_runs),
            requests=len(requests),
            request_hits=requests.num_hits,
            requests_forgotten=requests.num_forgotten,
            is_closed=self._closed,
            members_waiting=waiting.count,
            bytes_waiting=waiting.bytes,
            most_members_waiting=waiting.most,
            most_bytes_waiting=waiting.most_bytes,
        )

    @trio.lowlevel.enable_ki_protection
    def restart_device(self, name: str) -> None:
        """Restarts a device: its state is lost, and steps that use it fail with AbortedError; with functions all do.

        Raises InvalidArgumentError for an unknown device.
        """
        self._check_entry()
        error = self._workers.restart_device(device := self.cluster.find(name).name)
        self._restarts.add(device, error)
        self._steps.fail(AbortedError(error.message), device)
        self._refresh()

    def _lose(self, devices: list[str], error: PartitaError) -> None:
        """Devices are gone with their worker; steps that use them fail."""
        if not self._closed:
            for device in devices:
                self._restarts.add(device, error)
                self._steps.fail(error, device)
            self._refresh()

    def _refresh(self) -> None:
        """Takes over the new incarnations of the devices and forgets all prepared requests, which name the old ones."""
        self.cluster = self._workers.devices_now(self.cluster)
        self._stage = replace(self._stage, pipeline=replace(self._stage.pipeline, cluster=self.cluster))
        self._requests.clear()
        self._workers.forget_requests()
        self._bind_functions()

    def start(self, nursery: trio.Nursery) -> None:
        """Starts the actors in `nursery`; `open_session` calls this."""
        self._workers.start(nursery)

    @trio.lowlevel.enable_ki_protection
    def close(self) -> None:
        """Ends the session: running steps fail with CancelledError, and so does every later `run`."""
        if self._closed:
            return
        self._closed = True
        self._steps.fail(session_closed())
        self._partial_runs.clear(session_closed())
        self._workers.shut_down(session_closed())

    @trio.lowlevel.enable_ki_protection
    def reset(self, containers: Sequence[str] = ()) -> None:
        """Removes what the devices hold in these containers, by default in the default one, and closes the session."""
        self._thread.check()
        self.close()
        self._workers.clear(containers or [DEFAULT_CONTAINER])

    def _check_entry(self) -> None:
        """Raises FailedPreconditionError in another thread than the session's, CancelledError once it is closed."""
        self._thread.check()
        self._check_open()

    def _check_open(self) -> None:
        if self._closed:
            raise session_closed()

    def _check_options(self, options: RunOptions | None) -> None:
        if options is not None:
            check_options(options, self._settings, distributed=self._workers.is_distributed)
            if self._workers.clock is not None:
                check_virtual_options(options)

    def _refresh_after_restart(self, error: PartitaError) -> None:
        """Refreshes the session if a worker restarted without the session's knowledge; ABORTED may mean that."""
        if error.code != "ABORTED" or self._closed:
            return
        if self._requests.has_deregistered() or self._workers.devices_now(self.cluster) is not self.cluster:
            self._refresh()

    def _step_check(self, devices: frozenset[str]) -> Callable[[], None]:
        """A check for a step that starts now: it raises once the session is closed or one of its devices has restarted.

        Only a step in the caller's own task needs it, after each time it has let other tasks run: `Steps.fail` stops
        all others.
        """
        restarts = len(self._restarts)

        def check() -> None:
            self._check_open()
            self._restarts.check(restarts, devices)

        return check

    async def _run_prepared(
        self,
        prepared: Prepared,
        options: RunOptions | None,
        values: Sequence[Any],
        metadata: RunMetadata | None,
        recording: StepRecording | None,
    ) -> list[Array]:
        self._thread.check()
        prepared.running += 1  # before other tasks run, which may prepare others
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            await self._workers.pacer.yield_if_due()
            self._check_options(options)
            check_recording(self._workers.clock, recording)
            fed = fed_values(prepared.feeds, values, self._workers.tensors)
            fed = await copied(fed) if prepared.keeps_feeds else fed
            self._check_open()  # again: another task may have closed the session, and its actors run no step any more
            number = self._requests.begin_step(prepared)
            self._running += 1
            known = prepared
            try:
                while True:
                    try:
                        return await self._steps.run(known, fed, number, options, metadata, recording)
                    except RequestForgottenError:  # before the step began
                        known = await self._prepared(prepared.signature)
            except PartitaError as error:
                error.located(step=number, inputs=inputs_of(self.graph, error))
                self._refresh_after_restart(error)
                raise
            finally:
                self._running -= 1
        finally:
            prepared.running -= 1
