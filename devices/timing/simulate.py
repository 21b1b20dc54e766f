"""Partitions -> Timeline: how long a step takes on a cluster, from shapes and models of hardware, without values.

The same input gives the same timeline. Every assumption is a warning of the timeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from ...errors import InvalidArgumentError
from ...graph.analysis.joined import JoinedGraph
from ...graph.collector import collector_paused
from ...graph.formats.traces import TraceSource
from ...graph.graph import Graph
from ...graph.graphdef.importer import graph_def_to_graph
from ...graph.graphdef.sources import GraphSource
from ...graph.shape_inference.infer import Feeds, Shapes, infer_joined
from ..cluster import Cluster
from ..cluster_file import as_cluster
from .bodies.choices import Choices, Counts
from .bodies.planning import Planner
from .bodies.script_planner import ScriptPlanner
from .cost_source import CostSource, RooflineSource
from .feeds import checked_feeds, stated_shapes
from .playing.blocks import with_blocks
from .playing.holding import memory_of_player
from .playing.player import Player
from .playing.recording import events_of
from .timeline import Assumption, Timeline
from .tracing.facts import TraceFacts, read_trace
from .tracing.shapes import missing_shapes

if TYPE_CHECKING:
    from ...graph.shape_inference.inferred import AssumedShape
    from .bodies.scripts import Script


def simulate(
    partitions: Mapping[str, Graph | GraphSource],
    cluster: Cluster | str | Path,
    *,
    feeds: Feeds | None = None,
    shapes: Mapping[str, Shapes] | None = None,
    cost_source: CostSource | None = None,
    trip_counts: Counts | None = None,
    branches: Counts | None = None,
    trace: TraceSource | None = None,
    trace_times: bool = False,
    assumed_size: int | None = None,
) -> Timeline:
    """The timeline of one step.

    `partitions` maps device names to the graphs (or GraphDefs) that run there; `cluster` may be given as a text such as
    "gpu:2" or the path of a file. `feeds` maps fed tensors to shapes (tuples) or values (arrays); a feed that is left
    out has the shape of its placeholder. `shapes` maps nodes to output shapes known from elsewhere, such as a run; a
    shape of None, and nodes that the partitions lack, are passed over. `cost_source` is the roofline by default. With
    `assumed_size` unknown sizes count as that number, with a warning.

    `trip_counts` says how often loops run, by `frame_name` or by the name of a While; `branches` which branch is taken,
    from 0, by the name of an If or Case, or of the node that yields the predicate (1 = then). In the body of a call the
    name is `call/name`; a list has an entry per iteration of the loops around.

    `trace` is that of a real step: StepStats or RunMetadata, TensorFlow's too, as a message, as bytes, or as the path
    of a file. Counts, branches and shapes that the caller does not give are taken from it before constants are asked;
    with `trace_times` also the times of ops, in a loop the median of its runs.

    Raises InvalidArgumentError for a device that the cluster lacks, for partitions that do not fit together, for feeds
    of another type or shape than the graph's or that it was not cut for, for shapes that contradict an op, for a size,
    trip count or branch that the time depends on and nobody knows, for a trace of another graph, and for a step that
    takes 0 ns; UnimplementedError for collectives and for calls whose functions are known only in a run.
    """
    cluster = as_cluster(cluster)
    assumed_size = _checked_size(assumed_size)
    by_name = {cluster.find(place).name: graph for place, graph in _checked(partitions).items()}
    graphs = {name: _as_graph(by_name[name]) for name in cluster.names if name in by_name}
    with collector_paused():
        joined = JoinedGraph(graphs)
        fed = checked_feeds(feeds or {}, joined)
        all_feeds = {**stated_shapes(shapes or {}, fed, joined), **fed}
        facts = TraceFacts() if trace is None else read_trace(trace, joined)
        if facts.shapes:
            all_feeds = {**missing_shapes(infer_joined(joined, all_feeds), facts.shapes, all_feeds), **all_feeds}
        inferred = infer_joined(joined, all_feeds, assumed_size=assumed_size)
        planner = Planner(cluster, cost_source or RooflineSource(), facts.times_ns if trace_times else None)
        choices = Choices(trip_counts, branches, facts)
        scripts = ScriptPlanner(planner, choices, shapes={**facts.shapes, **(shapes or {})}, assumed_size=assumed_size)
        script = scripts.root(inferred)
        player = Player(cluster)
        try:
            player.play(script)
        except OverflowError:  # of a column of 64 bits
            raise InvalidArgumentError("the step takes more than 292 years: no real sizes are that large") from None
        return _timeline(script, player, [*scripts.warnings, *facts.warnings], cluster, scripts.assumed)


def _checked(partitions: Mapping[str, Graph | GraphSource]) -> Mapping[str, Graph | GraphSource]:
    """InvalidArgumentError for a single graph instead of a graph per device."""
    if not isinstance(partitions, Mapping):
        raise InvalidArgumentError(
            f"partitions: {type(partitions).__name__} is not a mapping from device names to graphs; "
            "cut the graph first, with partita.devices.cut"
        )
    return partitions


def _checked_size(size: object) -> int | None:
    """The size that unknown ones are taken as; InvalidArgumentError for what is none."""
    if size is not None and (not isinstance(size, SupportsIndex) or index(size) < 0):
        raise InvalidArgumentError(f"assumed_size = {size!r} must be a whole number of at least 0")
    return None if size is None else index(size)


def _as_graph(graph: Graph | GraphSource) -> Graph:
    if isinstance(graph, Graph):
        return graph
    return graph_def_to_graph(graph, add_default_attrs=True, allow_internal_names=True, expect_device=True)


def _timeline(
    script: Script, player: Player, warnings: list[str], cluster: Cluster, sizes: Sequence[AssumedShape]
) -> Timeline:
    """The timeline of what was played; `sizes` are the shapes that were assumed."""
    memory = memory_of_player(player, cluster)
    bodies = {id(activation.body): activation.body for activation in player.activations}.values()
    numbers = np.unique(np.concatenate([body.device for body in bodies])).tolist()
    used = [cluster.names[number] for number in numbers]
    return Timeline(
        with_blocks(events_of(player, cluster.names), player),
        warnings=warnings + spec_warnings(used, cluster) + memory.warnings(),
        assumed=[Assumption(*shape) for shape in sizes] + spec_assumptions(used, cluster),
        memory=memory,
        dependency_bound_ns=lambda: _dependency_bound_ns(script, cluster),
        models={device.name: device.spec.name for device in cluster},
        link_loads=player.link_loads,
    )


def _dependency_bound_ns(script: Script, cluster: Cluster) -> int:
    """The time of the step on hardware that does everything at once: its longest chain of durations."""
    player = Player(cluster, is_unlimited=True)
    player.play(script)
    return max(player.log.end_ns, default=0)


def spec_assumptions(devices: Sequence[str], cluster: Cluster) -> list[Assumption]:
    """The defaults that devices in this step and the links between them rely on, one by one."""
    specs = {name: cluster.find(name).spec for name in devices}
    numbers = [Assumption(name, key, text) for name, spec in specs.items() for key, text in spec.assumed.items()]
    return numbers + [Assumption(*link) for link in cluster.topology.assumed(devices)]


def spec_warnings(devices: Sequence[str], cluster: Cluster) -> list[str]:
    """A warning per set of defaults that specs of devices in this step rely on."""
    names: dict[str, list[str]] = {}
    for name in devices:
        assumed = cluster.find(name).spec.assumed
        if assumed:
            names.setdefault(", ".join(f"{key} {text}" for key, text in assumed.items()), []).append(name)
    return [f"assumed, as the cluster does not say: {text} of {', '.join(which)}" for text, which in names.items()]
