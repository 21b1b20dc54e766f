"""Imports a GraphDef into an existing Graph with all the checks that TensorFlow's `ImportGraphDef` makes.

Beyond `graph_def_to_graph`, every node is validated against its op, functions that it calls are instantiated, and
shapes are inferred. A failed import leaves the graph unchanged.
"""

from __future__ import annotations

from ..collector import collector_paused
from .functions.checks import check_call
from .graph import Graph
from .graphdef.constructor import Constructor
from .graphdef.import_options import ImportOptions, ImportResults
from .graphdef.sources import GraphSource, graph_bytes
from .ops.properties import NodeProperties, PropertiesCache, split_entry
from .shape_inference.import_walk import check_shapes
from .shape_inference.written_shapes import OUTPUT_SHAPES, written_shapes


def import_graph_def(graph_def: GraphSource, graph: Graph, options: ImportOptions | None = None) -> ImportResults:
    """Adds a GraphDef to `graph`: default attrs filled in, every node validated against its op, versions merged.

    The shape functions of all ops, asked under the merged version, must accept the shapes and constants of their
    inputs. Shapes written as `_output_shapes` must agree with inferred ones, and that attr is then dropped.

    Raises InvalidArgumentError, NotFoundError or UnimplementedError (removed ops); `graph` is unchanged then.
    """
    data = graph_bytes(graph_def)
    with collector_paused():
        constructor = Constructor(data, graph, options or ImportOptions(), defaults=True, check_call=check_call)
        first, num_edges, functions = graph.num_node_ids, graph.num_edge_ids, graph.functions
        results = constructor.run(internal_names=False)
        versions = graph.versions.joined(constructor.versions)
        if len(constructor.library):
            versions = versions.with_functions()
        try:
            check_shapes(graph, first, versions.producer)
        except BaseException:
            graph.take_back(first, num_edges)
            graph.functions = functions
            raise
        if OUTPUT_SHAPES.encode() in data:
            _drop_written_shapes(graph, first, constructor.cache)
    graph.versions = versions
    return results


def _drop_written_shapes(graph: Graph, first: int, cache: PropertiesCache) -> None:
    """Removes `_output_shapes` from the nodes from id `first` on; those that differ in nothing else become one kind."""
    kinds, kind_of = graph.distinct_properties()
    kept: dict[int, NodeProperties] = {}
    for node_id, number in enumerate(kind_of[first:].tolist(), first):
        kind = kinds[number]
        if number not in kept:
            is_written = written_shapes(kind) is not None
            entries = tuple([entry for entry in kind.entries if split_entry(entry)[0] != OUTPUT_SHAPES])
            kept[number] = cache.remarked(cache.resolve(kind.op, entries), kind.remarks) if is_written else kind
        if kept[number] is not kind:
            graph.set_node_properties(node_id, kept[number])
