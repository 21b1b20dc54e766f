"""Opens a session over several simulated tasks: a master and a worker per task, all in one process.

It is a `Session` and gives the values of a local one. The master cuts each request by task and sends each worker its
share as a GraphDef; the worker cuts it by device:

    request -> client graph -> a share per task -> registered with its worker, once
    step    -> the client sends the feeds | every worker runs its share | the client receives the fetches

Client and workers share one rendezvous per step. A worker checks the incarnation of the sender when it receives from
another task. An error of one worker ends the step on all.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from ...devices.given_cluster import as_cluster
from ...devices.visible import filtered
from ...graph import ConfigProto
from ...graph.dtypes import DataType, base_type
from ...graph.partition.options import name_counter
from ...graph.tasks import MASTER_SEPARATOR
from ...rendezvous import refuse_stale
from ..running.threads import run_first_in_thread
from .lifetime import Block
from .options.config_checks import check_config, own_copy
from .options.remote_places import DEFAULT_HEARTBEAT_S, RemotePlaces
from .prepared_requests import DEFAULT_MAX_REQUESTS
from .session import Session
from .session_graph import GraphReader, session_pipeline
from .workers import Workers, WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ...devices.cluster import Cluster
    from ...graph.graphdef.sources import GraphSource
    from ...graph.node import Edge
    from ...rendezvous import Policy
    from .processes.session.opening import GivenWorkers
    from .worker_protocol import SessionWorkers


def open_cluster_session(
    graph_def: GraphSource,
    cluster: str | Path | Cluster,
    *,
    config: ConfigProto | None = None,
    passes: str | None = None,
    seed: int | None = None,
    max_requests: int = DEFAULT_MAX_REQUESTS,
    policy: Policy = refuse_stale,
    workers: GivenWorkers | None = None,
    spread: Mapping[str, str | int] | None = None,
    heartbeat_s: float = DEFAULT_HEARTBEAT_S,
) -> AbstractAsyncContextManager[Session]:
    """Imports a graph, places it on the devices of `cluster`, and opens a session with a worker for each of its tasks.

    Arguments and errors are those of `open_session`; docs/config.md says which fields of `config` mean something else
    in a session over several tasks.

    When a worker receives from a device of another task, `policy` gets the device, the incarnation that it had when the
    request was cut, and the one that it has now; the step ends with the error that it returns, or goes on for None.
    By default it is TensorFlow's: AbortedError if the device has restarted; the next step prepares its request again.

    With `workers`, `spread` and `heartbeat_s`, as in `open_session`, the workers of tasks are in other processes.
    """

    async def make() -> Session:
        settings = own_copy(config)
        visible = filtered(await run_first_in_thread(as_cluster, cluster), settings.device_filters)
        check_config(settings, {device.type for device in visible}, distributed=True)
        options, limits = settings.graph_options, WorkerSettings(seed, policy)
        reader = GraphReader(options, places_requests=False)

        async def open_on(cluster: Cluster, remote: SessionWorkers | None) -> Session:
            pipeline = replace(
                session_pipeline(cluster, settings, passes),
                schedule_receives=options.enable_recv_scheduling,
                should_cast=_to_bfloat16 if options.enable_bfloat16_sendrecv else None,
                new_name=name_counter(separator=MASTER_SEPARATOR),
            )
            stage = await reader.read(pipeline, graph_def)
            session_workers = remote or Workers(cluster, limits, is_distributed=True)
            return Session(stage, session_workers, reader, settings, max_requests)

        return await RemotePlaces(workers, spread, heartbeat_s).open(open_on, visible, limits, is_distributed=True)

    return Block(make)


def _to_bfloat16(edge: Edge) -> DataType:
    """The element type in which a tensor is sent to another task: bfloat16 for float, its own for all others."""
    if edge.is_control:
        return DataType.FLOAT
    dtype = base_type(edge.src.output_types[edge.src_output])
    return DataType.BFLOAT16 if dtype == DataType.FLOAT else dtype
