"""A timeline for notebooks: the devices, the picture, ops, and where the time goes by name scope of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...graph.display.html import Html, details, lines, notebook_output, preformatted, table
from ...graph.display.scopes import folded
from ..units import format_bytes, format_ns
from .events import OCCUPYING

if TYPE_CHECKING:
    from .pictured import PicturedStep

_WIDTH, _DRAWN = 60, 8  # of the picture: characters, and devices
_DEVICES = 40  # in the table
_NODES_BYTES = 100_000


def timeline_html(timeline: PicturedStep) -> str:
    """What `_repr_html_` of a timeline returns."""
    short = str if timeline.cluster is None else timeline.cluster.short_names.shorten
    picture = short(timeline.render(_WIDTH, most_devices=_DRAWN))
    return notebook_output(
        f"Timeline of {format_ns(timeline.makespan_ns)}, {len(timeline.columns):,} events ({timeline.basis})",
        *((lines(map(short, timeline.shortages)),) if timeline.peak_bytes else ()),
        preformatted(picture),
        details(f"{len(timeline.devices):,} devices", _devices(timeline, short)),
        details("time by op", _ops(timeline)),
        details("time by node", _nodes(timeline)),
    )


def _devices(timeline: PicturedStep, short: Callable[[str], str]) -> Html:
    heads = ["device", "model", "busy", "compute", "exposed communication", "hidden communication", "peak memory"]
    rows = [
        [
            short(device),
            timeline.models.get(device, ""),
            f"{100 * timeline.busy_fraction(device):.1f} %",
            format_ns(timeline.busy_ns(device)),
            *map(format_ns, timeline.communication(device)),
            format_bytes(timeline.peak_bytes[device, "device"]) if (device, "device") in timeline.peak_bytes else "",
        ]
        for device in timeline.devices[:_DEVICES]
    ]
    others = len(timeline.devices) - len(rows)
    return Html(table(heads, rows, left=2) + (lines([f"... and {others:,} more"]) if others else ""))


def _ops(timeline: PicturedStep) -> Html:
    rows = [
        [total.op, f"{total.runs:,}", format_ns(total.time_ns), f"{total.flops:,}", format_bytes(total.bytes)]
        for total in timeline.totals_by_op()
    ]
    return table(["op", "runs", "time", "operations", "bytes"], rows)


def _nodes(timeline: PicturedStep) -> Html:
    """The time of nodes, those with the most first, and of their scopes; transfers by the name of their tensor."""
    columns = timeline.columns
    chosen = columns.of_kind(*OCCUPYING)
    numbers, places = np.unique(columns.node.numbers[chosen], return_inverse=True)
    spent = np.zeros(len(numbers), np.float64)  # exact enough for a figure of five digits, and never too small
    np.add.at(spent, places, (columns.duration_ns * columns.runs)[chosen].astype(np.float64))
    order = np.argsort(-spent, kind="stable")
    names = [columns.node.texts[number] for number in numbers[order].tolist()]
    times = spent[order]

    def line(number: int, label: str) -> str:
        return f"{label}  {format_ns(round(times[number]))}"

    def total(of: Sequence[int]) -> str:
        return f"{format_ns(round(times[list(of)].sum()))} in {len(of):,} nodes"

    return folded(names, line, total, _NODES_BYTES)
