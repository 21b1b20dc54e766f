"""How a session comes by its graph: read, lowered and placed by its pipeline, whole at first, with additions later.

Flows in: GraphDefs, the pipeline and settings of a session. Flows out: stages of the pipeline. Always holds: a graph
handed out is not changed by a later addition, which makes a new one; large graphs are read in a worker thread.

With `graph_options.place_pruned_graph` the graph stays unplaced, and every request has its own part placed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import trio

from ...graph import GraphDef
from ...graph.graphdef.extend import extended
from ...graph.graphdef.sources import graph_bytes, is_path
from ...graph.shape_inference.annotated import to_annotated_graph_def

if TYPE_CHECKING:
    from ...devices.pipeline import Lowered, Pipeline, Placed
    from ...graph import GraphOptions
    from ...graph.graph import Graph
    from ...graph.graphdef.sources import GraphSource

_LARGE_BYTES = 200_000  # of a serialised graph that takes longer to import than a budget lasts
_LARGE_NODES = 2000  # of a graph that takes longer to write out


class GraphReader:
    """Reads the graphs of one session, which all go through the same stages."""

    def __init__(self, options: GraphOptions, *, places_requests: bool) -> None:
        """With `places_requests` graphs stay unplaced."""
        self._writes_shapes = options.infer_shapes
        self._places_requests = places_requests

    async def read(
        self, pipeline: Pipeline, graph_def: GraphSource, on_read: Callable[[int], object] | None = None
    ) -> Placed | Lowered:
        """The graph of `graph_def`, ready for requests; `on_read` hears of the progress. Raises as the stages do.

        The import of a large graph ends when whoever waits for it is cancelled.
        """
        if is_path(graph_def):
            graph_def = await trio.to_thread.run_sync(graph_bytes, graph_def)
        elif not isinstance(graph_def, GraphDef):
            graph_def = graph_bytes(graph_def)
        if _size(graph_def) > _LARGE_BYTES:
            return await trio.to_thread.run_sync(self._read_now, pipeline, graph_def, partial(_go_on, on_read))
        return self._read_now(pipeline, graph_def, on_read)

    async def read_more(self, stage: Placed | Lowered, addition: GraphSource) -> Placed | Lowered:
        """A new graph: that of `stage`, where it is, with `addition`. Raises as `extended` and `read` do."""
        if stage.graph.num_nodes > _LARGE_NODES:
            return await self.read(stage.pipeline, await trio.to_thread.run_sync(extended, stage.graph, addition))
        return await self.read(stage.pipeline, extended(stage.graph, addition))

    def _read_now(
        self, pipeline: Pipeline, graph_def: GraphDef | bytes, on_read: Callable[[int], object] | None
    ) -> Placed | Lowered:
        lowered = pipeline.read(graph_def, on_read).lower()
        return lowered if self._places_requests else lowered.place()

    def written(self, graph: Graph) -> GraphDef:
        """A graph of the session as a GraphDef; with `graph_options.infer_shapes` its nodes say their shapes.

        Raises InvalidArgumentError, naming the node, where shapes contradict an op.
        """
        return to_annotated_graph_def(graph) if self._writes_shapes else graph.to_graph_def()


def _go_on(on_read: Callable[[int], object] | None, count: int) -> None:
    """Reports progress from a worker thread; raises Cancelled or KeyboardInterrupt if nobody waits for it any more."""
    trio.from_thread.check_cancelled()
    if on_read is not None:
        on_read(count)


def _size(graph_def: GraphDef | bytes) -> int:
    """Bytes of a graph."""
    return len(graph_def) if isinstance(graph_def, bytes) else graph_def.ByteSize()
