"""Laws of simulated time, on drawn graphs: scaling, monotonicity, conservation, determinism.

Scheduling anomalies (Graham 1969) make general graphs non-monotone, so monotonicity is claimed for chains and
fork-joins.
"""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from math import prod

from hypothesis import given, strategies as st

from partita.devices.timing import Timeline, simulate
from partita.devices.timing.export import chrome_trace, perfetto_trace
from partita.devices.timing.export.csv import to_csv
from partita.errors import InvalidArgumentError
from partita.graph import Graph
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.dtypes import DataType, item_size
from partita.graph.shape_inference.infer import infer_joined
from tests.strategies import GraphCase, placed_cases

from .steps import StepBuilder, cluster, cpu, placed_parts

# Whole multiples of 4 elements: with 1 B/ns every duration is an even number of nanoseconds.
sides = st.integers(1, 8).map(lambda n: 2 * n)


@st.composite
def chains(draw: st.DrawFn, *, open_sizes: bool = False) -> StepBuilder:
    """A chain of elementwise ops and products over up to four devices; `open_sizes` leaves the shape to the feed."""
    step, side = StepBuilder(), None if open_sizes else draw(sides)
    last = step.feed("x", (side, side), draw(st.integers(0, 3)))
    for i, device in enumerate(draw(st.lists(st.integers(0, 3), min_size=1, max_size=8))):
        if draw(st.booleans()):
            last = step.op(f"n{i}", "Neg", [last], device)
        else:
            last = step.op(f"n{i}", "MatMul", [last, last], device)
    return step


@st.composite
def fork_joins(draw: st.DrawFn, *, open_sizes: bool = False) -> StepBuilder:
    """One source, up to three branches of one op each on a device of its own, one join."""
    step, side = StepBuilder(), None if open_sizes else draw(sides)
    step.feed("x", (side, side), 0)
    branches = []
    for i in range(draw(st.integers(1, 3))):
        op = draw(st.sampled_from((("Neg", 1), ("MatMul", 2))))
        branches.append(step.op(f"b{i}", op[0], ["x"] * op[1], i + 1))
    step.op("join", "AddN", branches, 0, N=len(branches))
    return step


@st.composite
def random_parts(draw: st.DrawFn) -> dict[str, Graph]:
    """The partitions of a drawn graph with a drawn placement."""
    placed: tuple[GraphCase, dict[str, str]] = draw(placed_cases())
    case, placement = placed
    return placed_parts(case.on(placement))


def predicates(parts: dict[str, Graph]) -> list[str]:
    """The placeholders on which the conditionals of drawn graphs depend."""
    nodes = [node for graph in parts.values() for node in graph.op_nodes()]
    return [node.name for node in nodes if node.op == "Placeholder" and node.output_types[0] is DataType.BOOL]


def run(parts: dict[str, Graph], side: int = 1, **hardware: int) -> Timeline | None:
    """The timeline if all conditionals take the branch `side`; None if all drawn nodes are free."""
    try:
        return simulate(parts, cluster(4, **hardware), branches=dict.fromkeys(predicates(parts), side))
    except InvalidArgumentError as error:
        if "takes 0 ns" in error.message:
            return None
        raise


@given(chains() | fork_joins(), st.integers(0, 9), st.integers(0, 9))
def test_doubling_every_rate_halves_the_time_exactly(step: StepBuilder, latency: int, overhead: int) -> None:
    """With overheads and latencies halved too: every event, to the nanosecond."""
    parts = step.parts()
    slow = run(parts, latency_ns=2 * latency, overhead_ns=2 * overhead)
    fast = run(parts, latency_ns=latency, overhead_ns=overhead, speed=2, link_speed=2)
    assert slow is not None
    assert fast is not None
    assert [(2 * e.start_ns, 2 * e.end_ns) for e in fast.events] == [(e.start_ns, e.end_ns) for e in slow.events]


