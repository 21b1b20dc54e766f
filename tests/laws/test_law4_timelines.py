"""Law 4: a step on a virtual clock has the timeline that simulating its partitions predicts.

One player plays both: in the simulation it asks a model of the step, in a session the kernels. Compared are all events
in order, with their names and causes, the peaks of memory, what links carried, and the longest chain of durations; with
loops, conditionals and calls, on CPUs and GPUs. In graphs without queues, and without shapes that depend on values.
Where counts and branches depend on values the simulation is told them: in programs with functions by a trace. Of these
the numbers that partitioning gives to nodes are left out, as a session goes on counting from request to request.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, reject, strategies as st

from partita.actors import RunMetadata, RunOptions, open_session
from partita.devices import cut, simulate
from partita.devices.timing import Timeline, TimelineEvent
from partita.errors import InvalidArgumentError
from partita.graph.graphdef.files import load_graph_def
from tests.actors.running.function_programs import FunctionProgram, function_programs
from tests.devices.timing.programs import SIZE, Op, Program, Sequence, Writer, programs
from tests.devices.timing.tracing.test_counts import DATA, GIVEN
from tests.devices.timing.tracing.test_facts import FEEDS
from tests.laws.dead_graphs import dead_case
from tests.runs import HARD_PLACEMENT
from tests.strategies import GraphCase, graph_cases

CHECKOUT = Path(__file__).parents[2]
DEVICES = [f"/job:localhost/replica:0/task:0/device:{kind}:{i}" for i in range(4) for kind in ("CPU", "GPU")]
CLUSTER = "cpu:4,gpu:4"
FULL_TRACE = RunOptions(trace_level=RunOptions.FULL_TRACE)


@st.composite
def cases_on_devices(draw: st.DrawFn, max_steps: int = 12) -> tuple[GraphCase, dict[str, str]]:
    """A request on a graph, and the place of each node: one to eight devices, CPUs and GPUs."""
    case = draw(graph_cases(max_steps))
    devices = draw(st.permutations(DEVICES).flatmap(lambda names: st.integers(1, 8).map(lambda count: names[:count])))
    return case, {name: draw(st.sampled_from(devices)) for name in case.nodes}


def simulated(case: GraphCase, placement: dict[str, str]) -> Timeline:
    """The timeline of a request from shapes alone."""
    partitions = cut(case.on(placement), CLUSTER, feeds=list(case.feeds), fetches=case.fetches, targets=case.targets)
    try:
        return simulate(partitions, CLUSTER, feeds={name: value.shape for name, value in case.feeds.items()})
    except InvalidArgumentError:  # nothing in the request takes time
        reject()


def assert_same(ours: Timeline, theirs: Timeline) -> None:
    """Equal in events, causes, makespan, memory, loads of links, and bound."""
    assert ours.events == theirs.events
    assert_same_step(ours, theirs)


def assert_same_step(ours: Timeline, theirs: Timeline) -> None:
    """Equal in makespan, memory, loads of links, and bound."""
    assert ours.makespan_ns == theirs.makespan_ns
    assert ours.peak_bytes == theirs.peak_bytes
    for device, place in theirs.peak_bytes:
        assert ours.memory(device, place) == theirs.memory(device, place)
    assert ours.dependency_bound_ns == theirs.dependency_bound_ns
    for link in {event.provenance for event in theirs.events if event.kind == "copy"}:
        assert ours.link_loads(link) == theirs.link_loads(link)


def without_numbers(timeline: Timeline) -> list[TimelineEvent]:
    """The events in order; without the numbers that partitioning gives to nodes, as a session goes on counting them."""
    return [event._replace(node=re.sub(r"/_\d+", "/_", event.node)) for event in timeline.events]


@given(cases_on_devices())
async def test_a_virtual_step_has_the_simulated_timeline(placed: tuple[GraphCase, dict[str, str]]) -> None:
    """Over one to eight CPUs and GPUs; a second step of the session has the same timeline again."""
    case, placement = placed
    assume(all(node.op != "Switch" for node in case.graph_def.node))
    expected = simulated(case, placement)
    async with open_session(case.on(placement), CLUSTER, clock="virtual") as session:
        for _ in range(2):
            await session.run(case.fetches, case.feeds, case.targets)
            assert_same(session.timeline(), expected)


@pytest.mark.parametrize("cluster", ["cpu:1", "gpu:1", "cpu:2"])
@pytest.mark.parametrize("name", GIVEN)
async def test_loops_and_calls_have_the_simulated_timeline(name: str, cluster: str) -> None:
    """Loops of both kinds, nested ones, conditionals and functions, with the counts and branches that values give."""
    graph_def = load_graph_def(DATA / f"{name}.graph.pb")
    partitions = cut(graph_def, cluster, feeds=list(FEEDS[name]), fetches=["y:0"])
    shapes = {tensor: np.shape(value) for tensor, value in FEEDS[name].items()}
    expected = simulate(partitions, cluster, feeds=shapes, **GIVEN[name])
    async with open_session(graph_def, cluster, clock="virtual") as session:
        await session.run("y:0", FEEDS[name])
        assert_same(session.timeline(), expected)


@given(programs(), st.lists(st.sampled_from(DEVICES[:4]), min_size=1, max_size=7))
async def test_a_program_has_the_simulated_timeline(program: Program, devices: list[str]) -> None:
    """Calls, conditionals and loops of both kinds, nested, their nodes dealt out to CPUs and GPUs."""
    graph_def = Writer().graph_def(Sequence((Op("Neg"), program)))  # so that something takes time
    for number, node in enumerate(graph_def.node):
        node.device = devices[number % len(devices)]
    expected = simulate(cut(graph_def, CLUSTER, feeds=["x"], fetches=["y"]), CLUSTER, feeds={"x:0": (SIZE, SIZE)})
    async with open_session(graph_def, CLUSTER, clock="virtual") as session:
        await session.run("y:0", {"x:0": np.ones((SIZE, SIZE), np.float32)})
        assert_same(session.timeline(), expected)


@given(function_programs(conflicting=False))
async def test_called_functions_take_the_simulated_time(case: FunctionProgram) -> None:
    """Calls, conditionals, loops, maps and gradients, with the counts and branches that a real step has traced.

    A session places a function by the devices of the variables that it is given, which a simulation may not know.
    """
    metadata = RunMetadata()
    async with open_session(case.graph_def, "cpu:4", config=HARD_PLACEMENT) as session:
        await session.run([], targets=[case.init])
        await session.run(case.fetches, case.feeds, options=FULL_TRACE, metadata=metadata)
    shapes = {tensor: np.shape(value) for tensor, value in case.feeds.items()}
    try:
        partitions = cut(case.graph_def, "cpu:4", feeds=list(case.feeds), fetches=case.fetches)
        expected = simulate(partitions, "cpu:4", feeds=shapes, trace=metadata.step_stats)
    except InvalidArgumentError:  # nothing takes time, shapes or branches are not known, or only soft placement works
        reject()
    async with open_session(case.graph_def, "cpu:4", config=HARD_PLACEMENT, clock="virtual") as session:
        await session.run([], targets=[case.init])
        await session.run(case.fetches, case.feeds)
        timeline = session.timeline()
    places = [
        {(event.node, event.device) for event in without_numbers(t) if event.kind == "compute"}
        for t in (timeline, expected)
    ]
    assume(places[0] == places[1])
    assert without_numbers(timeline) == without_numbers(expected)
    assert_same_step(timeline, expected)


HASHES = """
import hashlib
import trio
from partita.actors import open_session
from tests.actors.programs import program

