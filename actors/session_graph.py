"""How a session comes by its graph: imported, lowered and placed, whole at first, with additions later.

Flows in: GraphDefs, the devices and settings of a session. Flows out: placed graphs. Always holds: a graph handed out
is not changed by a later addition, which makes a new one; large graphs are read in a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from ..devices.placement import place
from ..graph import GraphDef
from ..graph.extend import extended
from ..graph.importer import graph_def_to_graph
from ..graph.passes.lower_functional import lower_functional

if TYPE_CHECKING:
    from ..devices.cluster import Cluster
    from ..graph import ConfigProto
    from ..graph.graph import Graph
    from ..graph.importer import Serialisable

_LARGE_BYTES = 200_000  # of a serialised graph that takes longer to import than a budget lasts
_LARGE_NODES = 2000  # of a graph that takes longer to write out


class GraphReader:
    """Reads the graphs of one session, which all go through the same steps."""

    def __init__(self, cluster: Cluster, settings: ConfigProto) -> None:
        self._cluster = cluster
        self._settings = settings
        self._inline_calls = settings.graph_options.optimizer_options.do_function_inlining

    async def read(
        self, graph_def: GraphDef | Serialisable | bytes, on_read: Callable[[int], object] | None = None
    ) -> Graph:
        """The graph of `graph_def`, placed; `on_read` hears of the progress. Raises as those three steps do."""
        if _size(graph_def) > _LARGE_BYTES:
            return await trio.to_thread.run_sync(self._read_now, graph_def, on_read)
        return self._read_now(graph_def, on_read)

    async def read_more(self, graph: Graph, addition: GraphDef | Serialisable | bytes) -> Graph:
        """A new graph: `graph`, where it is, with `addition`. Raises as `extended` and `read` do."""
        if graph.num_nodes > _LARGE_NODES:
            return await self.read(await trio.to_thread.run_sync(extended, graph, addition))
        return await self.read(extended(graph, addition))

    def _read_now(self, graph_def: GraphDef | Serialisable | bytes, on_read: Callable[[int], object] | None) -> Graph:
        graph = graph_def_to_graph(graph_def, add_default_attrs=True, on_read=on_read)
        graph = lower_functional(graph, inline_calls=self._inline_calls)
        place(graph, self._cluster, allow_soft_placement=self._settings.allow_soft_placement)
        return graph


def _size(graph_def: GraphDef | Serialisable | bytes) -> int:
    """Bytes of a graph, 0 where that is not known without serialising it."""
    if isinstance(graph_def, bytes):
        return len(graph_def)
    return graph_def.ByteSize() if isinstance(graph_def, GraphDef) else 0
