"""Law: folded loops over several devices are the unfolded ones, to the nanosecond: events, causes, loads, peaks."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.devices import Cluster, cut, local_cluster
from partita.devices.timing import Timeline, TimelineEvent, simulate
from partita.devices.timing.playing import folding
from partita.devices.timing.playing.folding import Folding
from partita.graph import GraphDef
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.structured import while_loop
from tests.devices.timing.steps import cluster

Chain = tuple[tuple[str, int], ...]
"""ops one after the other, and the devices they run on"""


@dataclass(frozen=True)
class Step:
    """A loop whose values each go through a chain, with a loop inside or not, and a chain that nothing in it reads."""

    count: int
    sizes: tuple[int, ...]
    chains: tuple[Chain, ...]
    mixes: bool
    inner: int
    parallel_iterations: int
    outside: Chain

    def graph_def(self, kind: str) -> GraphDef:
        """The graph on devices of a kind."""
        b = GraphBuilder()
        with b.device(f"/device:{kind}:0"):
            values = [b.placeholder(f"x{k}", "float32", (size, size)) for k, size in enumerate(self.sizes)]
            results = self._loop(b, kind, values, self.count, "w")
            results += [_applied(b, kind, self.outside, values[0])] if self.outside else []
            for k, result in enumerate(results):
                b.identity(result, name=f"y{k}")
        return b.graph_def()

    def _loop(self, b: GraphBuilder, kind: str, values: list[Tensor], count: int, name: str) -> list[Tensor]:
        def body(i: Tensor, *values: Tensor) -> list[Tensor]:
            after = [_applied(b, kind, chain, value) for chain, value in zip(self.chains, values, strict=True)]
            if self.mixes and self.sizes[0] == self.sizes[-1]:
                after[0] = b.op("AddV2", after[0], after[-1])[0]
            if self.inner and name == "w":
                after = self._loop(b, kind, after, self.inner, "inner")
            return [b.op("AddV2", i, 1)[0], *after]

        def goes_on(i: Tensor, *_: Tensor) -> Tensor:
            return b.op("Less", i, count)[0]

        _, *results = while_loop(
            b, goes_on, body, [b.constant(0), *values], name=name, parallel_iterations=self.parallel_iterations
        )
        return results


def _applied(b: GraphBuilder, kind: str, chain: Chain, value: Tensor) -> Tensor:
    for op, device in chain:
        with b.device(f"/device:{kind}:{device}"):
            value = b.op(op, *[value] * (1 if op == "Neg" else 2))[0]
    return value


def chains(most: int) -> st.SearchStrategy[Chain]:
    """Up to so many ops on three devices."""
    return st.lists(st.tuples(st.sampled_from(["Neg", "MatMul", "AddV2"]), st.integers(0, 2)), max_size=most).map(tuple)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """Loops of up to three values."""
    values = draw(st.integers(1, 3))
    inner = draw(st.sampled_from([0, 0, 0, 2, 9]))
    return Step(
        count=draw(st.integers(5, 60 if not inner else 20)),
        sizes=tuple(draw(st.lists(st.sampled_from([4, 8, 16]), min_size=values, max_size=values))),
        chains=tuple(draw(st.lists(chains(4), min_size=values, max_size=values))),
        mixes=draw(st.booleans()),
        inner=inner,
        parallel_iterations=draw(st.sampled_from([1, 2, 3, 10])),
        outside=draw(st.one_of(st.just(()), chains(6))),
    )


HARDWARE: list[tuple[str, Cluster]] = [
    ("CPU", cluster(3)),
    ("CPU", cluster(3, link_speed=2, latency_ns=700, overhead_ns=3)),
    ("CPU", cluster(3, latency_ns=5000, overhead_ns=30)),
    ("GPU", local_cluster("gpu:3")),
]


def folded_and_not(step: Step, kind: str, hardware: Cluster) -> tuple[Timeline, Timeline]:
    """The step folded, however short its loops are, and with every iteration played."""
    feeds, fetches = [f"x{k}" for k in range(len(step.sizes))], [f"y{k}" for k in range(len(step.sizes))]
    parts = cut(
        step.graph_def(kind),
        hardware,
        feeds=feeds,
        fetches=[*fetches, *([f"y{len(fetches)}"] if step.outside else [])],
        allow_soft_placement=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "FEWEST", 3)
        folded = simulate(parts, hardware)
        patch.setattr(Folding, "check", lambda seen: seen.begun.clear())
        return folded, simulate(parts, hardware)


Key = tuple[str, str, str, str]


def key(event: TimelineEvent, iteration: str) -> Key:
    """What tells events of a step that plays every iteration apart."""
    return event.device, event.node, event.kind, iteration


def ranges(iteration: str) -> list[tuple[str, int, int]]:
    """By loop its name, and the first and the last iteration of a label."""
    found = re.findall(r"(.+?):(\d+)(?:-(\d+))?(?:/|$)", iteration)
    return [(name, int(low), int(high or low)) for name, low, high in found]


def iterations(event: TimelineEvent) -> list[str]:
    """The iterations of the runs of an event; of a block over two loops only the first."""
    loops = ranges(event.iteration)
    wide = [high - low for _, low, high in loops if high > low]
    runs, step = (event.runs, wide[0] // (event.runs - 1)) if len(wide) == 1 else (1, 0)
    return ["/".join(f"{name}:{low + run * step * (high > low)}" for name, low, high in loops) for run in range(runs)]


def is_among(iteration: str, events: TimelineEvent) -> bool:
    """Whether an iteration is one of those of a block, by its numbers."""
    one, block = ranges(iteration), ranges(events.iteration)
    return [name for name, _, _ in one] == [name for name, _, _ in block] and all(
        low <= number <= high for (_, number, _), (_, low, high) in zip(one, block, strict=True)
    )


def check_events(folded: Timeline, played: Timeline) -> None:
    """Every run of every event is one of the step that was played, with its times and its cause."""
    of_played = {key(event, event.iteration): event for event in played.events}
    assert len(of_played) == len(played.events) == sum(event.runs for event in folded.events)
    for event in folded.events:
        runs = [of_played[key(event, iteration)] for iteration in iterations(event)]
        assert runs[0].start_ns == event.start_ns, (event, runs[0])
        starts = [run.start_ns for run in runs]
        assert len(runs) < 2 or starts == list(range(starts[0], starts[-1] + 1, max(starts[1] - starts[0], 1)))
        for run in runs:
            same = ("stream", "op", "duration_ns", "bytes", "flops", "provenance")
            assert [getattr(run, name) for name in same] == [getattr(event, name) for name in same], (event, run)
            assert (run.cause < 0) == (event.cause < 0), (event, run)
            if run.cause >= 0:
                cause, of_run = folded.events[event.cause], played.events[run.cause]
                assert key(cause, "") == key(of_run, ""), (event, run, cause, of_run)
        if event.cause >= 0:
            cause, of_first = folded.events[event.cause], played.events[runs[0].cause]
            assert is_among(of_first.iteration, cause), (event, runs[0], cause, of_first)


def check(step: Step, kind: str, hardware: Cluster) -> Timeline:
    """The law for one step; returns the folded one."""
    folded, played = folded_and_not(step, kind, hardware)
    check_events(folded, played)
    assert folded.makespan_ns == played.makespan_ns
    assert folded.peak_bytes == played.peak_bytes
    for memory in played.peak_bytes:
        curves = [timeline.memory_over_time(*memory) for timeline in (folded, played)]
        assert np.array_equal(curves[0].at_ns, curves[1].at_ns)
        for category, in_use in curves[0].by_category.items():
            assert np.array_equal(in_use, curves[1].by_category[category]), category
    assert folded.totals_by_op() == played.totals_by_op()
    assert folded.render().splitlines()[1:] == played.render().splitlines()[1:]  # the first counts events
    for device in played.devices:
        assert {s: folded.busy_ns(device, s) for s in folded.streams(device)} == {
            s: played.busy_ns(device, s) for s in played.streams(device)
        }
    for link in {event.provenance for event in played.events if event.kind == "copy"}:
        assert folded.link_loads(link) == played.link_loads(link)
    assert folded.dependency_bound_ns == played.dependency_bound_ns
    return folded


@settings(max_examples=20)
@given(steps(), st.sampled_from(HARDWARE))
def test_a_folded_step_over_devices_is_the_unfolded_one(step: Step, on: tuple[str, Cluster]) -> None:
    """With loops in the loop, several iterations under way, contended links, and ops beside the loop."""
    check(step, *on)


BACK_AND_FORTH = (("MatMul", 0), ("MatMul", 1))


@pytest.mark.parametrize("on", HARDWARE)
@pytest.mark.parametrize("parallel_iterations", [1, 10])
def test_transfers_are_repeated_with_their_iterations(on: tuple[str, Cluster], parallel_iterations: int) -> None:
    """A value that goes to another device in every iteration is copied as often, in a few events."""
    folded = check(Step(300, (8,), (BACK_AND_FORTH,), False, 0, parallel_iterations, ()), *on)
    assert len(folded.columns) < sum(event.runs for event in folded.events) / 3
    assert any(event.kind == "copy" and event.runs > 100 for event in folded.events)


def test_a_long_loop_over_devices_is_a_block() -> None:
    """100,000 iterations with a transfer to another device and back are a few events; loads are known of each."""
    step, (kind, hardware) = Step(100_000, (8,), (BACK_AND_FORTH,), False, 0, 10, ()), HARDWARE[1]
    timeline = simulate(cut(step.graph_def(kind), hardware, feeds=["x0"], fetches=["y0"]), hardware)
    assert len(timeline.columns) < 1500
    assert timeline.transferred_bytes > 2 * 100_000 * 8 * 8 * 4
    copies = [event for event in timeline.events if event.kind == "copy"]
    loads = [load for link in {copy.provenance for copy in copies} for load in timeline.link_loads(link)]
    carried = sum((end - start) * rate for start, end, rate in loads) / 10**9
    most = timeline.transferred_bytes + 2 * sum(copy.runs for copy in copies)  # ends are whole nanoseconds
    assert timeline.transferred_bytes <= carried <= most