async def main():
    for seed in range(12):
        case = program(seed, devices=4, size=5)
        async with open_session(case.graph_def, "cpu:4", clock="virtual", seed=seed) as session:
            await session.run([], case.feeds, [name.partition(":")[0] for name in case.fetches])
            timeline = session.timeline()
        text = repr((timeline.events, sorted(timeline.peak_bytes.items())))
        print(seed, hashlib.sha256(text.encode()).hexdigest())

trio.run(main)
"""


def test_another_process_gives_the_same_traces() -> None:
    """One digest per seed, for programs with loops and conditionals, whatever the hash seed of the process."""
    outputs = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", HASHES]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=CHECKOUT)
        outputs.append(result.stdout.splitlines())
    assert outputs[0] == outputs[1]
    assert len({line.split()[1] for line in outputs[0]}) == 12


def by_node(timeline: Timeline) -> list[tuple[object, ...]]:
    """The events by node, each with its times and the node that it came after."""
    events = list(timeline.events)
    return sorted(
        (e.node, e.device, e.kind, e.start_ns, e.end_ns, events[e.cause].node if e.cause >= 0 else "") for e in events
    )


@given(st.integers(0, 1 << 30), st.integers(1, 3))
async def test_what_waits_for_dead_tensors_waits_alike(seed: int, count: int) -> None:
    """Merges with control edges from dead nodes, and ControlTriggers, over CPUs.

    In a simulation, which has no dead node, they wait for what decides that these are dead. The order of what happens
    at one instant is left out: the nodes that one death lets go may come in another order.
    """
    case = dead_case(seed, tuple(name for name in DEVICES if "CPU" in name)[:count])
    async with open_session(case.graph, "cpu:4", clock="virtual") as session:
        await session.run("y", case.feeds)
        ours = session.timeline()
    partitions = cut(case.graph, "cpu:4", feeds=list(case.feeds), fetches="y")
    shapes = {name: value.shape for name, value in case.feeds.items()}
    theirs = simulate(
        partitions, "cpu:4", feeds=shapes, branches={name: int(side) for name, side in case.taken.items()}
    )
    assert by_node(ours) == by_node(theirs)
