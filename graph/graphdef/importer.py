"""GraphDef -> Graph, as sessions, workers and calls of functions import it.

`partita.graph.checked_import` checks more, and can add to an existing graph.
"""

from __future__ import annotations

from ...collector import collector_paused
from ...errors import InvalidArgumentError
from ..checking import are_checked
from ..display.progress import Progress, ProgressCallback, no_progress
from ..graph import Graph
from ..library.function_library import FunctionLibrary
from .constructor import IMPORTING, Constructor
from .import_options import ImportOptions
from .reimport import reimported
from .sources import GraphSource


def graph_def_to_graph(
    graph_def: GraphSource,
    *,
    add_default_attrs: bool = False,
    allow_internal_names: bool = False,
    expect_device: bool = False,
    library: FunctionLibrary | None = None,
    on_progress: ProgressCallback = no_progress,
) -> Graph:
    """A new graph from a GraphDef, as a session or a worker makes it; attrs are checked only as far as building needs.

    `sources` says what is accepted as a GraphDef. `add_default_attrs` fills in missing attrs; `allow_internal_names`
    accepts names that begin with "_"; `expect_device` requires a device on every node and assigns it; `library` holds
    functions that nodes may call besides those of the GraphDef; `on_progress` is called in this thread every few
    thousand nodes. Raises InvalidArgumentError (names, inputs, cycles, types, versions) or NotFoundError (unknown ops,
    attrs that decide port types).
    """
    with collector_paused():
        graph = Graph()
        if library is not None:
            graph.functions = library
        made = None
        if isinstance(graph_def, Graph):
            made = reimported(
                graph_def,
                graph.functions,
                add_default_attrs=add_default_attrs,
                allow_internal_names=allow_internal_names,
            )
        if made is not None:
            graph = made
            on_progress(Progress(IMPORTING, graph.num_nodes, graph.num_nodes, "nodes"))
        else:
            constructor = Constructor(
                graph_def, graph, ImportOptions(), defaults=add_default_attrs, on_progress=on_progress
            )
            constructor.run(internal_names=allow_internal_names)
            graph.versions, graph.debug_info = constructor.versions, constructor.debug_info
        if expect_device:
            _assign_requested(graph)
        if are_checked():
            from .invariants import check_raw

            check_raw(graph)
        return graph


def _assign_requested(graph: Graph) -> None:
    for node in graph.op_nodes():
        if not node.requested_device:
            raise InvalidArgumentError(f"Node '{node.name}' is missing a device specification", node=node.name)
    graph.assign_devices(graph.requested_device_indices())
