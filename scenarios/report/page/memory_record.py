"""The memory of a step for its page: of each memory the curve by category, its peak, and the largest tensors in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import inf

from ....devices.timing import Timeline
from ....devices.timing.memory.curve import MemoryCurve
from ....devices.timing.memory.kinds import MemoryPlace
from ....errors import PartitaError
from .names import PageNames
from .page_data import Document, Missing, RunArrays
from .thinning import MOST_POINTS, kept_points

MOST_MEMORIES = 64
"""curves of a page; the fullest memories have one"""
_TENSORS = 20


def memory_records(timeline: Timeline, names: PageNames, arrays: RunArrays) -> tuple[list[Document], list[Missing]]:
    """The fullest memories that hold anything, in the order of devices, and what is not there."""
    used = [memory for memory, size in timeline.peak_bytes.items() if size]
    if not used:
        return [], [Missing("memory", _why_none(timeline))]
    shown = set(sorted(used, key=lambda memory: _emptiness(timeline, names, memory))[:MOST_MEMORIES])
    try:
        curves = {memory: timeline.memory_over_time(*memory) for memory in used if memory in shown}
    except PartitaError as error:  # only the peaks are known
        return [], [Missing("memory", error.message)]
    records = [_record(timeline, names, arrays, number, *of) for number, of in enumerate(curves.items())]
    return records, list(_left_out(len(used), curves.values()))


def _left_out(memories: int, curves: Collection[MemoryCurve]) -> Iterator[Missing]:
    """What the page says of memories without a curve, and of curves that have more points than are shown."""
    if memories > len(curves):
        yield Missing("memory", f"{memories - len(curves):,} more memories, none of them fuller, have no curve here")
    most = max(len(curve.at_ns) for curve in curves)
    if most > MOST_POINTS:
        text = f"curves of up to {most:,} points show the least and the most of each of some {MOST_POINTS // 2:,} spans"
        yield Missing("memory", f"{text}; peaks are exact")


def _why_none(timeline: Timeline) -> str:
    """Why a timeline has no memory in use."""
    if timeline.peak_bytes:
        return "nothing is held in memory for any time"
    try:
        timeline.memory(timeline.devices[0])
    except PartitaError as error:
        return error.message
    return "nothing is held in memory for any time"


def _emptiness(timeline: Timeline, names: PageNames, memory: tuple[str, MemoryPlace]) -> tuple[float, int]:
    size, limit = timeline.peak_bytes[memory], names.memory_bytes(memory)
    return -size / (limit or inf), -size


def _record(
    timeline: Timeline,
    names: PageNames,
    arrays: RunArrays,
    number: int,
    memory: tuple[str, MemoryPlace],
    curve: MemoryCurve,
) -> Document:
    peak = timeline.memory(*memory)
    kept = kept_points(curve.at_ns, curve.total, timeline.makespan_ns)
    at_peak = int(curve.total.argmax())
    categories = [
        {
            "name": name,
            "array": arrays.add(f"memory/{number}/{name}", column[kept]),
            "at_peak_bytes": int(column[at_peak]),
            "most_bytes": int(column.max()),
        }
        for name, column in curve.by_category.items()
        if column.any()
    ]
    return {
        "device": memory[0],
        "short": names.short(memory[0]),
        "place": memory[1],
        "limit_bytes": peak.limit_bytes,
        "peak_bytes": peak.peak_bytes,
        "at_ns": peak.at_ns,
        "at": arrays.add(f"memory/{number}/at", curve.at_ns[kept]),
        "categories": categories,
        "tensors": [tensor._asdict() for tensor in peak.tensors[:_TENSORS]],
        "tensor_count": len(peak.tensors),
    }
