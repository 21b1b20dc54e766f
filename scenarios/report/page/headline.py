"""The few figures at the top of a page: how long, what limits it, whether it fits, how sure that is.

step time          54.502 us     80 % of steps: 52.5 us to 57.5 us
limited by         memory bandwidth of gpu:0, 61 %
fullest memory     92.10 GiB     gpu:0 has 80.00 GiB: the step does not fit        error
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from ....devices.timing import BASIS, Timeline
from ....devices.timing.memory.kinds import MemoryPlace
from ....devices.units import format_bytes, format_ns
from .names import PageNames
from .page_data import Document


def headline(timeline: Timeline, run: Document) -> list[Document]:
    """The figures of one run, which has that document."""
    names = PageNames(timeline)
    return [*_time(run), *_limit(run), *_memory(timeline, names), *_busiest(run), *_sources(timeline)]


def compared_headline(first: Timeline, second: Timeline, name: str) -> Document:
    """How the first step compares with the second, which has that name."""
    change = first.makespan_ns - second.makespan_ns
    share = f"{100 * abs(change) / second.makespan_ns:.1f} %"
    text = "as long" if not change else f"{share} {'longer' if change > 0 else 'shorter'}"
    return _figure(f"than {name}" if change else f"as {name}", text, f"{name}: {format_ns(second.makespan_ns)}")


def _figure(label: str, text: str, note: str = "", state: str = "") -> Document:
    return {"label": label, "text": text, "note": note, "state": state}


def _time(run: Document) -> Iterator[Document]:
    bounds = run["interval"]
    within = f"80 % of steps: {format_ns(bounds[0])} to {format_ns(bounds[1])}" if bounds else ""
    yield _figure("step time", format_ns(run["makespan_ns"]), within)


def _limit(run: Document) -> Iterator[Document]:
    """What most of the critical path is."""
    for limit in run["limits"][:1]:
        yield _figure("limited by", limit["what"], f"{100 * limit['ns'] / run['makespan_ns']:.1f} % of the step")


def _memory(timeline: Timeline, names: PageNames) -> Iterator[Document]:
    """The fullest memory, and whether it is large enough."""
    used = {memory: size for memory, size in timeline.peak_bytes.items() if size}
    if not used:
        return

    def fullness(memory: tuple[str, MemoryPlace]) -> tuple[float, int]:
        return used[memory] / (names.memory_bytes(memory) or inf), used[memory]

    device, place = max(used, key=fullness)
    size, limit = used[device, place], names.memory_bytes((device, place))
    where = names.short(device) if place == "device" else f"{names.short(device)}, in host memory"
    if limit is None:
        yield _figure("fullest memory", format_bytes(size), where)
    elif size > limit:
        note = f"{where} has {format_bytes(limit)}: the step does not fit"
        yield _figure("fullest memory", format_bytes(size), note, "error")
    else:
        yield _figure("fullest memory", format_bytes(size), f"of {format_bytes(limit)}, {where}")


def _busiest(run: Document) -> Iterator[Document]:
    """The device that computes most."""
    devices = run["devices"]
    busiest = max(devices, key=lambda device: device["busy"])
    others = f"; {len(devices):,} devices have events" if len(devices) > 1 else ""
    note = f"computes {100 * busiest['busy']:.1f} % of the time{others}"
    yield _figure("busiest device", busiest["short"], note)


def _sources(timeline: Timeline) -> Iterator[Document]:
    """What the times of ops rest on."""
    runs = ", ".join(f"{source} {runs:,}" for source, runs in timeline.sources.items())
    state = "warning" if timeline.basis == BASIS else ""
    yield _figure("op times", timeline.basis, f"runs by source: {runs}" if runs else "", state)
