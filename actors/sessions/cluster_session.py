"""How a session over several tasks is opened: a master that cuts graphs by task, and a worker for each, in one process.

It is a `Session` like any other: a value is what a local session gives. Graphs go to the workers as GraphDefs, which
they cut again by device; the client feeds and fetches at the rendezvous where the workers meet; a worker looks at the
incarnation of whatever it receives from another task; the first worker that fails ends the step on all others.

    request -> client graph -> a share per task -> registered with its worker, once
    step    -> feeds sent | every worker runs its share | fetches received
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from ...devices.cluster_file import as_cluster
from ...devices.pipeline import Pipeline
from ...devices.visible import filtered
from ...graph import ConfigProto
from ...graph.dtypes import DataType, base_type
from ...graph.partition import name_counter
from ...graph.passes.optimizer import Optimisations
from ...graph.tasks import MASTER_SEPARATOR
from ..running.executor import DEFAULT_BUDGET_S, DEFAULT_THREAD_LIMIT_S
from .config_checks import check_config, own_copy
from .lifetime import Block
from .session import Session
from .session_graph import GraphReader
from .workers import Workers

if TYPE_CHECKING:
    from pathlib import Path

    from ...devices.cluster import Cluster
    from ...graph.graphdef.sources import GraphSource
    from ...graph.node import Edge


def open_cluster_session(
    graph_def: GraphSource,
    cluster: str | Path | Cluster,
    *,
    config: ConfigProto | None = None,
    seed: int | None = None,
) -> AbstractAsyncContextManager[Session]:
    """Imports a graph, places it on the devices of `cluster`, and opens a session with a worker for each of its tasks.

    Arguments and errors are those of `open_session`; docs/config.md says which fields of `config` do something else in
    a session on several tasks. Its steps raise AbortedError too, when a worker has restarted; the next step finds the
    request prepared anew.
    """

    async def make() -> Session:
        settings = own_copy(config)
        visible = filtered(as_cluster(cluster), settings.device_filters)
        check_config(settings, {device.type for device in visible}, distributed=True)
        options = settings.graph_options
        pipeline = Pipeline(
            visible,
            inline_calls=options.optimizer_options.do_function_inlining,
            lower_control_flow=not settings.experimental.disable_functional_ops_lowering,
            allow_soft_placement=settings.allow_soft_placement,
            optimisations=Optimisations.of(options),
            schedule_receives=options.enable_recv_scheduling,
            should_cast=_to_bfloat16 if options.enable_bfloat16_sendrecv else None,
            new_name=name_counter(separator=MASTER_SEPARATOR),
        )
        reader = GraphReader(options, places_requests=False)
        stage = await reader.read(pipeline, graph_def)
        workers = Workers(
            visible,
            is_distributed=True,
            seed=seed,
            budget_s=DEFAULT_BUDGET_S,
            thread_limit_s=DEFAULT_THREAD_LIMIT_S,
        )
        return Session(stage, workers, reader, settings)

    return Block(make)


def _to_bfloat16(edge: Edge) -> DataType:
    """What a tensor is sent to another task as: floats lose half of their bits."""
    if edge.is_control:
        return DataType.FLOAT
    dtype = base_type(edge.src.output_types[edge.src_output])
    return DataType.BFLOAT16 if dtype == DataType.FLOAT else dtype
