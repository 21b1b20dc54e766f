"""Loops and conditionals simulated with a trace equal those simulated with counts and branches given by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.devices import cut, local_cluster, simulate
from partita.errors import InvalidArgumentError
from partita.graph.graphdef.files import load_graph_def
from tests.devices.timing.tracing.test_facts import FEEDS, X, own_trace

DATA = Path(__file__).parent / "data"
CLUSTER = local_cluster("cpu:1")
GIVEN: dict[str, dict[str, Any]] = {
    "loop": {"trip_counts": {"w/while_context": 5}},
    "loop_v2": {"trip_counts": {"w": 5}},
    "nested": {"trip_counts": {"outer/while_context": 3, "outer/inner/while_context": [1, 2, 3]}},
    "conditional": {"branches": {"p": 1}},
    "conditional_v2": {"branches": {"c": 1}},
    "control_in_function": {"trip_counts": {"PartitionedCall/w": 3}, "branches": {"PartitionedCall/c": 1}},
    "function": {},
}
PRODUCTS = {"nested": 6, "control_in_function": 4, "loop": 5, "loop_v2": 5}


@pytest.mark.parametrize("name", GIVEN)
async def test_a_trace_is_as_good_as_flags(name: str) -> None:
    """A trace of TensorFlow, and one of a session. Each product of the step is counted."""
    graph_def = load_graph_def(DATA / f"{name}.graph.pb")
    parts = cut(graph_def, CLUSTER, feeds=list(FEEDS[name]), fetches=["y:0"])
    feeds = {tensor: np.shape(value) for tensor, value in FEEDS[name].items()}
    if GIVEN[name]:
        with pytest.raises(InvalidArgumentError, match=r"--trips|--branch"):
            simulate(parts, CLUSTER, feeds=feeds)
    by_hand = simulate(parts, CLUSTER, feeds=feeds, **GIVEN[name])
    assert sum(event.runs for event in by_hand.events if event.op == "MatMul") == PRODUCTS.get(name, 1)
    for trace in (DATA / f"{name}.trace.pb", await own_trace(graph_def, FEEDS[name])):
        traced = simulate(parts, CLUSTER, trace=trace)
        assert traced.makespan_ns == by_hand.makespan_ns
        assert traced.flops == by_hand.flops
        assert traced.peak_bytes == by_hand.peak_bytes


def test_what_the_caller_counts_comes_before_the_trace() -> None:
    graph_def = load_graph_def(DATA / "loop.graph.pb")
    parts = cut(graph_def, CLUSTER, feeds=["x:0", "n:0"], fetches=["y:0"])
    timelines = [
        simulate(parts, CLUSTER, feeds={"x:0": X, "n:0": ()}, trace=trace, trip_counts={"w/while_context": 2})
        for trace in (None, DATA / "loop.trace.pb")
    ]
    assert timelines[0].makespan_ns == timelines[1].makespan_ns
