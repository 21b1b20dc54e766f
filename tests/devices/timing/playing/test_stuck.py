"""A step that cannot go on is an error that names what waits, and for what."""

from __future__ import annotations

import pytest

from partita.devices.timing import RooflineSource
from partita.devices.timing.bodies.planning import Planner
from partita.devices.timing.bodies.scripts import Script
from partita.devices.timing.playing.model import ModelOracle
from partita.devices.timing.playing.player import Player
from partita.devices.timing.playing.shared_hardware import SharedHardware
from partita.errors import InvalidArgumentError
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.shape_inference.infer import infer_joined
from tests.devices.timing.steps import StepBuilder, cluster


def stuck(step: StepBuilder, *nodes: str) -> InvalidArgumentError:
    """The error of a step on two CPUs in which nodes wait for one event more than ever comes."""
    hardware = cluster(2)
    shapes = infer_joined(JoinedGraph(step.parts()))
    body = Planner(hardware, RooflineSource()).plan(shapes)
    for n, name in enumerate(body.graph.names):
        if name.startswith(nodes):
            body.waits[n] += 1
    with pytest.raises(InvalidArgumentError) as error:
        Player(SharedHardware(hardware), ModelOracle()).play(Script(None, body))
    return error.value


def test_receives_that_wait_are_named_with_what_they_wait_for() -> None:
    """Four values cross to another device, and the node that makes them never runs; three are listed."""
    step = StepBuilder()
    step.const("x", 1.0)
    step.op("made", "Neg", ["x"])
    for k in range(4):
        step.op(f"n{k}", "Neg", ["made"])
        step.op(f"used{k}", "Neg", [f"n{k}"], device=1)
    error = stuck(step, "made")
    assert "the simulation cannot go on at 0 ns" in error.message
    assert error.message.count("waits for") == 3
    assert "waits for 'edge_" in error.message
    assert "1 more receives wait" in error.message


def test_without_receives_nodes_are_named() -> None:
    """What waits on one device."""
    step = StepBuilder()
    step.const("x", 1.0)
    step.op("made", "Neg", ["x"])
    step.op("used", "Neg", ["made"])
    error = stuck(step, "made")
    assert error.node == "made"
    assert "2 nodes wait for others that never run, such as 'made', 'used'" in error.message
