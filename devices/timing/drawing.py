"""A timeline as text: a bar for each stream, then curves of memory and links below, all on one axis of time.

    makespan 54.502 us, 33 events
    gpu:0  A100-80GB, peak memory 76.38 KiB
      |      ▒████▓             |  35.8 %  compute
    memory of gpu:0  peak 76.38 KiB of 80.00 GiB
      |▁▁▁▁▁▁▃▅▇█▇▅▅▂▂▂▂▂▂▂▂▂▂▂▂|   0.0 %  full
    host -> gpu:0 (PCIe4 x16)  at most 31.0 of 31.0 GB/s
      |    ▇▇▃                  |  11.2 %  in use

A bar has how much of its part of the step a stream was occupied. The curve of a memory has the most bytes in use in
that part, by the peak; that of a link its mean rate by what the link can carry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np

from ...errors import UnimplementedError
from ...graph.arrays import Floats
from ..units import format_bytes, format_ns
from .events import OCCUPYING
from .memory.use import limits_of

if TYPE_CHECKING:
    from ..topology import Link
    from .link_use import LinkLoad
    from .memory.kinds import MemoryPlace
    from .pictured import PicturedStep

_SHADES, _HEIGHTS = " ░▒▓█", " ▁▂▃▄▅▆▇█"
_LINKS = 4  # curves of the busiest


def drawn(
    timeline: PicturedStep, width: int, title: Callable[[str], str], *, curves: bool, most_devices: int | None
) -> Iterator[str]:
    """The lines of the picture, with `width` characters for the makespan; `title` is that of the bars of a device."""
    yield f"makespan {format_ns(timeline.makespan_ns)}, {len(timeline.columns)} events"
    devices = timeline.devices[:most_devices]
    yield from _bars(timeline, devices, width, title)
    if len(devices) < len(timeline.devices):
        yield f"... and {len(timeline.devices) - len(devices):,} more devices"
    if curves:
        yield from _memory(timeline, width)
        yield from _links(timeline, width)
    yield from (f"note: {text}" for text in timeline.warnings)


def _bars(timeline: PicturedStep, devices: Sequence[str], width: int, title: Callable[[str], str]) -> Iterator[str]:
    columns, span = timeline.columns, timeline.makespan_ns
    occupying = columns.of_kind(*OCCUPYING)
    names = {stream for device in devices for stream in timeline.streams(device)}
    on_stream = {name: columns.stream.is_text(name) & occupying for name in names}
    edges = np.arange(width + 1, dtype=np.float64) * span / width
    for device in devices:
        yield title(device)
        of_device = columns.device.is_text(device)
        for stream in timeline.streams(device):
            if timeline.busy_ns(device, stream):
                covered = columns.covered_ns(of_device & on_stream[stream], edges)
                bar = _picture(np.diff(covered) * width / span, _SHADES)
                yield _row(bar, timeline.busy_fraction(device, stream), stream)


def _row(picture: str, share: float, text: str) -> str:
    return f"  |{picture}| {100 * share:5.1f} %  {text}"


def _picture(shares: Floats, steps: str) -> str:
    """A character for each share of 1: the first of `steps` for nothing alone, the last for all."""
    most = len(steps) - 1
    return "".join(steps[min(ceil(most * share - 1e-9), most)] for share in shares.tolist())


def fullest_memory(timeline: PicturedStep) -> tuple[str, MemoryPlace] | None:
    """The memory with the largest share of its bytes in use at its peak; None where buffers or sizes are unknown."""
    limits = {} if timeline.cluster is None else limits_of(timeline.cluster)
    peaks = {memory: used for memory, used in timeline.peak_bytes.items() if used and memory in limits}
    return max(peaks, key=lambda memory: (peaks[memory] / (limits[memory] or inf), peaks[memory]), default=None)


def _memory(timeline: PicturedStep, width: int) -> Iterator[str]:
    """The curve of the fullest memory."""
    memory = fullest_memory(timeline)
    if memory is None:
        return
    try:
        curve, peak = timeline.memory_over_time(*memory), timeline.memory(*memory)
    except UnimplementedError:  # of more points than anybody looks at
        return
    most, total = np.zeros(width), curve.total
    np.maximum.at(most, np.minimum(curve.at_ns * width // timeline.makespan_ns, width - 1), total)
    starts = np.arange(width, dtype=np.float64) * timeline.makespan_ns / width
    most = np.maximum(most, total[np.searchsorted(curve.at_ns, starts, "right") - 1])
    device, place = memory
    of = f" of {format_bytes(peak.limit_bytes)}" if peak.limit_bytes else ""
    yield f"memory of {device}{' in its host' if place == 'host' else ''}  peak {format_bytes(peak.peak_bytes)}{of}"
    share = peak.peak_bytes / peak.limit_bytes if peak.limit_bytes else 1.0
    yield _row(_picture(most / peak.peak_bytes, _HEIGHTS), share, "full")


def _links(timeline: PicturedStep, width: int) -> Iterator[str]:
    """The curves of the links that carried most of what they could, the busiest first."""
    used = [(_carried_bytes(loads) / link.bandwidth_bytes_per_s, link, loads) for link, loads in _loads(timeline)]
    busiest = sorted(used, key=lambda row: (-row[0], row[1].name))[:_LINKS]
    if len(used) > len(busiest):
        yield f"the busiest {_LINKS} of {len(used):,} links"
    edges = np.arange(width + 1, dtype=np.float64) * timeline.makespan_ns / width
    for _, link, loads in busiest:
        start_ns, end_ns, rate = (np.array(column, np.float64) for column in zip(*loads, strict=True))
        carried = np.concatenate([[0], np.cumsum((end_ns - start_ns) * rate)])
        times = np.stack([start_ns, end_ns], axis=1).reshape(-1)
        by_time = np.interp(edges, times, np.stack([carried[:-1], carried[1:]], axis=1).reshape(-1))
        means = np.diff(by_time) * width / timeline.makespan_ns / link.bandwidth_bytes_per_s
        busy = float((end_ns - start_ns).sum()) / timeline.makespan_ns
        yield f"{link.name}  at most {rate.max() / 1e9:,.1f} of {link.bandwidth_bytes_per_s / 1e9:,.1f} GB/s"
        yield _row(_picture(means, _HEIGHTS), busy, "in use")


def _loads(timeline: PicturedStep) -> Iterator[tuple[Link, list[LinkLoad]]]:
    return ((link, timeline.link_loads(link)) for link in timeline.links)


def _carried_bytes(loads: Sequence[LinkLoad]) -> float:
    return sum((end_ns - start_ns) * rate for start_ns, end_ns, rate in loads)
