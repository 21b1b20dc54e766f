"""Timelines whose names and times are drawn: nothing in them repeats, as little as a page can be packed."""

from __future__ import annotations

import numpy as np

from partita.devices.timing import Timeline
from partita.devices.timing.events import KINDS, Events, TextColumn

_OPS = 40
_SHAPES = 2_000
_SOURCES = ("fitted", "roofline", "transferred")


def drawn_step(events: int, seed: int = 0, devices: int = 16) -> Timeline:
    """A timeline of so many events on GPUs that are busy most of the time; sizes are those of 2,000 drawn shapes.

    Names have six drawn digits each, times are drawn to the nanosecond, and a cause is one of the 50 events before.
    """
    random = np.random.default_rng(seed)
    device = np.sort(random.integers(0, devices, events))
    took_ns, idle_ns = random.integers(500, 50_000, events), random.integers(0, 2_000, events)
    passed_ns = np.cumsum(took_ns + idle_ns)
    before_ns = np.concatenate([[0], passed_ns])[np.searchsorted(device, device)]
    end_ns = passed_ns - before_ns
    order = np.argsort(end_ns - took_ns, kind="stable")
    took_ns, end_ns = took_ns[order], end_ns[order]
    sizes = random.integers(1 << 10, 1 << 30, _SHAPES)
    shape, row = random.integers(0, _SHAPES, events), np.arange(events)
    digits = (row * 7919 % 2**24).tolist()
    names = [f"model/layer_{n % 96}/block_{n % 7}/op_{number:06x}" for n, number in enumerate(digits)]
    return Timeline(
        Events(
            device=TextColumn(
                device[order], lambda: [f"/job:w/replica:0/task:0/device:GPU:{n}" for n in range(devices)]
            ),
            stream=TextColumn(np.zeros(events, np.int64), lambda: ["compute"]),
            node=TextColumn(random.permutation(events), lambda: names),
            op=TextColumn(random.integers(0, _OPS, events), lambda: [f"Op{n}" for n in range(_OPS)]),
            kind=np.full(events, KINDS.index("compute"), np.uint8),
            start_ns=end_ns - took_ns,
            end_ns=end_ns,
            bytes=sizes[shape],
            flops=sizes[shape] * 128,
            provenance=TextColumn(random.integers(0, len(_SOURCES), events), lambda: _SOURCES),
            cause=np.maximum(row - random.integers(1, 50, events), -1),
            iteration=TextColumn(np.zeros(events, np.int64), lambda: [""]),
            runs=np.ones(events, np.int64),
            make_bounds=lambda: (took_ns * 9 // 10, took_ns * 12 // 10),
        )
    )
