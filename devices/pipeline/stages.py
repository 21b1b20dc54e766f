"""From a GraphDef to the graph of each device, stage by stage.

    Imported --lower--> Lowered --place--> Placed --prune--> Pruned --cut--> Partitioned --optimise--> Partitioned

Sessions with `place_pruned_graph`, and calls of functions, prune before they place: Lowered --prune--> Pruned
--place--> Pruned --cut--> Partitioned. Over several tasks a master cuts by task (`cut_by_task`), and each worker cuts
its share by device (`cut_share`).

A stage holds a graph, and does not change: each step returns a new stage. To enter the pipeline in the middle, make the
stage from its class: `Placed(pipeline, graph).prune(fetches=["y"])`.

    >>> b = GraphBuilder()
    >>> x = b.placeholder("x", "float32", ())
    >>> doubled = b.op("AddV2", x, x, name="doubled", device="/device:CPU:1")
    >>> b.op("Neg", doubled, name="y"), b.op("Abs", x, name="unused")
    >>> placed = Pipeline(local_cluster("cpu:2")).read(b).lower().place()
    >>> pruned = placed.prune(feeds=["x"], fetches=["y"])
    >>> pruned.cut().graphs

    placed      x on CPU:0      doubled on CPU:1    y on CPU:0    unused on CPU:0
    pruned      _arg_x_0_0 on CPU:0    doubled on CPU:1    y on CPU:0    _retval_y_0_0 on CPU:0
    cut         on CPU:0:  _arg_x_0_0 -> _arg_x_0_0/_0 (a Send)      doubled/_3 (a Recv) -> y -> _retval_y_0_0
                on CPU:1:  _arg_x_0_0/_1 (a Recv) -> doubled -> doubled/_2 (a Send)

The N of a name `prefix/_N` comes from a counter of the pipeline, which goes on from one request to the next. So the
names equal TensorFlow's if the requests come in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...graph import passes
from ...graph.display.progress import ProgressCallback, no_progress
from ...graph.dtypes import DataType
from ...graph.graph import Graph
from ...graph.graphdef.importer import graph_def_to_graph
from ...graph.graphdef.sources import GraphSource
from ...graph.node import Edge
from ...graph.partition.options import PartitionOptions, name_counter
from ...graph.partition.split import partition, split_graph
from ...graph.passes.client_graph import typed_client_graph
from ...graph.passes.client_request import ClientRequest
from ...graph.passes.lower_functional import lower_functional
from ...graph.passes.names import INLINE
from ...graph.passes.selection import NO_PASSES, Passes
from ...graph.passes.wiring import NO_WIRING, Wiring
from ...graph.tasks import partition_by_task, partition_within_task
from ..cluster import Cluster
from ..placement.placer import place
from .epochs import RecvEpochs, start_times_of
from .rules import check_runnable

if TYPE_CHECKING:
    from ...graph import GraphDef
    from ...graph.functions.body import FunctionBody
    from ...graph.passes.optimising.constant_folding import Evaluator


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The settings of all graphs and requests of one session, worker or command, and the state between requests.

    The state: `new_name` returns `prefix/_N` for a prefix, counting up; `homes` maps stateful nodes that were placed
    for an earlier request to their devices. A copy of the pipeline with another cluster shares both.
    """

    cluster: Cluster
    passes: Passes = NO_PASSES
    """what rewrites the graph before it is placed, and its partitions; see `graph.passes.registry`"""
    lower_control_flow: bool = True
    allow_soft_placement: bool = False
    schedule_receives: bool = False
    """whether workers delay receives until shortly before their tensor is needed"""
    should_cast: Callable[[Edge], DataType] | None = None
    """the element type to send an edge's tensor in, as in `PartitionOptions`"""
    new_name: Callable[[str], str] = field(default_factory=name_counter)
    homes: dict[str, str] = field(default_factory=dict)

    def read(self, source: GraphSource, on_progress: ProgressCallback = no_progress) -> Imported:
        """Imports a graph; arguments and errors are those of `graph_def_to_graph`."""
        return Imported(self, graph_def_to_graph(source, add_default_attrs=True, on_progress=on_progress))

    def prune_body(self, body: FunctionBody) -> Pruned:
        """The lowered graph that a call of a function runs; calls in it stay calls. Raises as `body_graph`."""
        return Pruned(self, passes.body_graph(body), body.argument_types, body.result_types, is_placed=False)

    def cut_share(self, share: GraphDef) -> Partitioned:
        """Cuts by device the share that a master sent to this worker, whose task is the cluster; all of it is placed.

        With `schedule_receives` every node has its `_start_time`. Raises as `partition_within_task`,
        `add_control_edges` and `graph_def_to_graph`.
        """
        options = self._options(scheduling_for_recvs=self.schedule_receives)
        return self._imported(partition_within_task(share, self.cluster.client.task_name, options), options)

    def _imported(self, parts: Mapping[str, GraphDef], options: PartitionOptions) -> Partitioned:
        """The graphs of cut messages, whose receives are scheduled first if the options say so."""
        if options.scheduling_for_recvs:
            from ...graph.partition.recv_epochs import add_control_edges  # few sessions schedule their receives

            add_control_edges(parts, options, in_loops=False)
        graphs = {
            device: graph_def_to_graph(part, allow_internal_names=True, expect_device=True)
            for device, part in parts.items()
        }
        return Partitioned(self, graphs)

    def _options(
        self, *, scheduling_for_recvs: bool = False, start_times: Mapping[str, int] | None = None
    ) -> PartitionOptions:
        """Options that record `start_times`, if given, and with them schedule receives."""
        return PartitionOptions(
            new_name=self.new_name,
            get_incarnation=self.cluster.incarnation,
            should_cast=self.should_cast,
            scheduling_for_recvs=scheduling_for_recvs or start_times is not None,
            need_to_record_start_times=start_times is not None,
            start_times=start_times or {},
        )


