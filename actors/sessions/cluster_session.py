"""A session over several tasks: a master that cuts graphs by task, and a worker for each, in one process.

Flows in: a graph, a cluster of several tasks, requests. Flows out: arrays. Always holds: a value is what a session on
one task gives; a step has one rendezvous, where the workers and the master meet; the first worker that fails ends the
step on all others, and its error is the one that the client hears.

    request -> client graph -> a share per task -> registered with its worker, once
    step    -> every worker executes its share | the master sends feeds and receives fetches -> rendezvous closed
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import trio

from ...devices.cluster_file import as_cluster
from ...devices.visible import filtered
from ...errors import CancelledError, DeadlineExceededError, PartitaError
from ...graph import ConfigProto, GraphDef, RunMetadata, RunOptions, StepStats
from ...graph.analysis.schedule import start_times
from ...graph.builder.tensor_names import Names, tensor_names
from ...graph.dtypes import DataType, base_type
from ...graph.partition import PartitionOptions, name_counter
from ...graph.passes.client_graph import client_graph
from ...graph.passes.pipeline import Optimisations
from ...graph.tasks import MASTER_SEPARATOR, partition_by_task, task_of
from ...graph.tensor_id import parse_tensor_name
from ...graph.validate import check_kinds
from ...rendezvous import Key, LocalRendezvous
from ..plans.transfers import check_keys
from ..running.ports import Feeds, Port, feed_value, fetched_array, ports, split_feeds
from .config_checks import check_config, check_options, own_copy
from .graph_manager import GraphManager
from .lifetime import Block, Home, unwrapped
from .partial_run import full_name, partial_signature
from .requests import Signature, check_names, seconds
from .session_graph import GraphReader
from .session_traces import CostSteps

if TYPE_CHECKING:
    from pathlib import Path

    from ...devices.cluster import Cluster
    from ...graph.dtypes import Array
    from ...graph.graph import Graph
    from ...graph.graphdef.sources import GraphSource
    from ...graph.node import Edge


@dataclass(frozen=True, slots=True)
class _Registered:
    """A request that every worker has its share of."""

    feeds: Mapping[str, Port]
    fetches: Mapping[str, Port]
    handles: Mapping[str, str]
    """task -> handle"""


class ClusterSession:
    """See the module. Made by `open_cluster_session`."""

    def __init__(
        self,
        graph: Graph,
        cluster: Cluster,
        workers: Mapping[str, GraphManager],
        reader: GraphReader,
        settings: ConfigProto,
    ) -> None:
        """`reader` made `graph`."""
        self.graph = graph
        self._home = Home()
        self.cluster = cluster
        self.workers = workers
        self._reader = reader
        self._settings = settings
        self._recv_scheduling = settings.graph_options.enable_recv_scheduling
        self._optimisations = Optimisations.of(settings.graph_options)
        self._costs = CostSteps(settings.graph_options, distributed=True)
        self._options = PartitionOptions(
            new_name=name_counter(separator=MASTER_SEPARATOR),
            get_incarnation=cluster.incarnation,
            should_cast=_to_bfloat16 if settings.graph_options.enable_bfloat16_sendrecv else None,
        )
        self._registered: dict[Signature, _Registered] = {}
        self._closed = False

    @property
    def graph_def(self) -> GraphDef:
        """See `Session.graph_def`."""
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
        """Runs one step; arguments, values and errors are those of `Session.run`.

        Of `options` those count that do in TensorFlow's sessions on several tasks (docs/config.md). Raises
        AbortedError too, when a worker has restarted since; the request is registered anew by the next step.
        """
        self._check_open()
        wishes = options or RunOptions()
        check_options(wishes, self._settings, distributed=True)
        names, values = split_feeds(feeds)
        wanted = tensor_names(fetches)
        signature = partial_signature(names, wanted, targets)
        request = self._registered.get(signature) or self._register(signature)
        fed = [(request.feeds[full_name(name)], value) for name, value in zip(names, values, strict=True)]
        inputs = {self._key(port.name): feed_value(port, value, copy=True) for port, value in fed}
        outputs = {self._key(port.name): port for port in request.fetches.values()}
        with_trace, with_costs = wishes.trace_level == RunOptions.FULL_TRACE, self._costs.begin(signature)
        step = _ClusterStep(LocalRendezvous(), trace=with_trace or with_costs)
        timeout_ms = wishes.timeout_in_ms if wishes.timeout_in_ms > 0 else self._settings.operation_timeout_in_ms
        try:
            with trio.move_on_after(seconds(timeout_ms)) as limit:
                await self._run(step, request, inputs, list(outputs))
        except PartitaError as error:
            if error.code == "ABORTED":
                self._registered.pop(signature, None)
            raise
        if limit.cancelled_caught:
            raise DeadlineExceededError(f"the step was not done after timeout_in_ms = {timeout_ms}")
        if metadata is not None:
            self._report(request, step, wishes, metadata, with_costs=with_costs)
        arrays = {port.name: fetched_array(port, step.outputs[key], ()) for key, port in outputs.items()}
        return [arrays[full_name(name)] for name in wanted]

    def start(self, nursery: trio.Nursery) -> None:
        """Starts the workers; `open_cluster_session` does."""
        for worker in self.workers.values():
            worker.start(nursery)

    def close(self) -> None:
        """Ends the session; steps under way fail with CancelledError."""
        if not self._closed:
            self._closed = True
            for worker in self.workers.values():
                worker.shut_down(CancelledError("Session has been closed."))

    def _check_open(self) -> None:
        self._home.check()
        if self._closed:
            raise CancelledError("Session has been closed.")

    def _key(self, name: str) -> str:
        client = self.cluster.client
        return str(Key(client.name, client.incarnation, client.name, name))

    def _scheduled(self, requested: Graph) -> PartitionOptions:
        """How to cut the graph of a request: with the earliest start times if receives are to be scheduled by them."""
        if not self._recv_scheduling:
            return self._options
        return replace(
            self._options,
            scheduling_for_recvs=True,
            need_to_record_start_times=True,
            start_times=start_times(requested),
        )

    def _register(self, signature: Signature) -> _Registered:
        """Cuts the graph of a request by task and hands every worker its share."""
        check_names(self.graph, signature)
        client = self.cluster.client
        requested = client_graph(self.graph, *signature[:3], client.name, False, incarnation=client.incarnation)
        check_kinds(requested)
        check_keys(requested)
        shares = partition_by_task(requested, self._scheduled(requested))
        handles = {
            task: self.workers[task].register(
                share, recv_scheduling=self._recv_scheduling, optimisations=self._optimisations
            )
            for task, share in shares.items()
        }
        made = _Registered(self._ports(signature.feeds), self._ports(signature.fetches), handles)
        self._registered[signature] = made
        return made

    def _ports(self, names: Sequence[str]) -> dict[str, Port]:
        tensors = [parse_tensor_name(name) for name in names]
        nodes = [self.graph.find_node(tensor.node) for tensor in tensors]
        types = [
            base_type(node.output_types[tensor.index])
            for node, tensor in zip(nodes, tensors, strict=True)
            if node is not None
        ]
        return {port.name: port for port in ports(names, types)}

    async def _run(
        self, step: _ClusterStep, request: _Registered, inputs: Mapping[str, Any], outputs: list[str]
    ) -> None:
        """Runs one step on all workers."""
        client = self.workers[task_of(self.cluster.client.name)]
        try:
            async with trio.open_nursery() as nursery:
                for task, handle in request.handles.items():
                    nursery.start_soon(step.execute, nursery, self.workers[task], handle)
                nursery.start_soon(step.exchange, nursery, client, inputs, outputs)
        except BaseExceptionGroup as group:
            raise unwrapped(group) from group.__cause__
        finally:
            step.rendezvous.close()
        if step.error is not None:
            raise step.error

    def _report(
        self, request: _Registered, step: _ClusterStep, options: RunOptions, metadata: RunMetadata, *, with_costs: bool
    ) -> None:
        """Writes what was asked for of a step that has ended."""
        if options.trace_level == RunOptions.FULL_TRACE:
            for stats in step.stats:
                metadata.step_stats.MergeFrom(stats)
        for task, handle in request.handles.items():
            if options.output_partition_graphs:
                metadata.partition_graphs.extend(self.workers[task].partitions(handle))
            if with_costs:
                self.workers[task].build_cost_model(handle, metadata.cost_graph)


def _to_bfloat16(edge: Edge) -> DataType:
    """What a tensor is sent to another task as: floats lose half of their bits."""
    if edge.is_control:
        return DataType.FLOAT
    dtype = base_type(edge.src.output_types[edge.src_output])
    return DataType.BFLOAT16 if dtype == DataType.FLOAT else dtype


class _ClusterStep:
    """One step on several workers; remembers the first error, and with `trace` what each node took."""

    def __init__(self, rendezvous: LocalRendezvous, *, trace: bool) -> None:
        self.rendezvous = rendezvous
        self.trace = trace
        self.stats: list[StepStats] = []
        self.error: PartitaError | None = None
        self.outputs: dict[str, Any] = {}

    async def execute(self, nursery: trio.Nursery, worker: GraphManager, handle: str) -> None:
        """Runs the share of one worker."""
        try:
            self.stats.append(await worker.execute(handle, self.rendezvous, trace=self.trace))
        except PartitaError as error:
            self._fail(nursery, error)

    async def exchange(
        self, nursery: trio.Nursery, worker: GraphManager, inputs: Mapping[str, Any], outputs: list[str]
    ) -> None:
        """Sends what is fed and receives what is fetched."""
        try:
            worker.send_inputs(self.rendezvous, inputs)
            self.outputs = await worker.recv_outputs(self.rendezvous, outputs)
        except PartitaError as error:
            self._fail(nursery, error)

    def _fail(self, nursery: trio.Nursery, error: PartitaError) -> None:
        """Ends the step on all other workers."""
        if self.error is None:
            self.error = error
        self.rendezvous.abort(self.error)
        nursery.cancel_scope.cancel()


def open_cluster_session(
    graph_def: GraphSource,
    cluster: str | Path | Cluster,
    *,
    config: ConfigProto | None = None,
    seed: int | None = None,
) -> AbstractAsyncContextManager[ClusterSession]:
    """Imports a graph, places it on the devices of `cluster`, and opens a session with a worker for each of its tasks.

    Arguments and errors are those of `open_session`; docs/config.md says which fields of `config` do something else in
    a session on several tasks.
    """

    async def make() -> ClusterSession:
        settings = own_copy(config)
        visible = filtered(as_cluster(cluster), settings.device_filters)
        check_config(settings, {device.type for device in visible}, distributed=True)
        by_task: dict[str, list[Any]] = {}
        for device in visible:
            by_task.setdefault(device.task_name, []).append(device)
        workers = {task: GraphManager(devices, seed=seed) for task, devices in by_task.items()}
        reader = GraphReader(visible, settings)
        return ClusterSession(await reader.read(graph_def), visible, workers, reader, settings)

    return Block(make)
