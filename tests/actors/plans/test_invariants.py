"""The checker of plans finds each broken rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partita.actors.plans.binding import Binder
from partita.actors.plans.compiler import compile_plans
from partita.actors.plans.instructions import FIRST_FREE_SLOT, plain
from partita.actors.plans.invariants import check_plan
from partita.actors.plans.plan import Arrivals, Plan
from partita.devices import cut
from partita.devices.state import DeviceState
from partita.errors import InternalError
from partita.graph.builder import GraphBuilder
from tests.strategies import cpu


@pytest.fixture
def plan() -> Plan:
    """What CPU:0 does of y = (-x + 1) * -x, of which CPU:1 adds one."""
    b = GraphBuilder()
    neg = b.op("Neg", b.placeholder("x", "float32", (), device=cpu(0)), name="neg", device=cpu(0))[0]
    added = b.op("Add", neg, b.constant(np.float32(1)), name="sum", device=cpu(1))[0]
    b.op("Mul", added, neg, name="y", device=cpu(0))
    parts = cut(b.graph_def(), "cpu:2", feeds=["x"], fetches=["y"])
    plans = compile_plans([(part, Binder(name, DeviceState(0))) for name, part in parts.items()])
    for each in plans:
        check_plan(each)
    return next(each for each in plans if each.device.endswith("CPU:0"))


def broken(plan: Plan) -> str:
    """What is wrong with a plan."""
    with pytest.raises(InternalError) as error:
        check_plan(plan)
    return error.value.message.split(";")[0]


def test_a_slot_is_written_before_it_is_read(plan: Plan) -> None:
    """The last instruction reads a slot that no instruction writes."""
    plan.segments[1].chunks[0][0] = plain(np.multiply, [4, 4], [7])
    assert broken(plan) == "plan, rule 'a slot is written before it is read': 'y' reads [4]"


def test_a_segment_does_not_read_what_it_does_not_wait_for(plan: Plan) -> None:
    """Segment 0 reads the message that segment 1 waits for."""
    plan.segments[0].chunks[0][0] = plain(np.negative, [plan.arrivals[0].slot], [6])
    assert "'neg' reads" in broken(plan)


def test_a_segment_waits_for_as_many_as_unlock_it(plan: Plan) -> None:
    """Else it would never run, or too early."""
    plan.segments[1].waits = 2
    assert broken(plan) == "plan, rule 'a segment waits for what unlocks it': segment 1 waits for 2, 1 unlock it"


def test_a_result_is_in_a_slot_that_is_filled(plan: Plan) -> None:
    """Else the fetch would be None."""
    wrong = replace(plan, results=(replace(plan.results[0], slot=FIRST_FREE_SLOT),))
    assert broken(wrong) == "plan, rule 'a result is in a slot that is filled': result 0 is not"


def test_a_message_is_received_once(plan: Plan) -> None:
    """The rendezvous would give it to one of two."""
    once = plan.arrivals
    twice = Arrivals(once.keys * 2, once.slots * 2, once.sizes * 2, once.segments * 2)
    wrong = replace(plan, arrivals=twice)
    assert "rule" in broken(wrong)
