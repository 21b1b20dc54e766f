"""The law of orders: whatever is taken first, a step is the same step, and equal priorities are "ready".

Drawn graphs on CPUs and GPUs, and programs of loops, conditionals and calls; one data-parallel training step, whose
collectives may overtake each other. "Valid" is: the same events with the same durations, no two at a time on a stream
that does one thing at a time, none before what it needs, and no step shorter than its longest chain.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import assume, given, reject, strategies as st

from partita.devices import cut, simulate
from partita.devices.timing import Timeline
from partita.errors import InvalidArgumentError
from partita.graph import Graph, replicate
from partita.scenarios.workloads.deep_training import deep_training
from tests.devices.timing.programs import SIZE, Op, Program, Sequence, Writer, programs
from tests.laws.test_law4_timelines import CLUSTER, DEVICES, assert_same, cases_on_devices
from tests.strategies import GraphCase


class Step:
    """A cut step, which is simulated in several orders."""

    def __init__(
        self, parts: Mapping[str, Graph], feeds: Mapping[str, tuple[int, ...]], cluster: str = CLUSTER
    ) -> None:
        self.parts, self.feeds, self.cluster = parts, feeds, cluster
        self.names = sorted({node.name for graph in parts.values() for node in graph.op_nodes()})

    def timeline(self, order: Any = "ready") -> Timeline:
        """The simulated step."""
        return simulate(self.parts, self.cluster, feeds=self.feeds, order=order)

    def drawn(self, seed: int) -> dict[str, int]:
        """A priority for about half of the nodes."""
        random = Random(seed)
        return {name: random.randint(-2, 2) for name in self.names if random.random() < 0.5}


def step_of(placed: tuple[GraphCase, dict[str, str]]) -> Step:
    """The step of a request; others are drawn if nothing in it takes time."""
    case, placement = placed
    assume(all(node.op != "Switch" for node in case.graph_def.node))
    parts = cut(case.on(placement), CLUSTER, feeds=list(case.feeds), fetches=case.fetches, targets=case.targets)
    step = Step(parts, {name: value.shape for name, value in case.feeds.items()})
    try:
        step.timeline()
    except InvalidArgumentError:
        reject()
    return step


def program_step(program: Program, devices: list[str]) -> Step:
    """The step of a program whose nodes are dealt out to devices."""
    graph_def = Writer().graph_def(Sequence((Op("Neg"), program)))
    for number, node in enumerate(graph_def.node):
        node.device = devices[number % len(devices)]
    return Step(cut(graph_def, CLUSTER, feeds=["x"], fetches=["y"]), {"x:0": (SIZE, SIZE)})


@cache
def training() -> Step:
    """A training step of four replicas, whose gradients are reduced in buckets."""
    gpus = [f"/device:GPU:{k}" for k in range(4)]
    graph = replicate(deep_training(6, 256), gpus, batch="ids", loss="loss", bucket_bytes=1 << 18)
    parts = cut(graph, "cpu:1,gpu:4", feeds=["ids"], fetches=["loss"], targets=["train"])
    return Step(parts, {"ids": (4096,)}, "cpu:1,gpu:4")


def runs(timeline: Timeline) -> Counter[tuple[object, ...]]:
    """What ran: where, in which iteration, and for how long; transfers and collectives may share links."""
    return Counter(
        (e.device, e.kind, e.node, e.op, e.iteration, e.duration_ns if e.kind in ("compute", "launch") else 0)
        for e in timeline.events
        for _ in range(e.runs)
    )


def assert_valid(timeline: Timeline, usual: Timeline) -> None:
    """The step of `usual`, in another order."""
    assert runs(timeline) == runs(usual)
    assert timeline.dependency_bound_ns == usual.dependency_bound_ns
    assert timeline.makespan_ns >= timeline.dependency_bound_ns
    events = list(timeline.events)
    # A copy may take the place of another one before the last nanosecond of that has been rounded up.
    caused = [(events[e.cause], e) for e in events if e.cause >= 0 and e.kind not in ("launch", "copy")]
    assert all(before.end_ns <= after.start_ns for before, after in caused)
    busy = defaultdict(list)
    for e in events:
        if e.duration_ns and e.kind in ("compute", "launch", "collective"):  # what is free passes beside
            busy[e.device, e.stream].append((e.start_ns, e.end_ns))
    for spans in busy.values():
        assert all(end <= start for (_, end), (start, _) in pairwise(sorted(spans)))


def assert_after_inputs(timeline: Timeline, step: Step) -> None:
    """Every node of the step has begun after its inputs on its device have ended."""
    ends = {(e.device, e.node): e.end_ns for e in timeline.events if e.kind != "launch"}
    starts = {(e.device, e.node): e.start_ns for e in timeline.events if e.kind != "launch"}
    for device, graph in step.parts.items():
        for edge in graph.edges():
            src, dst = (device, edge.src.name), (device, edge.dst.name)
            assert src not in ends or dst not in starts or ends[src] <= starts[dst], (src, dst)


@given(cases_on_devices(20), st.integers(0, 1 << 30))
def test_any_order_of_a_graph_is_valid(placed: tuple[GraphCase, dict[str, str]], seed: int) -> None:
    """By the critical path, and by drawn priorities, every node runs once, after its inputs."""
    step = step_of(placed)
    usual = step.timeline()
    for order in ("critical-path", step.drawn(seed)):
        timeline = step.timeline(order)
        assert_valid(timeline, usual)
        assert_after_inputs(timeline, step)


@given(cases_on_devices(20), st.integers(-3, 3))
def test_equal_priorities_of_a_graph_are_ready(placed: tuple[GraphCase, dict[str, str]], priority: int) -> None:
    """One priority for all nodes, or for none, gives the same events in the same order."""
    step = step_of(placed)
    usual = step.timeline()
    assert_same(step.timeline({}), usual)
    assert_same(step.timeline(dict.fromkeys(step.names, priority)), usual)


@given(programs(), st.lists(st.sampled_from(DEVICES[:4]), min_size=1, max_size=7), st.integers(0, 1 << 30))
def test_any_order_of_a_program_is_valid(program: Program, devices: list[str], seed: int) -> None:
    """Loops, whose iterations may overlap, conditionals and calls."""
    step = program_step(program, devices)
    usual = step.timeline()
    for order in ("critical-path", step.drawn(seed)):
        assert_valid(step.timeline(order), usual)


@given(programs(), st.lists(st.sampled_from(DEVICES[:4]), min_size=1, max_size=7))
def test_equal_priorities_of_a_program_are_ready(program: Program, devices: list[str]) -> None:
    """In loops the order of TensorFlow's executor stays, and equal iterations are still played once."""
    step = program_step(program, devices)
    usual = step.timeline()
    assert_same(step.timeline({}), usual)
    assert_same(step.timeline(dict.fromkeys(step.names, 7)), usual)