@dataclass(frozen=True, slots=True)
class Imported:
    """A graph as its file has it, default attrs filled in."""

    pipeline: Pipeline
    graph: Graph

    def lower(self) -> Lowered:
        """Runs the passes over whole graphs, and replaces functional conditionals and loops by plain nodes.

        `inline` does that itself, for it inlines calls in the same walk. Raises as the passes and `lower_functional`.
        """
        how, graph = self.pipeline, self.graph
        if how.passes.names:
            context = passes.GraphContext(tuple(how.cluster.names), how.lower_control_flow)
            for each in passes.graph_passes(how.passes.names):
                graph = each.run(graph, context)
        if INLINE not in how.passes.names:
            graph = lower_functional(graph, control_flow=how.lower_control_flow)
        return Lowered(how, graph)


@dataclass(frozen=True, slots=True)
class _Whole:
    """A graph with everything that any request may ask for."""

    pipeline: Pipeline
    graph: Graph

    def prune(
        self,
        feeds: Sequence[str] = (),
        fetches: Sequence[str] = (),
        targets: Sequence[str] = (),
        *,
        by_rendezvous: bool = False,
        wiring: Wiring = NO_WIRING,
        with_shapes: bool = False,
    ) -> Pruned:
        """The client graph of a request: feed and fetch nodes added, nodes without a path to a fetch or target removed.

        Feeds and fetches are `_Arg` and `_Retval` nodes, or with `by_rendezvous` `_Recv` and `_Send` nodes that meet
        the client at the rendezvous. `wiring` connects tensors and moves feeds and fetches. `with_shapes` fills in
        `Graph.fed_shapes`, which only simulation needs. Raises as `rewrite_graph_for_execution`.
        """
        # First, as this indexes the graph by name, and copies take the index along.
        fed_shapes = passes.shapes_of_fed(self.graph, feeds) if with_shapes else None
        client = self.pipeline.cluster.client
        request = ClientRequest(
            feeds,
            fetches,
            targets,
            device=client.name,
            incarnation=client.incarnation,
            by_rendezvous=by_rendezvous,
            wiring=wiring,
        )
        graph, types = typed_client_graph(self.graph, request)
        if graph.functions:
            passes.drop_surplus_outputs(graph)
        graph.fed_shapes = fed_shapes
        return Pruned(self.pipeline, graph, types.feed_types, types.fetch_types, isinstance(self, Placed))


