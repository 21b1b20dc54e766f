"""The rows "report/...": the size of a report page, and the time to write it once the timeline exists.

nodes      a simulated step of drawn nodes on eight CPUs: memory, links and causes are found for the page
simulated  the same with so many events
drawn      events with drawn names and times, which pack worst; no memory, no cluster

A timeline is new for each round: what it finds out at the first question counts as time to write.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from partita.devices import cut, simulate
from partita.devices.timing import Timeline
from partita.scenarios import write_report

from .bench import Bench
from .drawn_steps import drawn_step
from .rows import Case, Figure, Measured, limit
from .sampling import Sample, interleave, now
from .workloads import drawn

_DEVICES = 8
_EVENTS_A_NODE = 3.3
"""of a graph over eight devices: nodes, and sends, copies and receives between devices"""


def simulated_step(nodes: int) -> Timeline:
    """A step of drawn nodes on eight CPUs."""
    workload = drawn(nodes, (64,), devices=_DEVICES)
    cluster = f"cpu:{_DEVICES}"
    parts = cut(workload.data, cluster, feeds=tuple(workload.feeds), fetches=workload.fetches, targets=workload.targets)
    return simulate(parts, cluster)


def _step(bench: Bench, kind: str) -> Callable[[], Timeline]:
    """How a timeline of that kind is made."""
    sizes = bench.sizes
    makers: dict[str, Callable[[], Timeline]] = {
        "nodes": partial(simulated_step, sizes.reported_nodes),
        "simulated": partial(simulated_step, round(sizes.reported_events[0] / _EVENTS_A_NODE)),
        "drawn": partial(drawn_step, sizes.reported_events[0]),
        "many": partial(drawn_step, sizes.reported_events[1]),
    }
    return makers[kind]


async def _write(bench: Bench, kind: str) -> Measured:
    make = _step(bench, kind)

    async def ours() -> Sample:
        timeline = make()
        before = now()
        write_report(timeline, bench.folder / "report.html")
        return now() - before

    taken = await interleave({"ours": ours}, bench.sizes.rounds_when_slow)
    return Measured(Figure.of(taken["ours"]))


async def _size(bench: Bench, kind: str) -> Measured:
    path = bench.folder / "report.html"
    write_report(_step(bench, kind)(), path)
    return Measured(Figure(path.stat().st_size))


def _write_case(key: str, kind: str, must_s: float, aim_s: float | None = None) -> Case:
    return Case(f"report/{key}, write", "", limit(must_s, aim_s), partial(_write, kind=kind))


def _size_case(key: str, kind: str, must_bytes: float, aim_bytes: float | None = None) -> Case:
    return Case(f"report/{key}, size", "", limit(must_bytes, aim_bytes), partial(_size, kind=kind), unit="B")


CASES = [
    _size_case("5,000 nodes", "nodes", 0.6e6, 0.4e6),
    _write_case("5,000 nodes", "nodes", 0.5, 0.2),
    _size_case("200,000 events", "drawn", 8e6, 5e6),
    _write_case("200,000 events", "drawn", 4, 2),
    _size_case("200,000 simulated", "simulated", 8e6, 5e6),
    _write_case("200,000 simulated", "simulated", 4, 2),
    _size_case("1,000,000 events", "many", 30e6),
    _write_case("1,000,000 events", "many", 5),
]
