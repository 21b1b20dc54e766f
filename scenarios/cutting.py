"""From a GraphDef to the graph of each device, in the steps a session takes, for programs that want the graphs alone.

Flows in: a GraphDef, a cluster, the names of a request. Flows out: partition graphs by device name, in the order of the
cluster: what `devices.timing.simulate` takes. Always holds: they are what a session runs for the same request.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..devices import Cluster, as_cluster
from ..devices.placement.placer import place
from ..graph import Graph, PartitionOptions, client_graph, graph_def_to_graph, split_graph
from ..graph.builder.tensor_names import Names, tensor_names
from ..graph.graphdef.sources import GraphSource
from ..graph.passes.lower_functional import lower_functional
from ..graph.passes.static_shapes import shapes_of_fed


def cut(
    graph_def: GraphSource,
    cluster: Cluster | str | Path,
    *,
    feeds: Names = (),
    fetches: Names = (),
    targets: Names = (),
    inline: bool = False,
    allow_soft_placement: bool = False,
) -> dict[str, Graph]:
    """Imports, lowers, places, prunes and partitions; raises what a session raises for the same graph and names.

    The graph may be a GraphDef, its bytes, the path of its file, a `GraphBuilder` or a `Graph`; the cluster may be a
    text such as "gpu:2" or the path of a file. With `inline` calls of functions are inlined, as a session does with
    `optimizer_options.do_function_inlining`: only then can a graph that calls functions be simulated.
    `allow_soft_placement` is what it is in a session's `config`.
    """
    cluster = as_cluster(cluster)
    graph = lower_functional(graph_def_to_graph(graph_def, add_default_attrs=True), inline_calls=inline)
    place(graph, cluster, allow_soft_placement=allow_soft_placement)
    return cut_placed(graph, cluster, tensor_names(feeds), tensor_names(fetches), tensor_names(targets))


def cut_placed(
    graph: Graph, cluster: Cluster, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
) -> dict[str, Graph]:
    """The parts of a request of a graph that is lowered and placed; they know the shapes of what is fed.

    Raises InvalidArgumentError or NotFoundError for names that do not exist.
    """
    wanted = client_graph(graph, list(feeds), list(fetches), list(targets), cluster.client.name)
    wanted.fed_shapes = shapes_of_fed(graph, feeds)
    parts = split_graph(wanted, PartitionOptions(get_incarnation=cluster.incarnation))
    return {name: parts[name] for name in cluster.names if name in parts}
