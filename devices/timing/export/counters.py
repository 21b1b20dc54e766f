"""The counters of a timeline: bytes in use in each memory, all and by category, and bytes/s on each link.

    Counter("device memory", device="/device:GPU:0", unit="bytes", at_ns=[0, 400, 900], values=[80, 120, 40])
    Counter("device memory: gradients", ...)
    Counter("/device:GPU:0 -> /device:GPU:1 (NVLink4)", device=None, unit="bytes/s", at_ns=[400, 650], values=[1e9, 0])

A value holds from its instant to the next one. Two values that follow each other differ. What is 0 all the time has no
counter; a timeline that knows no buffers has none of memory, one by hand none of links.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....errors import UnimplementedError
from ....graph.arrays import Numbers
from ..link_use import LinkLoad
from ..timeline import Timeline


class Counter(NamedTuple):
    """A value over time; `device` is the device to whose memory it belongs, None for a link."""

    name: str
    device: str | None
    unit: Literal["bytes", "bytes/s"]
    at_ns: Numbers
    values: Numbers | NDArray[np.float64]


def counters_of(timeline: Timeline) -> list[Counter]:
    """Memories in order of `peak_bytes`, the sum before its parts; then links in order of first use."""
    return [*_memories(timeline), *(_link(link.name, timeline.link_loads(link)) for link in timeline.links)]


def _memories(timeline: Timeline) -> Iterator[Counter]:
    if timeline.buffers is None:
        return
    for device, place in timeline.peak_bytes:
        try:
            curve = timeline.memory_over_time(device, place)
        except UnimplementedError:  # of more points than a trace should have: such a memory has no counter
            continue
        parts = {f": {category}": values for category, values in curve.by_category.items()}
        for part, values in ({"": curve.total} | parts).items():
            if values.any():
                changes = np.flatnonzero(np.diff(values, prepend=-1))
                yield Counter(f"{place} memory{part}", device, "bytes", curve.at_ns[changes], values[changes])


def _link(name: str, loads: list[LinkLoad]) -> Counter:
    """The rate of a link, which is 0 where it carries nothing."""
    at_ns: list[int] = []
    rates: list[float] = []

    def change(instant: int, rate: float) -> None:
        if at_ns and at_ns[-1] == instant:
            at_ns.pop(), rates.pop()
        if not rates or rates[-1] != rate:
            at_ns.append(instant)
            rates.append(rate)

    for start, end, rate in loads:
        change(start, rate)
        change(end, 0.0)
    return Counter(name, None, "bytes/s", np.array(at_ns, np.int64), np.array(rates, np.float64))
