"""Calls that are nested deeper than Python's, and functions that are called in many places."""

from __future__ import annotations

import pytest

from partita.devices import cut
from partita.devices.timing import Timeline, simulate
from partita.graph.protos import GraphDef
from tests.actors.call_chains import WAYS, chain, frames_left
from tests.devices.timing.steps import cluster


def timeline(graph: GraphDef) -> Timeline:
    """The step of a chain on one CPU, on which an addition of two scalars takes 3 ns and 1 ns."""
    hardware = cluster(1, overhead_ns=3)
    return simulate(cut(graph, hardware, feeds=["x"], fetches=["y"]), hardware, feeds={"x": ()})


@pytest.mark.parametrize("way", WAYS)
def test_calls_are_planned_and_played_deeper_than_python_nests_its_own(way: str) -> None:
    """220 functions, each of which adds one, with 200 frames left for Python."""
    depth = 220
    timeline(chain(2, way))
    with frames_left(200):
        step = timeline(chain(depth, way))
    assert step.flops == depth
    assert step.makespan_ns == depth * timeline(chain(1)).makespan_ns
    assert step.find("y/" + "call0/" * (depth - 1) + "total").iteration == ""


def test_calls_without_additions_end_one_after_the_other() -> None:
    """All calls of the chain end at the same instant, and none of them inside the end of another."""
    graph = chain(220, adds=False)
    timeline(chain(2, adds=False))
    with frames_left(200):
        assert timeline(graph).makespan_ns == timeline(chain(1)).makespan_ns


def test_a_function_is_named_by_the_call_that_runs_it() -> None:
    """A body without choices is planned once for all its calls; its nodes have the names of the paths."""
    step = timeline(chain(3, calls=2))
    names = {event.node for event in step.events if event.op == "AddN"}
    calls = [f"y/call{i}/" for i in range(2)]
    assert names == {"y/total", *(f"{call}total" for call in calls)} | {
        f"{call}call{i}/total" for call in calls for i in range(2)
    }
