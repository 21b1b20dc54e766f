"""What reports say of the memory of a simulated step: where its bytes are, what does not fit, what would make it fit.

does not fit in memory: task 0 gpu:0 needs 92.1 GiB of device memory and has 80 GiB; the largest tensors are ...
the smallest change that fits: recompute=full (61.3 GiB by the closed form)
memory of task 0 gpu:0 at its peak: optimizer 31.5 GiB, activations 27.0 GiB, gradients 10.5 GiB, ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from ...devices import Cluster
from ...devices.timing import Timeline
from ...devices.timing.memory.kinds import MemoryPlace
from ...devices.units import format_bytes

_LISTED = 4  # memories that are too small, one a line


def shortage_lines(timeline: Timeline, cluster: Cluster, advice: Callable[[int], str] | None = None) -> Iterator[str]:
    """A line for each memory that is too small, of many for the first, and what would make the step fit."""
    shortages = timeline.shortages
    for shortage in shortages[:_LISTED]:
        yield f"does not fit in memory: {cluster.short_names.shorten(shortage)}"
    if len(shortages) > _LISTED:
        yield f"... nor in {len(shortages) - _LISTED} more memories"
    if shortages and advice is not None:
        limits = (timeline.memory(*memory).limit_bytes for memory in timeline.too_small)
        yield from filter(None, [advice(min(limit for limit in limits if limit is not None))])


def fullest_memory(timeline: Timeline, cluster: Cluster) -> str:
    """What the bytes of the fullest memory are at its peak; "" for a step without memory."""
    peaks = {memory: used for memory, used in timeline.peak_bytes.items() if used and memory[1] == "device"}
    if not peaks:
        return ""

    def fullness(memory: tuple[str, MemoryPlace]) -> tuple[float, int]:
        return peaks[memory] / (cluster.find(memory[0]).spec.memory_bytes or inf), peaks[memory]

    device, place = max(peaks, key=fullness)
    sums = timeline.memory(device, place).by_category
    parts = sorted((-size, category) for category, size in sums.items() if size)
    text = ", ".join(f"{category} {format_bytes(-size)}" for size, category in parts)
    return f"memory of {cluster.short_names.shorten(device)} at its peak: {text}"
