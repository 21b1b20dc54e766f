"""Partitions -> Timeline: how long a step takes on a cluster, from shapes and models of hardware, without values.

The same input gives the same timeline. Every assumption is a warning of the timeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...collector import collector_paused
from ...errors import InvalidArgumentError
from ...graph.arrays import distinct
from ...graph.display.progress import Progress, ProgressCallback, no_progress
from ...graph.formats.traces import TraceSource
from ...graph.graph import Graph
from ...graph.graphdef.sources import GraphSource
from ...graph.shape_inference.infer import FedShapes, Shapes
from ..cluster import Cluster
from ..given_cluster import as_cluster
from .bodies.choices import Choices, Counts
from .bodies.planning import Planner
from .bodies.script_planner import ScriptPlanner
from .costs.fitted import FittedSource
from .costs.source import CostSource
from .link_use import LinkUse
from .memory.holder_blocks import MustBePlayedError
from .ordering.order import Order, checked_order
from .ordering.played import played_in_order
from .playing.blocks import with_blocks
from .playing.holding import memory_of_player
from .playing.model import ModelOracle
from .playing.player import Player
from .playing.recording import events_of
from .playing.shared_hardware import SharedHardware
from .representatives.representatives import representatives_of
from .step_shapes import step_shapes
from .timeline import Assumption, Timeline

if TYPE_CHECKING:
    from .bodies.scripts import Script
    from .memory.use import MemoryUse
    from .tracing.facts import TraceFacts


_STAGES = 3


def simulate(
    partitions: Mapping[str, Graph | GraphSource],
    cluster: Cluster | str | Path,
    *,
    feeds: FedShapes | None = None,
    shapes: Mapping[str, Shapes] | None = None,
    cost_source: CostSource | None = None,
    trip_counts: Counts | None = None,
    branches: Counts | None = None,
    trace: TraceSource | None = None,
    trace_times: bool = False,
    assumed_size: int | None = None,
    order: Order = "ready",
    on_progress: ProgressCallback = no_progress,
) -> Timeline:
    """The timeline of one step.

    `partitions` maps device names to the graphs (or GraphDefs) that run there; `cluster` may be given as a text such as
    "gpu:2" or the path of a file. `feeds` maps fed tensors to shapes (tuples) or values (arrays); a feed that is left
    out has the shape of its placeholder. `shapes` maps nodes to output shapes known from elsewhere, such as a run; a
    shape of None, and nodes that the partitions lack, are passed over. `cost_source` is by default a
    `FittedSource` with the fits of the catalog, which is the roofline for devices without fits. With
    `assumed_size` unknown sizes count as that number, with a warning.

    `trip_counts` says how often loops run, by `frame_name` or by the name of a While or For; `branches` which branch is
    taken, from 0, by the name of an If or Case, or of the node that yields the predicate (1 = then). In the body of a
    call the name is `call/name`; a list has an entry per iteration of the loops around.

    `trace` is that of a real step: StepStats or RunMetadata, TensorFlow's too, as a message, as bytes, or as the path
    of a file. Counts, branches and shapes that the caller does not give are taken from it before constants are asked;
    with `trace_times` also the times of ops, in a loop the median of its runs.

    `order` says which ready kernel a stream takes next, and which complete collective of a group begins next: "ready",
    the first to be; "critical-path", the one from which the longest way leads to the end of the step; or priorities by
    the names of nodes, the highest first, see `ordering.order`. `on_progress` is told of each stage.

    Raises InvalidArgumentError for a device that the cluster lacks, for partitions that do not fit together, for feeds
    of another type or shape than the graph's or that it was not cut for, for shapes that contradict an op, for a size,
    trip count or branch that the time depends on and nobody knows, for a trace of another graph, and for a step that
    takes 0 ns, for a collective of unknown group or of which members never come, for an order that names no node or
    that members of a group do not share; UnimplementedError for calls whose
    functions are known only in a run.
    """
    cluster, order = as_cluster(cluster), checked_order(order)
    on_progress(Progress("inferring shapes", 0, _STAGES, "stages"))
    with collector_paused():
        step = step_shapes(partitions, cluster, feeds, shapes, trace, assumed_size)
        facts = step.facts
        on_progress(Progress("planning nodes", 1, _STAGES, "stages"))
        standing = representatives_of(step.inferred.graph, cluster)
        planner = Planner(cluster, cost_source or FittedSource(), facts.times_ns if trace_times else None, standing)
        choices = Choices(trip_counts, branches, facts)
        scripts = ScriptPlanner(planner, choices, shapes={**facts.shapes, **(shapes or {})}, assumed_size=assumed_size)
        script = scripts.root(step.inferred)
        if standing is not None:
            standing.settle(planner.calibration)
        on_progress(Progress("playing the step", 2, _STAGES, "stages"))
        player, memory = _played(script, planner, order)
        on_progress(Progress("simulating", _STAGES, _STAGES, "stages"))
        return _timeline(script, player, memory, scripts, facts)


def _played(script: Script, planner: Planner, order: Order) -> tuple[Player, MemoryUse]:
    """Plays a script and finds its memory; without folding iterations where that does not tell what is kept."""
    try:
        player = played_in_order(script, planner, order, folds=True)
        try:
            return player, memory_of_player(player, planner.cluster)
        except MustBePlayedError:
            player = played_in_order(script, planner, order, folds=False)
            return player, memory_of_player(player, planner.cluster)
    except OverflowError:  # of a column of 64 bits
        raise InvalidArgumentError("the step takes more than 292 years: no real sizes are that large") from None


def _timeline(script: Script, player: Player, memory: MemoryUse, scripts: ScriptPlanner, facts: TraceFacts) -> Timeline:
    """The timeline of what was played, with what its planning assumed."""
    cluster, standing = scripts.planner.cluster, scripts.planner.representatives
    bodies = {id(activation.body): activation.body for activation in player.activations}.values()
    numbers = distinct(np.concatenate([body.device for body in bodies])).tolist()
    used = [cluster.devices[number].name for number in numbers]
    linked = used if standing is None else standing.linked(used)
    events = with_blocks(events_of(player, cluster.names), player)
    if standing is not None:
        standing.check(events)
    return Timeline(
        events,
        warnings=[*scripts.warnings, *facts.warnings] + spec_warnings(used, cluster) + memory.warnings(),
        assumed=[Assumption(*shape) for shape in scripts.assumed] + spec_assumptions(used, cluster, linked),
        memory=memory,
        dependency_bound_ns=lambda: _dependency_bound_ns(script, scripts.planner),
        cluster=cluster,
        link_use=LinkUse(
            cluster.topology.links, player.link_loads, (lambda name: name) if standing is None else standing.like
        ),
        representatives=None if standing is None else standing.stands_for,
        trace_coverage=facts.coverage,
    )


def _dependency_bound_ns(script: Script, planner: Planner) -> int:
    """The time of the step on hardware that does everything at once: its longest chain of durations."""
    hardware = SharedHardware(
        planner.cluster, planner.calibration, is_unlimited=True, representatives=planner.representatives
    )
    player = Player(hardware, ModelOracle(), folds=True)
    player.play(script)
    return max(player.log.end_ns, default=0)


def spec_assumptions(devices: Sequence[str], cluster: Cluster, linked: Sequence[str] | None = None) -> list[Assumption]:
    """The defaults that devices in this step, and the links between those `linked`, rely on, one by one."""
    specs = {name: cluster.find(name).spec for name in devices}
    numbers = [Assumption(name, key, text) for name, spec in specs.items() for key, text in spec.assumed.items()]
    return numbers + [Assumption(*link) for link in cluster.topology.assumed(linked or devices)]


def spec_warnings(devices: Sequence[str], cluster: Cluster) -> list[str]:
    """A warning per set of defaults that specs of devices in this step rely on."""
    names: dict[str, list[str]] = {}
    for name in devices:
        assumed = cluster.find(name).spec.assumed
        if assumed:
            names.setdefault(", ".join(f"{key} {text}" for key, text in assumed.items()), []).append(name)
    return [f"assumed, as the cluster does not say: {text} of {', '.join(which)}" for text, which in names.items()]