@dataclass(frozen=True, slots=True)
class Lowered(_Whole):
    """A graph of plain nodes and of calls that stay calls; nodes have requested devices only."""

    def place(self) -> Placed:
        """Assigns a device to every node; raises as `place`."""
        graph = self.graph.clone()
        place(graph, self.pipeline.cluster, allow_soft_placement=self.pipeline.allow_soft_placement)
        return Placed(self.pipeline, graph)


@dataclass(frozen=True, slots=True)
class Placed(_Whole):
    """A graph whose nodes all have a device of the cluster."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """The client graph of a request, or the body of a call, with the element types of feeds and fetches in order."""

    pipeline: Pipeline
    graph: Graph
    feed_types: Sequence[DataType]
    fetch_types: Sequence[DataType]
    is_placed: bool = True

    def place(self, default_device: str = "") -> Pruned:
        """Assigns a device to every node, if that was not done before pruning.

        Of several devices that fit a node, `default_device` ranks first. Stateful nodes that were placed for an earlier
        request keep their device, because their state is there. Raises as `place`.
        """
        if self.is_placed:
            return self
        how, graph = self.pipeline, self.graph.clone()
        stateful = passes.stateful_nodes(graph)
        for node in stateful:
            if node.name in how.homes:
                node.assigned_device = how.homes[node.name]
        place(graph, how.cluster, allow_soft_placement=how.allow_soft_placement, default_device=default_device)
        how.homes.update((node.name, node.assigned_device) for node in stateful)
        return replace(self, graph=graph, is_placed=True)

    def cut(self, recv_epochs: RecvEpochs = False) -> Partitioned:
        """One graph per device, with scheduled receives unless `recv_epochs` is False.

        Raises as `check_runnable`, `start_times_of`, `split_graph` and, for scheduled receives, `add_control_edges`.
        """
        check_runnable(self.graph)
        how = self.pipeline
        if recv_epochs is False:
            return Partitioned(how, split_graph(self.graph, how._options()))
        options = how._options(start_times=start_times_of(self.graph, recv_epochs))
        scheduled = how._imported(partition(self.graph, options), options)
        for part in scheduled.graphs.values():
            part.fed_shapes, part.lowered = self.graph.fed_shapes, self.graph.lowered  # which no message has
        return scheduled

    def cut_by_task(self) -> dict[str, GraphDef]:
        """Cuts by task, as a master does: task -> the share that its worker gets, for `Pipeline.cut_share`.

        With `schedule_receives` every node gets an attr with its start time. Raises as `check_runnable` and
        `partition_by_task`.
        """
        check_runnable(self.graph)
        starts = start_times_of(self.graph, True) if self.pipeline.schedule_receives else None
        return partition_by_task(self.graph, self.pipeline._options(start_times=starts))


@dataclass(frozen=True, slots=True)
class Partitioned:
    """The graph of each device that takes part in a request, by device name, joined by Send and Recv nodes."""

    pipeline: Pipeline
    graphs: Mapping[str, Graph]

    def optimise(self, make_evaluator: Callable[[], Evaluator]) -> Partitioned:
        """Each graph after the passes over partitions, if there are any.

        What `make_evaluator` returns computes the values of constant nodes. Raises as `partition_passes`.
        """
        wanted = self.pipeline.passes
        if not wanted.names or not passes.partition_passes(wanted.names):
            return self
        evaluator = make_evaluator()
        optimised = {name: passes.optimize(part, wanted, evaluator) for name, part in self.graphs.items()}
        return replace(self, graphs=optimised)

    def in_order(self) -> dict[str, Graph]:
        """The graphs in the order of the cluster."""
        return {name: self.graphs[name] for name in self.pipeline.cluster.names if name in self.graphs}
