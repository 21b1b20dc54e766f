"""The rows "file/...": timelines in `.timeline` files, by 200,000 events.

simulated   a drawn graph of eight CPUs, with its memory, links and cluster
drawn       events whose names, streams and times follow no rule, which is about the most that they can weigh
"""

from __future__ import annotations

from functools import cache

import numpy as np

from partita.devices import Timeline, cut, simulate
from partita.devices.timing.events import KINDS, Events, TextColumn

from .bench import Bench
from .rows import Case, Figure, Measured, limit
from .sampling import Sample, interleave, now
from .workloads import drawn

_EVENTS = 200_000
_DEVICES = 8


@cache
def _simulated(nodes: int) -> Timeline:
    workload = drawn(nodes, (64,), devices=_DEVICES)
    devices = f"cpu:{_DEVICES}"
    return simulate(cut(workload.data, devices, feeds=tuple(workload.feeds), fetches=workload.fetches), devices)


@cache
def _drawn(count: int) -> Timeline:
    draw = np.random.default_rng(0)

    def column(texts: list[str]) -> TextColumn:
        return TextColumn(draw.integers(0, len(texts), count), lambda: texts)

    start_ns = np.sort(draw.integers(0, 10**9, count))  # in the order in which they happen, as in a log
    duration_ns = draw.integers(1, 10**5, count)
    names = [f"model/layer_{layer}/mlp/{number:x}" for number, layer in enumerate(draw.integers(0, 48, count).tolist())]
    bounds = duration_ns * 9 // 10, duration_ns * 11 // 10
    return Timeline(
        Events(
            device=column([f"/job:localhost/replica:0/task:0/device:GPU:{number}" for number in range(_DEVICES)]),
            stream=column(["compute", "launch", "communication:1"]),
            node=column(names),
            op=column([f"Op{number}" for number in range(40)]),
            kind=draw.integers(0, len(KINDS), count).astype(np.uint8),
            start_ns=start_ns,
            end_ns=start_ns + duration_ns,
            bytes=draw.choice(draw.integers(0, 2**30, 50), count),
            flops=draw.choice(draw.integers(0, 2**40, 50), count),
            provenance=column(["fitted", "roofline", "free"]),
            cause=np.maximum(np.arange(count) - draw.integers(1, 50, count), -1),
            iteration=TextColumn(np.zeros(count, np.int64), lambda: [""]),
            runs=np.ones(count, np.int64),
            make_bounds=lambda: bounds,
        )
    )


def _timeline(bench: Bench, is_drawn: bool) -> Timeline:
    return _drawn(bench.sizes.file_events) if is_drawn else _simulated(bench.sizes.graph_nodes)


def _case(name: str, promise: tuple[float, float], *, is_drawn: bool, reads: bool) -> Case:
    async def measure(bench: Bench) -> Measured:
        timeline, path = _timeline(bench, is_drawn), bench.folder / "step.timeline"
        assert timeline.dependency_bound_ns >= 0  # found out once, before the clock runs
        timeline.save(path)

        async def run() -> Sample:
            before = now()
            if reads:
                Timeline.load(path)
            else:
                timeline.save(path)
            return now() - before

        taken = await interleave({"ours": run}, bench.sizes.rounds)
        sample = taken["ours"].per(len(timeline.columns))
        return Measured(Figure(sample.wall_s * _EVENTS, sample.cpu_s * _EVENTS))

    return Case(name, "", limit(*promise), measure)


async def _size(bench: Bench) -> Measured:
    timeline, path = _timeline(bench, True), bench.folder / "step.timeline"
    timeline.save(path)
    return Measured(Figure(path.stat().st_size * _EVENTS / len(timeline.columns)))


CASES = [
    _case("file/simulated, write", (2, 1), is_drawn=False, reads=False),
    _case("file/simulated, read", (1, 0.5), is_drawn=False, reads=True),
    _case("file/drawn, write", (2, 1), is_drawn=True, reads=False),
    _case("file/drawn, read", (1, 0.5), is_drawn=True, reads=True),
    Case("file/drawn, size", "", limit(4e6), _size, unit="B"),
]
