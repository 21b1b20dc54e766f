"""What reports say of the memory of a simulated step: where its bytes are, what does not fit, what would make it fit.

simulated step time: 1.204 ms (...): does not fit: task 0 gpu:0 needs 92.10 GiB of 80.00 GiB
does not fit in memory: task 0 gpu:0 needs 92.1 GiB of device memory and has 80 GiB; the largest tensors are ...
the smallest change that fits: recompute=full (61.3 GiB by the closed form)
memory of task 0 gpu:0 at its peak: optimizer 31.5 GiB, activations 27.0 GiB, gradients 10.5 GiB, ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from ...devices import Cluster
from ...devices.timing import Timeline
from ...devices.timing.drawing import fullest_memory
from ...devices.timing.memory.use import limits_of
from ...devices.units import format_bytes


def shortage_headline(timeline: Timeline, cluster: Cluster) -> str:
    """What ends the first line on a step: the memory that is too small by the largest factor; "" for a step that fits.

    ": does not fit: gpu:0 needs 92.10 GiB of 80.00 GiB, and 7 more memories are too small"
    """
    peaks = {memory: timeline.peak_bytes[memory] for memory in timeline.too_small}
    limits = limits_of(cluster)
    if not peaks:
        return ""
    worst = max(peaks, key=lambda memory: peaks[memory] / (limits[memory] or inf))
    device, place = worst
    where = f"{cluster.short_names.shorten(device)}{' in its host' if place == 'host' else ''}"
    others = f", and {len(peaks) - 1:,} more {'memories are' if len(peaks) > 2 else 'memory is'} too small"
    needs = f"{where} needs {format_bytes(peaks[worst])} of {format_bytes(limits[worst] or 0)}"
    return f": does not fit: {needs}{others if len(peaks) > 1 else ''}"


def shortage_lines(
    timeline: Timeline, cluster: Cluster, advice: Callable[[int], str] | None = None, most: int | None = None
) -> Iterator[str]:
    """A line for each memory that is too small, of `most` for the first, and what would make the step fit."""
    shortages = timeline.shortages
    for shortage in shortages[:most]:
        yield f"does not fit in memory: {cluster.short_names.shorten(shortage)}"
    if most is not None and len(shortages) > most:
        yield f"... nor in {len(shortages) - most:,} more memories"
    if shortages and advice is not None:
        sizes = (timeline.memory(*memory).limit_bytes for memory in timeline.too_small)
        yield from filter(None, [advice(min(size for size in sizes if size is not None))])


def memory_line(timeline: Timeline, cluster: Cluster) -> str:
    """What the bytes of the fullest memory are at its peak; "" for a step without memory."""
    fullest = fullest_memory(timeline)
    if fullest is None:
        return ""
    device, place = fullest
    sums = timeline.memory(device, place).by_category
    parts = sorted((-size, category) for category, size in sums.items() if size)
    text = ", ".join(f"{category} {format_bytes(-size)}" for size, category in parts)
    where = f"{cluster.short_names.shorten(device)}{' in its host' if place == 'host' else ''}"
    return f"memory of {where} at its peak: {text}"
