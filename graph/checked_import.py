"""GraphDef into an existing Graph, with every check that TensorFlow makes when it imports one.

Flows in: a GraphDef (message, bytes, or anything that can serialise itself), a graph, import options. Flows out: nodes
and edges of that graph, as `graphdef.constructor` makes them. Always holds: a failed import leaves the graph exactly as
it was.

Beyond what `graph_def_to_graph` asks for, nodes are validated against their ops, functions that they call are looked
into, and shapes that are written down are compared with those that follow from the graph.
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

    Shapes that are written down as `_output_shapes` must agree with the graph, and are then left out.

    Raises InvalidArgumentError, NotFoundError or UnimplementedError (removed ops), and then `graph` is as it was.
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
    """The GraphDef without the shapes written in it, which a trial import has shown to agree with `graph`."""
    rest = without_output_shapes(parse_lazily(data))
    if rest is None:
        return data
    trial, first = graph.copy(), graph.num_node_ids
    Constructor(data, trial, options, defaults=True, check_call=check_call).run(internal_names=False)
    check_output_shapes(trial, first)
    return rest
