"""A step that only computes on processors is played in one loop, which writes the log that the engine writes."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from unittest.mock import patch

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from partita.devices import Cluster, Device, OpCost
from partita.devices.kernels.op_cost import PortDims
from partita.devices.profiles import Profiles, Window
from partita.devices.spec import DeviceSpec
from partita.devices.timing import RooflineSource
from partita.devices.timing.bodies.body import Body
from partita.devices.timing.bodies.planning import Planner
from partita.devices.timing.bodies.scripts import Script
from partita.devices.timing.playing import player as playing
from partita.devices.timing.playing.model import ModelOracle
from partita.devices.timing.playing.player import Player
from partita.devices.timing.playing.processors import only_computes
from partita.devices.timing.playing.shared_hardware import SharedHardware
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.ops.properties import NodeProperties
from partita.graph.shape_inference.infer import infer_joined
from tests.devices.timing.steps import StepBuilder, cluster, cpu, spec

_TIMES_NS = {"Neg": 0, "Exp": 1, "AddV2": 2, "Mul": 3}
_FREE = "Identity"
_LOOK_BACK = 8


class FewTimes:
    """Times of a few nanoseconds by op, of which one is 0: much happens at the same instant."""

    def cost(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> OpCost:
        """The time of the op; the others are those of the roofline."""
        if properties.op in _TIMES_NS:
            return OpCost(_TIMES_NS[properties.op], 0, 0, "measured")
        return RooflineSource().cost(properties, inputs, outputs, spec)


def processors(devices: int, lanes: int) -> Cluster:
    """CPUs of one task, which share its memory: tensors pass between them in no time."""
    return Cluster([Device(evolve(spec(), lanes=lanes), index) for index in range(devices)])


def drawn(seed: int, nodes: int, devices: int) -> StepBuilder:
    """Ops on values of the nodes before, on drawn devices."""
    draw, step = Random(seed), StepBuilder()
    names = [step.feed("x", (1,))]
    for k in range(nodes):
        op = draw.choice([*_TIMES_NS, _FREE, "Delay"])
        inputs = [draw.choice(names[-_LOOK_BACK:]) for _ in range(2 if op in ("AddV2", "Mul") else 1)]
        attrs = {"micros": draw.randrange(2)} if op == "Delay" else {}
        names.append(step.op(f"n{k}", op, inputs, draw.randrange(devices), **attrs))
        if draw.random() < 0.2:
            step.after(names[-1], draw.choice(names[:-1]))
    return step


def planned(step: StepBuilder, hardware: Cluster) -> Body:
    """The body of a step."""
    return Planner(hardware, FewTimes()).plan(infer_joined(JoinedGraph(step.parts())))


def logged(body: Body, hardware: Cluster) -> tuple[list[list[int]], dict[int, int]]:
    """All columns of the log of a step that is played, and its lanes."""
    player = Player(SharedHardware(hardware), ModelOracle())
    player.play(Script(None, body))
    log = player.log
    return [column.tolist() for column in (log.entries, log.causes, log.start_ns, log.end_ns)], log.lanes


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 4), st.integers(1, 3))
def test_the_loop_writes_the_log_of_the_engine(seed: int, nodes: int, devices: int, lanes: int) -> None:
    """Entries in the same order, with the same causes, times and lanes."""
    hardware = processors(devices, lanes)
    body = planned(drawn(seed, nodes, devices), hardware)
    assert only_computes(body, SharedHardware(hardware))
    ours = logged(body, hardware)
    with patch.object(playing, "only_computes", lambda *_: False):
        assert ours == logged(body, hardware)
    assert len(ours[0][0]) == len(body)


@pytest.mark.parametrize("what", ["links", "slow", "unlimited"])
def test_other_steps_are_left_to_the_engine(what: str) -> None:
    """Transfers over links, a device that is slow for a time, and hardware without limits need the engine."""
    hardware = cluster(2) if what == "links" else processors(2, 1)
    if what == "slow":
        hardware = Cluster(hardware.devices, profiles=Profiles(slow=((cpu(0), Window(Fraction(2))),)))
    step = StepBuilder()
    step.op("a", "Neg", [step.feed("x", (1,))])
    step.op("b", "Neg", ["a"], 1)
    body = planned(step, hardware)
    assert not only_computes(body, SharedHardware(hardware, is_unlimited=what == "unlimited"))
