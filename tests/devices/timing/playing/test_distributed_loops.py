"""Loops whose iterations run side by side, on lanes of one device and on several devices."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import pytest
from hypothesis import given, strategies as st

from partita.devices import Cluster, Device, DeviceSpec, OpCost, cut
from partita.devices.timing import Timeline, simulate
from partita.devices.timing.costs.roofline import RooflineSource
from partita.graph import GraphDef
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Dims
from partita.graph.ops.properties import NodeProperties
from partita.graph.structured import while_loop
from tests.devices.timing.steps import GIGA, cluster, cpu

TENSOR_BYTES = 8 * 8 * 4
Body = Sequence[tuple[str, int]]
"""ops, each of which reads the result of the one before, and the devices they run on"""


class Times:
    """A time per op, 0 for all others."""

    def __init__(self, **times_ns: int) -> None:
        self.times_ns = times_ns

    def cost(
        self, properties: NodeProperties, inputs: tuple[Dims, ...], outputs: tuple[Dims, ...], spec: DeviceSpec
    ) -> OpCost:
        """The usual operations and bytes."""
        usual = RooflineSource().cost(properties, inputs, outputs, spec)
        return usual._replace(time_ns=self.times_ns.get(properties.op, 0))


def applied(b: GraphBuilder, body: Body, value: Tensor) -> Tensor:
    """The nodes of a body; the first and the last are on the first device, as the nodes of the loop are."""
    with b.device(cpu(0)):
        value = b.identity(value)
    for op, device in body:
        with b.device(cpu(device)):
            value = b.op(op, *[value] * (1 if op == "Neg" else 2))[0]
    with b.device(cpu(0)):
        return b.identity(value)


def loop(body: Body, count: int, parallel_iterations: int = 10) -> GraphDef:
    """The loop of a body."""
    b = GraphBuilder()
    with b.device(cpu(0)):
        x = b.placeholder("x", "float32", (8, 8))
        _, y = while_loop(
            b,
            lambda i, _: b.op("Less", i, count),
            lambda i, value: (i + 1, applied(b, body, value)),
            [0, x],
            parallel_iterations=parallel_iterations,
        )
        b.identity(y, name="y")
    return b.graph_def()


def unrolled(body: Body, count: int) -> GraphDef:
    """The iterations one after the other, with the counter's ops."""
    b = GraphBuilder()
    with b.device(cpu(0)):
        value: Tensor = b.placeholder("x", "float32", (8, 8))
        i: Tensor = b.constant(0)
        counted = [b.op("Less", i, count)[0]]
        for _ in range(count):
            value, i = applied(b, body, value), b.op("AddV2", i, 1)[0]
            counted.append(b.op("Less", i, count)[0])
        b.op("Identity", value, name="y", control=counted)
    return b.graph_def()


def step(graph_def: GraphDef, hardware: Cluster, **times_ns: int) -> Timeline:
    """The step in which only some ops take time."""
    parts = cut(graph_def, hardware, feeds=["x"], fetches=["y"])
    return simulate(parts, hardware, cost_source=Times(**times_ns) if times_ns else None)


def most_at_once(timeline: Timeline, device: str) -> int:
    """How many iterations have an op on a device at one instant."""
    runs = [
        (event.start_ns, event.end_ns, event.iteration)
        for event in timeline.events
        if event.device == device and event.kind == "compute" and event.iteration and event.duration_ns
    ]
    return max(len({other for begin, end, other in runs if begin <= start < end}) for start, _, _ in runs)


@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 5))
def test_parallel_iterations_bound_what_runs_on_lanes(count: int, parallel_iterations: int, lanes: int) -> None:
    """Independent products of 100 ns: as many at a time as there are lanes and as the frame allows."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (8, 8))
    _, y = while_loop(
        b,
        lambda i, _: b.op("Less", i, count),
        lambda i, _: (i + 1, b.op("MatMul", x, x)[0]),
        [0, x],
        parallel_iterations=parallel_iterations,
    )
    b.identity(y, name="y")
    hardware = Cluster([Device(DeviceSpec("host", "CPU", {"fp32": GIGA}, GIGA, 10**12, lanes=lanes))])
    timeline = step(b.graph_def(), hardware, MatMul=100)
    at_once = min(parallel_iterations, lanes)
    assert timeline.makespan_ns == 100 * ceil(count / at_once)
    assert most_at_once(timeline, cpu(0)) == min(at_once, count)


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("parallel_iterations", [1, 10])
def test_a_value_goes_to_another_device_and_back_in_every_iteration(count: int, parallel_iterations: int) -> None:
    """Two ops of 10 ns, and two copies of 256 bytes at a byte a nanosecond; a predicate of a byte is copied too.

    One iteration at a time, each predicate is copied while the first op runs, and the last one after all others. With
    all iterations at a time, those after the first are copied together with the first value, which they delay.
    """
    timeline = step(loop([("Neg", 0), ("Neg", 1)], count, parallel_iterations), cluster(2), Neg=10)
    predicates_ns = 1 if parallel_iterations == 1 else count
    assert timeline.makespan_ns == count * (10 + TENSOR_BYTES + 10 + TENSOR_BYTES) + predicates_ns
    copies = [event for event in timeline.events if event.kind == "copy"]
    assert sum(event.bytes for event in copies) == 2 * count * TENSOR_BYTES + count + 1


BODIES = st.lists(st.tuples(st.sampled_from(["Neg", "MatMul", "AddV2"]), st.integers(0, 2)), min_size=1, max_size=5)


@given(BODIES, st.integers(1, 6), st.integers(1, 4))
def test_a_distributed_loop_does_and_copies_what_it_does_unrolled(
    body: Body, count: int, parallel_iterations: int
) -> None:
    """Equal operations and bytes of ops; the loop also copies its predicate, of one byte, to every other device."""
    hardware = cluster(3)
    looped, by_hand = step(loop(body, count, parallel_iterations), hardware), step(unrolled(body, count), hardware)
    assert looped.flops == by_hand.flops
    others = {device for _, device in body} - {0}
    copied = [sum(e.bytes for e in timeline.events if e.kind == "copy") for timeline in (looped, by_hand)]
    assert copied[0] == copied[1] + (count + 1) * len(others)
    for device in sorted(others):
        assert most_at_once(looped, cpu(device)) <= parallel_iterations