@given(st.integers(0, 1 << 30))
def test_any_order_of_kernels_of_a_training_step_is_valid(seed: int) -> None:
    """The same collectives among the same members, whatever kernels come first."""
    step = training()
    usual = step.timeline()
    members = {event.node for event in usual.events if event.kind == "collective"}
    order = {name: priority for name, priority in step.drawn(seed).items() if name not in members}
    assert_valid(step.timeline(order), usual)


@given(st.lists(st.integers(-3, 3), min_size=24, max_size=24))
def test_collectives_come_by_what_their_members_share(priorities: list[int]) -> None:
    """A priority for each collective: every member of the group has them in one order, and the step is the same."""
    step = training()
    instances = {
        node.name: node.attrs["instance_key"]
        for graph in step.parts.values()
        for node in graph.op_nodes()
        if node.op == "CollectiveReduce"
    }
    numbers = {instance: number for number, instance in enumerate(sorted(set(instances.values())))}
    order = {name: priorities[numbers[instance]] for name, instance in instances.items()}
    timeline = step.timeline(order)
    assert_valid(timeline, step.timeline())
    begun = defaultdict(list)
    for event in sorted(timeline.events, key=lambda event: event.start_ns):
        if event.kind == "collective":
            begun[event.device].append(instances[event.node])
    assert len(begun) == 4
    assert all(each == begun[min(begun)] for each in begun.values())


def test_equal_priorities_of_a_training_step_are_ready() -> None:
    """Collectives come in the same order too."""
    step = training()
    assert_same(step.timeline(dict.fromkeys(step.names, 1)), step.timeline())
    assert_valid(step.timeline("critical-path"), step.timeline())