@given(chains() | fork_joins(), st.integers(1, 5), st.integers(1, 5), st.integers(0, 50))
def test_faster_hardware_is_never_slower(step: StepBuilder, speed: int, link_speed: int, latency: int) -> None:
    """More bandwidth, less latency, faster kernels: no later end, on graphs without scheduling anomalies."""
    parts = step.parts()
    base = run(parts, latency_ns=latency)
    assert base is not None
    for better in (
        run(parts, latency_ns=latency, speed=speed),
        run(parts, latency_ns=latency, link_speed=link_speed),
        run(parts, latency_ns=latency // 2),
    ):
        assert better is not None
        assert better.makespan_ns <= base.makespan_ns


@given(chains(open_sizes=True) | fork_joins(open_sizes=True), st.integers(1, 4))
def test_fewer_bytes_are_never_slower(step: StepBuilder, factor: int) -> None:
    """The same graph fed with larger matrices takes at least as long."""
    parts = step.parts()
    small = simulate(parts, cluster(4), feeds={"x": (2, 2)})
    large = simulate(parts, cluster(4), feeds={"x": (2 * factor, 2 * factor)})
    assert small.makespan_ns <= large.makespan_ns


@given(random_parts(), st.integers(0, 50), st.integers(0, 5))
def test_no_schedule_beats_the_dependencies(parts: dict[str, Graph], latency: int, overhead: int) -> None:
    """The makespan is at least the longest chain, and the critical path fills it exactly."""
    timeline = run(parts, latency_ns=latency, overhead_ns=overhead)
    if timeline is None:
        return
    assert timeline.makespan_ns >= timeline.dependency_bound_ns
    path = timeline.critical_path()
    assert sum(event.duration_ns for event in path) == timeline.makespan_ns
    assert path[0].start_ns == 0
    assert all(a.end_ns == b.start_ns for a, b in pairwise(path))


@given(st.integers(1, 20), sides, st.integers(0, 500), st.integers(1, 3))
def test_latency_occupies_no_link(messages: int, side: int, latency: int, link_speed: int) -> None:
    """Messages that share one link have arrived after latency + their bytes / rate, however many there are."""
    step = StepBuilder()
    for k in range(messages):
        step.feed(f"x{k}", (side, side))
        step.op(f"y{k}", "Identity", [f"x{k}"], 1)
    timeline = simulate(step.parts(), cluster(2, latency_ns=latency, link_speed=link_speed))
    together = -(-4 * side * side * messages // link_speed)
    arrivals = sorted(event.end_ns for event in timeline.events if event.kind == "recv")
    assert arrivals == [latency + together] * messages
    assert timeline.makespan_ns == latency + together
    (stream,) = [stream for stream in timeline.streams(cpu(0)) if stream.startswith("wire")]
    assert timeline.busy_ns(cpu(0), stream) == together


@given(random_parts(), st.integers(0, 50))
def test_nothing_is_in_two_places_at_once(parts: dict[str, Graph], latency: int) -> None:
    """Ops of a stream never overlap, so no stream is busy for more than the whole time."""
    timeline = run(parts, latency_ns=latency)
    if timeline is None:
        return
    streams = defaultdict(list)
    for event in timeline.events:
        if event.kind == "compute" and event.duration_ns:
            streams[event.device, event.stream].append((event.start_ns, event.end_ns))
    for (device, stream), spans in streams.items():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        assert 0 < timeline.busy_fraction(device, stream) <= 1
        assert timeline.busy_ns(device, stream) == sum(end - start for start, end in spans)


@given(random_parts())
def test_every_node_and_every_byte_is_counted_once(parts: dict[str, Graph]) -> None:
    """One event per node that runs, one copy per receive, with the bytes of the tensor that crosses."""
    timelines = [timeline for side in (0, 1) if (timeline := run(parts, side, latency_ns=1)) is not None]
    if len(timelines) < 2:
        return
    nodes = {node.name for graph in parts.values() for node in graph.op_nodes()}
    ran = [[event.node for event in timeline.events if event.kind != "copy"] for timeline in timelines]
    assert set().union(*ran) == nodes
    assert [len(set(names)) for names in ran] == [len(names) for names in ran]
    for timeline, names in zip(timelines, ran, strict=True):
        assert_every_byte_is_counted(timeline, set(names), parts)


def assert_every_byte_is_counted(timeline: Timeline, ran: set[str], parts: dict[str, Graph]) -> None:
    """Every receive that ran has a copy of the bytes of its tensor."""
    joined = JoinedGraph(parts)
    shapes = infer_joined(joined, assumed_size=1).shapes
    crossing = [
        prod(size or 0 for size in shapes[recv][0] or ()) * item_size(joined.properties[recv].output_types[0])
        for recv, send in enumerate(joined.sender.tolist())
        if send >= 0 and joined.names[recv] in ran
    ]
    copies = [event.bytes for event in timeline.events if event.kind == "copy"]
    assert sorted(copies) == sorted(crossing)
    assert timeline.transferred_bytes == sum(crossing)


@given(random_parts(), st.integers(0, 50))
def test_same_input_same_trace(parts: dict[str, Graph], latency: int) -> None:
    """Byte for byte, in every form that is written to a file."""
    first, second = run(parts, latency_ns=latency), run(parts, latency_ns=latency)
    if first is None or second is None:
        return
    assert to_csv(first) == to_csv(second)
    assert json.dumps(chrome_trace(first)) == json.dumps(chrome_trace(second))
    assert perfetto_trace(first) == perfetto_trace(second)
    assert first.render() == second.render()
    assert first.peak_bytes == second.peak_bytes


def assert_arrows_end_in_slices(timeline: Timeline) -> int:
    """Both ends of every arrow lie in a slice of their own process and thread; how many arrows there are."""
    events = chrome_trace(timeline)["traceEvents"]
    slices = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            slices[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    ends = [e for e in events if e["ph"] in "sf"]
    for e in ends:
        assert any(start <= e["ts"] <= end for start, end in slices[e["pid"], e["tid"]]), e
    sources, sinks = ({e["id"]: e["ts"] for e in ends if e["ph"] == phase} for phase in "sf")
    assert sources.keys() == sinks.keys()
    assert all(timeline.events[key].end_ns / 1000 <= sinks[key] for key in sources)  # once the tensor is there
    return len(sources)


@given(chains() | fork_joins(), st.integers(0, 50))
def test_every_transfer_that_is_awaited_has_an_arrow(step: StepBuilder, latency: int) -> None:
    """It ends inside a slice of the receiving device: viewers drop or misplace other arrows."""
    timeline = run(step.parts(), latency_ns=latency)
    assert timeline is not None
    devices = {event.device for event in timeline.events if event.kind == "compute" and event.duration_ns}
    assert bool(assert_arrows_end_in_slices(timeline)) >= (len(devices) > 1)


@given(random_parts(), st.integers(0, 50))
def test_arrows_end_inside_slices_on_any_graph(parts: dict[str, Graph], latency: int) -> None:
    """At most one for each transfer that takes time."""
    timeline = run(parts, latency_ns=latency)
    if timeline is not None:
        recvs = sum(event.kind == "recv" for event in timeline.events)
        assert assert_arrows_end_in_slices(timeline) <= recvs
