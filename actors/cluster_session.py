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

from ..errors import CancelledError, PartitaError
from ..graph import ConfigProto
from ..graph.dtypes import base_type
from ..graph.partition import PartitionOptions, name_counter
from ..graph.passes.pipeline import Optimisations
from ..graph.schedule import start_times
from ..graph.subgraph import client_graph
from ..graph.tasks import MASTER_SEPARATOR, partition_by_task, task_of
from ..graph.tensor_id import parse_tensor_name
from ..rendezvous import Key, LocalRendezvous
from .graph_manager import GraphManager
from .lifetime import Block, Home, unwrapped
from .partial_run import full_name, partial_signature
from .requests import Feeds, Port, Signature, as_names, check_names, feed_value, fetched_array, ports, split_feeds
from .session_graph import GraphReader
from .transfers import check_keys

if TYPE_CHECKING:
    from ..devices.cluster import Cluster
    from ..graph import GraphDef
    from ..graph.dtypes import Array
    from ..graph.graph import Graph
    from ..graph.importer import Serialisable


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
        *,
        recv_scheduling: bool,
        optimisations: Optimisations,
    ) -> None:
        self.graph = graph
        self._home = Home()
        self._recv_scheduling = recv_scheduling
        self._optimisations = optimisations
        self.cluster = cluster
        self.workers = workers
        self._options = PartitionOptions(
            new_name=name_counter(separator=MASTER_SEPARATOR), get_incarnation=cluster.incarnation
        )
        self._registered: dict[Signature, _Registered] = {}
        self._closed = False

    @trio.lowlevel.enable_ki_protection
    async def run(
        self, fetches: str | Sequence[str], feeds: Feeds | None = None, targets: str | Sequence[str] = ()
    ) -> list[Array]:
        """Runs one step; arguments, values and errors are those of `Session.run`.

        Raises AbortedError too, when a worker has restarted since; the request is registered anew by the next step.
        """
        self._check_open()
        names, values = split_feeds(feeds)
        wanted = as_names(fetches)
        signature = partial_signature(names, wanted, targets)
        request = self._registered.get(signature) or self._register(signature)
        fed = [(request.feeds[full_name(name)], value) for name, value in zip(names, values, strict=True)]
        inputs = {self._key(port.name): feed_value(port, value, copy=True) for port, value in fed}
        outputs = {self._key(port.name): port for port in request.fetches.values()}
        try:
            found = await self._step(request, inputs, list(outputs))
        except PartitaError as error:
            if error.code == "ABORTED":
                self._registered.pop(signature, None)
            raise
        arrays = {port.name: fetched_array(port, found[key], ()) for key, port in outputs.items()}
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

    async def _step(self, request: _Registered, inputs: Mapping[str, Any], outputs: list[str]) -> dict[str, Any]:
        """Runs one step on all workers; what the client receives, by key."""
        step = _ClusterStep(LocalRendezvous())
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
        return step.outputs


class _ClusterStep:
    """One step on several workers; remembers the first error."""

    def __init__(self, rendezvous: LocalRendezvous) -> None:
        self.rendezvous = rendezvous
        self.error: PartitaError | None = None
        self.outputs: dict[str, Any] = {}

    async def execute(self, nursery: trio.Nursery, worker: GraphManager, handle: str) -> None:
        """Runs the share of one worker."""
        try:
            await worker.execute(handle, self.rendezvous)
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
    graph_def: GraphDef | Serialisable | bytes,
    cluster: Cluster,
    *,
    config: ConfigProto | None = None,
    seed: int | None = None,
) -> AbstractAsyncContextManager[ClusterSession]:
    """Imports a graph, places it on the devices of `cluster`, and opens a session with a worker for each of its tasks.

    Arguments and errors are those of `open_session`; `graph_options.enable_recv_scheduling` has receives wait until
    they are needed soon.
    """

    async def make() -> ClusterSession:
        by_task: dict[str, list[Any]] = {}
        for device in cluster:
            by_task.setdefault(device.task_name, []).append(device)
        workers = {task: GraphManager(devices, seed=seed) for task, devices in by_task.items()}
        settings = config or ConfigProto()
        options = settings.graph_options
        return ClusterSession(
            await GraphReader(cluster, settings).read(graph_def),
            cluster,
            workers,
            recv_scheduling=options.enable_recv_scheduling,
            optimisations=Optimisations.of(options),
        )

    return Block(make)
