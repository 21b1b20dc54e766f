"""A report on a simulated step: sizes of the partitions, transfers, a bar per stream, and what limits it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...devices import Cluster
from ...devices.timing import Timeline
from ...devices.units import format_bytes, format_ns
from ...graph import Graph
from .limits import limits
from .text import columns

_BAR = 50
_TRANSFERS = 12  # at most so many are listed


def step_report(parts: Mapping[str, Graph], timeline: Timeline, cluster: Cluster) -> Iterator[str]:
    """The whole report."""
    yield "partitions"
    yield from _partitions(parts, cluster)
    yield f"transfers, {format_bytes(timeline.transferred_bytes)} in all"
    yield from _transfers(parts, timeline, cluster)
    yield f"simulated step time {format_ns(timeline.makespan_ns)}, {timeline.basis}"
    yield from (
        f"  {line}" for line in cluster.short_names.shorten(timeline.render(_BAR, curves=False)).splitlines()[1:]
    )
    yield "what limits the step"
    for what, ns in limits(timeline, cluster)[:5]:
        yield f"  {100 * ns / timeline.makespan_ns:5.1f} %  {what}"


def device_bars(timeline: Timeline, cluster: Cluster, device: str, streams: Sequence[str]) -> Iterator[str]:
    """The bars of these streams of one device, of which the name is short; a stream that was never busy has none."""
    is_chosen = False
    for line in cluster.short_names.shorten(timeline.render(_BAR, curves=False)).splitlines():
        if line.startswith("  "):
            if is_chosen and line.endswith(tuple(f" %  {stream}" for stream in streams)):
                yield f"  {line}"
        else:
            is_chosen = line.startswith(f"{device}  ")


def _partitions(parts: Mapping[str, Graph], cluster: Cluster) -> Iterator[str]:
    rows = [["device", "model", "nodes", "sends", "receives"]]
    for name, part in parts.items():
        nodes = list(part.op_nodes())
        counts = len(nodes), sum(node.is_send for node in nodes), sum(node.is_recv for node in nodes)
        device = cluster.find(name)
        rows.append([cluster.short_names.shorten(device.name), device.spec.name, *map(str, counts)])
    return columns(rows, left=2)


def _transfers(parts: Mapping[str, Graph], timeline: Timeline, cluster: Cluster) -> Iterator[str]:
    """A row per copy in order of start, with the time until it has arrived."""
    sends = {
        (node.attr("send_device"), node.attr("tensor_name")): (node.attr("recv_device"), node.input_edge(0).src.name)
        for part in parts.values()
        for node in part.op_nodes()
        if node.is_send
    }
    arrivals = {event.cause: event.end_ns for event in timeline.events if event.kind == "recv"}
    copies = [(event, arrivals[i]) for i, event in enumerate(timeline.events) if event.kind == "copy"]
    if not copies:
        yield "  none"
        return
    rows = [["from", "to", "tensor", "size", "starts", "takes"]]
    for event, arrival_ns in copies[:_TRANSFERS]:
        to, tensor = sends[event.device.encode(), event.node.encode()]
        times = format_ns(event.start_ns), format_ns(arrival_ns - event.start_ns)
        ends = map(cluster.short_names.shorten, (event.device, to.decode()))
        rows.append([*ends, tensor, format_bytes(event.bytes), *times])
    yield from columns(rows, left=3)
    if len(copies) > _TRANSFERS:
        yield f"  ... and {len(copies) - _TRANSFERS} more"
