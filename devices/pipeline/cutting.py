"""All stages of the pipeline in one call."""

from __future__ import annotations

from pathlib import Path

from ...graph.builder.tensor_names import Names, tensor_names
from ...graph.graph import Graph
from ...graph.graphdef.sources import GraphSource
from ...graph.passes.names import INLINE
from ...graph.passes.selection import NO_PASSES, Passes
from ..cluster import Cluster
from ..given_cluster import as_cluster
from .epochs import RecvEpochs
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
    recv_epochs: RecvEpochs = False,
) -> dict[str, Graph]:
    """The graph of each device that has a part in a request, by full name, in the order of the cluster.

    The graphs equal those of the first request of a fresh session, and `partita.devices.simulate` takes them. The
    graph may be a GraphDef, its bytes, the path of its file, a `GraphBuilder` or a `Graph`; the cluster may be a text
    such as "gpu:2" or the path of a file. With `inline` calls of functions are inlined, as by the
    pass `inline` of a session. `allow_soft_placement` is that of a session's `config`.

    With `recv_epochs` a receive is posted only shortly before its tensor is needed, so that its buffer is occupied for
    less time: a ControlTrigger starts each hundredth of the step, and a receive waits for the one six hundredths before
    it is due. When nodes start is guessed (True), or given: node name -> microseconds, as
    `partita.devices.timing.start_times` reads them from a timeline of the same graph. A node without a start time
    starts with the last of its producers; names that the graph lacks are passed over. Only `_Recv` nodes are scheduled,
    as in TensorFlow, not those in host memory (`_HostRecv`).

    Raises whatever importing, lowering and placing a graph raise, NotFoundError or InvalidArgumentError for names that
    do not exist, and InvalidArgumentError for a graph that no session would run and for start times that are none.
    """
    pipeline = Pipeline(
        as_cluster(cluster), Passes((INLINE,)) if inline else NO_PASSES, allow_soft_placement=allow_soft_placement
    )
    placed = pipeline.read(graph_def).lower().place()
    request = tensor_names(feeds), tensor_names(fetches), tensor_names(targets)
    return placed.prune(*request, with_shapes=True).cut(recv_epochs).in_order()
