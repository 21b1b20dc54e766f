"""The priorities of a step by the names of its nodes, as the clock would get them."""

from __future__ import annotations

from collections.abc import Mapping

from partita.devices import Cluster
from partita.devices.given_cluster import as_cluster
from partita.devices.timing.bodies.choices import Choices
from partita.devices.timing.bodies.planning import Planner
from partita.devices.timing.bodies.script_planner import ScriptPlanner
from partita.devices.timing.bodies.scripts import Script
from partita.devices.timing.costs.fitted import FittedSource
from partita.devices.timing.ordering.critical_path import CriticalPath
from partita.devices.timing.ordering.remaining import RemainingTimes
from partita.devices.timing.ordering.ways import GraphWays
from partita.devices.timing.playing.model import ModelOracle
from partita.devices.timing.playing.player import Player
from partita.devices.timing.playing.shared_hardware import SharedHardware
from partita.devices.timing.step_shapes import step_shapes
from partita.graph import Graph
from partita.graph.shape_inference.infer import FedShapes


def remaining_of(
    parts: Mapping[str, Graph], cluster: Cluster | str, feeds: FedShapes | None = None
) -> tuple[Script, GraphWays]:
    """The script of a step, and the ways of its graph."""
    hardware = as_cluster(cluster)
    step = step_shapes(parts, hardware, feeds, None, None, None)
    planner = Planner(hardware, FittedSource())
    script = ScriptPlanner(planner, Choices(None, None, step.facts)).root(step.inferred)
    return script, RemainingTimes(script, SharedHardware(hardware).plan_of).of(script)


def ways_of(parts: Mapping[str, Graph], cluster: Cluster | str, feeds: FedShapes | None = None) -> dict[str, int]:
    """By node the longest way to the end of the step, in ns."""
    script, remaining = remaining_of(parts, cluster, feeds)
    return dict(zip(script.whole.graph.names, remaining.from_start_ns, strict=True))


def played_at_once(script: Script, cluster: Cluster | str) -> Player:
    """The player of a step on hardware that does everything at once, with the priorities of the critical path."""
    hardware = as_cluster(cluster)
    shared = SharedHardware(hardware, is_unlimited=True, ordered_by=lambda shared: CriticalPath(script, shared.plan_of))
    player = Player(shared, ModelOracle())
    player.play(script)
    return player
