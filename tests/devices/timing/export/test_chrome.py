"""Laws of Chrome traces: slices of a thread do not overlap, arguments are all there is to say, counters are told."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

from hypothesis import given, strategies as st

from partita.devices.timing import Timeline
from partita.devices.timing.export import chrome_trace
from partita.devices.timing.export.counters import counters_of
from partita.graph import Graph
from tests.devices.timing.test_simulation_laws import random_parts, run

from .drawn import timelines

Record = dict[str, Any]  # one event of a trace


@given(timelines())
def test_slices_of_a_thread_follow_each_other(timeline: Timeline) -> None:
    """Viewers draw slices that overlap as if one had called the other: copies that share a link have more threads."""
    events = json.loads(json.dumps(chrome_trace(timeline)))["traceEvents"]
    slices = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in slices.values():
        assert all(first[1] <= second[0] + 1e-9 for first, second in pairwise(sorted(spans)))
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    told = [(names[e["pid"], e["tid"]], e["name"], e["args"]["op"]) for e in events if e["ph"] in "Xi"]
    assert told == [(event.stream, event.node, event.op) for event in timeline.events]


@given(random_parts(), st.integers(0, 50))
def test_counters_are_in_the_trace(parts: dict[str, Graph], latency_ns: int) -> None:
    """Those of memory in the process of their device, those of links in one of their own, in order of time."""
    timeline = run(parts, latency_ns=latency_ns)
    if timeline is None:
        return
    events = chrome_trace(timeline)["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert len(set(processes.values())) == len(processes)
    values = defaultdict(list)
    for e in events:
        if e["ph"] == "C":
            ((unit, value),) = e["args"].items()
            values[processes[e["pid"]], e["name"], unit].append((e["ts"], value))
    assert values == {
        (counter.device or "links", counter.name, counter.unit): [
            (at / 1000, value) for at, value in zip(counter.at_ns.tolist(), counter.values.tolist(), strict=True)
        ]
        for counter in counters_of(timeline)
    }
