"""All stages of the pipeline in one call."""

from __future__ import annotations

from pathlib import Path

from ...graph.builder.tensor_names import Names, tensor_names
from ...graph.graph import Graph
from ...graph.graphdef.sources import GraphSource
from ..cluster import Cluster
from ..cluster_file import as_cluster
from .stages import Pipeline


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
    """The graph of each device that has a part in a request, by full name, in the order of the cluster.

    The graphs equal those of the first request of a fresh session, and `partita.devices.simulate` takes them. The
    graph may be a GraphDef, its bytes, the path of its file, a `GraphBuilder` or a `Graph`; the cluster may be a text
    such as "gpu:2" or the path of a file. With `inline` calls of functions are inlined, as in a session with
    `optimizer_options.do_function_inlining`: a graph with calls can be simulated only then. `allow_soft_placement` is
    that of a session's `config`.

    Raises whatever importing, lowering and placing a graph raise, NotFoundError or InvalidArgumentError for names that
    do not exist, and InvalidArgumentError for a graph that no session would run.
    """
    pipeline = Pipeline(as_cluster(cluster), inline_calls=inline, allow_soft_placement=allow_soft_placement)
    placed = pipeline.read(graph_def).lower().place()
    request = tensor_names(feeds), tensor_names(fetches), tensor_names(targets)
    return placed.prune(*request, with_shapes=True).cut().in_order()
