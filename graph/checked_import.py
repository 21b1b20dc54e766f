"""Imports a GraphDef into an existing Graph with all the checks that TensorFlow's `ImportGraphDef` makes.

Beyond `graph_def_to_graph`, every node is validated against its op, functions that it calls are instantiated, and
`_output_shapes` in the GraphDef are compared with inferred shapes. A failed import leaves the graph unchanged.
"""

from __future__ import annotations

from .collector import collector_paused
from .functions.checks import check_call
from .graph import Graph
from .graphdef.constructor import Constructor
from .graphdef.import_options import ImportOptions, ImportResults
from .graphdef.sources import GraphSource, graph_bytes, parse_lazily
from .shape_inference.written_shapes import OUTPUT_SHAPES, check_output_shapes, without_output_shapes


def import_graph_def(graph_def: GraphSource, graph: Graph, options: ImportOptions | None = None) -> ImportResults:
    """Adds a GraphDef to `graph`: default attrs filled in, every node validated against its op, versions merged.

    Shapes written as `_output_shapes` must agree with inferred ones, and that attr is then dropped.

    Raises InvalidArgumentError, NotFoundError or UnimplementedError (removed ops); `graph` is unchanged then.
    """
    options = options or ImportOptions()
    data = graph_bytes(graph_def)
    with collector_paused():
        if OUTPUT_SHAPES.encode() in data:
            data = _with_shapes_checked(data, graph, options)
        constructor = Constructor(data, graph, options, defaults=True, check_call=check_call)
        results = constructor.run(internal_names=False)
    graph.versions = graph.versions.joined(constructor.versions)
    return results


def _with_shapes_checked(data: bytes, graph: Graph, options: ImportOptions) -> bytes:
    """The GraphDef without `_output_shapes`, after a trial import has shown that they agree with `graph`."""
    without_shapes = without_output_shapes(parse_lazily(data))
    if without_shapes is None:
        return data
    trial, first = graph.copy(), graph.num_node_ids
    Constructor(data, trial, options, defaults=True, check_call=check_call).run(internal_names=False)
    check_output_shapes(trial, first)
    return without_shapes
