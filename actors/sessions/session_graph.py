"""Reads, lowers and places the graph of a session, when the session opens and when its graph is extended.

An extension makes a new graph and leaves the old one as it is. Large graphs are read in a worker thread. With
`graph_options.place_pruned_graph` the graph stays unplaced, and each request places the nodes that it needs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...devices.pipeline import Pipeline
from ...graph import GraphDef
from ...graph.display.progress import Progress, ProgressCallback, no_progress
from ...graph.graphdef.extend import extended
from ...graph.graphdef.sources import graph_bytes
from ...graph.passes.selection import Passes
from ..running.pacing import shared_slice
from ..running.threads import check_cancelled, run_first_in_thread, run_in_thread

if TYPE_CHECKING:
    from ...devices.cluster import Cluster
    from ...devices.pipeline import Lowered, Placed
    from ...graph import ConfigProto, GraphOptions
    from ...graph.graph import Graph
    from ...graph.graphdef.sources import GraphSource

_LARGE_BYTES = 20_000  # of a serialised graph; to import a larger one takes more than the budget of a session
_LARGE_NODES = 500  # to write a larger graph as a GraphDef takes more than the budget


def session_pipeline(cluster: Cluster, settings: ConfigProto, passes: str | None = None) -> Pipeline:
    """The pipeline of a session on `cluster`, with the settings that sessions of both kinds honour.

    `passes` takes the place of those that the settings ask for. Raises as `Passes.parse`.
    """
    return Pipeline(
        cluster,
        Passes.of(settings.graph_options) if passes is None else Passes.parse(passes),
        lower_control_flow=not settings.experimental.disable_functional_ops_lowering,
        allow_soft_placement=settings.allow_soft_placement,
    )


class GraphReader:
    """Reads the graphs of one session, with the same stages for the first graph and its extensions."""

    def __init__(self, options: GraphOptions, *, places_requests: bool) -> None:
        """With `places_requests` graphs are not placed."""
        self._writes_shapes = options.infer_shapes
        self._places = not places_requests

    async def read(
        self, pipeline: Pipeline, graph_def: GraphSource, on_progress: ProgressCallback = no_progress
    ) -> Placed | Lowered:
        """Reads, lowers and places `graph_def`; `on_progress` is told of the import. Raises as these stages.

        The import of a large graph stops when the calling task is cancelled.
        """
        graph_def = await _message_or_bytes(graph_def)
        if _is_large(graph_def):
            return await run_in_thread(_read, pipeline, graph_def, partial(_report, on_progress), self._places)
        await shared_slice().yield_if_due()  # of many sessions that open at once
        return await run_first_in_thread(_read, pipeline, graph_def, on_progress, self._places)

    async def read_more(self, stage: Placed | Lowered, addition: GraphSource) -> Placed | Lowered:
        """The graph of `stage`, its nodes placed where they are, plus `addition`. Raises as `extended` and `read`."""
        addition = await _message_or_bytes(addition)
        if stage.graph.num_nodes > _LARGE_NODES or _is_large(addition):
            return await self.read(stage.pipeline, await run_in_thread(extended, stage.graph, addition))
        return await self.read(stage.pipeline, extended(stage.graph, addition))

    def to_graph_def(self, graph: Graph) -> GraphDef:
        """A graph of the session as a GraphDef; with `graph_options.infer_shapes` its nodes have `_output_shapes`.

        Raises InvalidArgumentError, which names the node, where shapes contradict an op.
        """
        if not self._writes_shapes:
            return graph.to_graph_def()
        from ...graph.shape_inference.annotated import to_annotated_graph_def  # most sessions infer no shapes

        return to_annotated_graph_def(graph)


async def _message_or_bytes(source: GraphSource) -> GraphDef | bytes:
    """A graph as a message or its bytes; files are read in a thread, and objects that tell no size written in one."""
    if isinstance(source, GraphDef):
        return source
    if isinstance(source, bytes | bytearray | memoryview):
        return graph_bytes(source)
    return await run_in_thread(graph_bytes, source)


def _read(
    pipeline: Pipeline, graph_def: GraphDef | bytes, on_progress: ProgressCallback, places: bool
) -> Placed | Lowered:
    lowered = pipeline.read(graph_def, on_progress).lower()
    return lowered.place() if places else lowered


def _report(on_progress: ProgressCallback, progress: Progress) -> None:
    """Reports progress from a worker thread; raises Cancelled when the task that waits for the thread is cancelled."""
    check_cancelled()
    on_progress(progress)


def _is_large(graph_def: GraphDef | bytes) -> bool:
    """Whether to import a graph takes more than the budget; to count the bytes of a large message takes long itself."""
    if isinstance(graph_def, bytes):
        return len(graph_def) > _LARGE_BYTES
    return len(graph_def.node) > _LARGE_NODES or graph_def.ByteSize() > _LARGE_BYTES
