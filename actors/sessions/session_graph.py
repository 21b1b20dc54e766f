"""How a session comes by its graph: imported, lowered and placed, whole at first, with additions later.

Flows in: GraphDefs, the devices and settings of a session. Flows out: placed graphs. Always holds: a graph handed out
is not changed by a later addition, which makes a new one; large graphs are read in a worker thread; a stateful node
stays on the device where it was first placed, as what it holds is there.

With `graph_options.place_pruned_graph` the graph stays unplaced, and every request has its own part placed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import trio

from ...devices.placement.placer import place
from ...graph import GraphDef
from ...graph.graphdef.extend import extended
from ...graph.graphdef.importer import graph_def_to_graph
from ...graph.graphdef.sources import graph_bytes, is_path
from ...graph.passes.lower_functional import lower_functional
from ...graph.shape_inference.annotated import to_annotated_graph_def

if TYPE_CHECKING:
    from ...devices.cluster import Cluster
    from ...graph import ConfigProto
    from ...graph.graph import Graph
    from ...graph.graphdef.sources import GraphSource

_LARGE_BYTES = 200_000  # of a serialised graph that takes longer to import than a budget lasts
_LARGE_NODES = 2000  # of a graph that takes longer to write out


class GraphReader:
    """Reads the graphs of one session, which all go through the same steps."""

    def __init__(self, cluster: Cluster, settings: ConfigProto, *, by_request: bool = False) -> None:
        """With `by_request` graphs stay unplaced; `place` is for their pruned parts."""
        self._cluster = cluster
        self._soft = settings.allow_soft_placement
        self._writes_shapes = settings.graph_options.infer_shapes
        self._inline_calls = settings.graph_options.optimizer_options.do_function_inlining
        self._lowers = not settings.experimental.disable_functional_ops_lowering
        self._by_request = by_request
        self._stateful: dict[str, str] = {}

    async def read(self, graph_def: GraphSource, on_read: Callable[[int], object] | None = None) -> Graph:
        """The graph of `graph_def`, placed; `on_read` hears of the progress. Raises as those three steps do.

        The import of a large graph ends when whoever waits for it is cancelled.
        """
        if is_path(graph_def):
            graph_def = await trio.to_thread.run_sync(graph_bytes, graph_def)
        elif not isinstance(graph_def, GraphDef):
            graph_def = graph_bytes(graph_def)
        if _size(graph_def) > _LARGE_BYTES:
            return await trio.to_thread.run_sync(self._read_now, graph_def, partial(_go_on, on_read))
        return self._read_now(graph_def, on_read)

    async def read_more(self, graph: Graph, addition: GraphSource) -> Graph:
        """A new graph: `graph`, where it is, with `addition`. Raises as `extended` and `read` do."""
        if graph.num_nodes > _LARGE_NODES:
            return await self.read(await trio.to_thread.run_sync(extended, graph, addition))
        return await self.read(extended(graph, addition))

    def _read_now(self, graph_def: GraphDef | bytes, on_read: Callable[[int], object] | None) -> Graph:
        graph = graph_def_to_graph(graph_def, add_default_attrs=True, on_read=on_read)
        graph = lower_functional(graph, inline_calls=self._inline_calls, control_flow=self._lowers)
        if not self._by_request:
            place(graph, self._cluster, allow_soft_placement=self._soft)
        return graph

    def written(self, graph: Graph) -> GraphDef:
        """A graph of the session as a GraphDef; with `graph_options.infer_shapes` its nodes say their shapes.

        Raises InvalidArgumentError, naming the node, where shapes contradict an op.
        """
        return to_annotated_graph_def(graph) if self._writes_shapes else graph.to_graph_def()

    def place_pruned(self, requested: Graph) -> None:
        """Places what is left of an unplaced graph for a request, in place; nothing to do with other graphs.

        Raises as `place`. Stateful nodes that an earlier request has placed stay where they are.
        """
        if not self._by_request:
            return
        stateful = [node for node in requested.op_nodes() if node.properties.op_def.is_stateful]
        for node in stateful:
            if node.name in self._stateful:
                node.assigned_device = self._stateful[node.name]
        place(requested, self._cluster, allow_soft_placement=self._soft)
        self._stateful.update((node.name, node.assigned_device) for node in stateful)


def _go_on(on_read: Callable[[int], object] | None, count: int) -> None:
    """Reports progress from a worker thread; raises Cancelled or KeyboardInterrupt if nobody waits for it any more."""
    trio.from_thread.check_cancelled()
    if on_read is not None:
        on_read(count)


def _size(graph_def: GraphDef | bytes) -> int:
    """Bytes of a graph."""
    return len(graph_def) if isinstance(graph_def, bytes) else graph_def.ByteSize()
