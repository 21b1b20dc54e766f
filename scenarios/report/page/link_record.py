"""The links of a step for its page: what each carried, for how long, and its rate over time."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from ....devices.timing import Timeline
from ....devices.timing.saved.archive import Column
from ....devices.topology import Link
from ....graph.arrays import Numbers
from .names import PageNames
from .page_data import Document, Missing, RunArrays
from .thinning import MOST_POINTS, mean_rates

MOST_LINKS = 200
"""links of a page; those that carried most are shown"""
Loads = tuple[Numbers, Numbers, Column]


def link_records(timeline: Timeline, names: PageNames, arrays: RunArrays) -> tuple[list[Document], list[Missing]]:
    """The links that carried most, in order of first use, and what is not there."""
    if timeline.cluster is None:
        return [], [Missing("links", "the file knows no links: it does not come from a simulation")]
    loads = {link: _loads(timeline, link) for link in timeline.links}
    if not loads:
        return [], [Missing("links", "no transfer took a link: the step has none, or they took no time")]
    carried = {link: _bytes(of) for link, of in loads.items()}
    shown = set(sorted(loads, key=lambda link: -carried[link])[:MOST_LINKS])
    records = [
        _record(timeline, names, arrays, number, link, loads[link], carried[link])
        for number, link in enumerate(link for link in loads if link in shown)
    ]
    return records, list(_left_out(len(loads) - len(shown), [loads[link] for link in loads if link in shown]))


def _loads(timeline: Timeline, link: Link) -> Loads:
    """The columns of the loads of a link."""
    rows = timeline.link_loads(link)
    begin, end, rate = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(begin, np.int64), np.array(end, np.int64), np.array(rate, np.float64)


def _bytes(loads: Loads) -> int:
    begin_ns, end_ns, rate = loads
    return round(float(((end_ns - begin_ns) * rate).sum()) / 1e9)


def _record(
    timeline: Timeline, names: PageNames, arrays: RunArrays, number: int, link: Link, loads: Loads, carried: int
) -> Document:
    begin_ns, end_ns, rate = loads
    at_ns, rates = _curve(*mean_rates(begin_ns, end_ns, rate, timeline.makespan_ns))
    return {
        "name": names.short(link.name),
        "source": names.short(link.source),
        "destination": names.short(link.destination),
        "model": link.model,
        "bandwidth": link.bandwidth_bytes_per_s,
        "bytes": carried,
        "share": int((end_ns - begin_ns).sum()) / timeline.makespan_ns,
        "peak_rate": float(rate.max(initial=0)),
        "at": arrays.add(f"link/{number}/at", at_ns),
        "rate": arrays.add(f"link/{number}/rate", rates),
    }


def _curve(begin_ns: Numbers, end_ns: Numbers, rate: Column) -> tuple[Numbers, Column]:
    """From which instants on which rate is in use; 0 between loads."""
    at_ns = np.unique(np.concatenate([[0], begin_ns, end_ns]))
    rates = np.zeros(len(at_ns))
    rates[np.searchsorted(at_ns, begin_ns)] = rate
    return at_ns, rates


def _left_out(others: int, shown: Collection[Loads]) -> Iterator[Missing]:
    """What the page says of links that are not shown, and of those that have more loads than are shown."""
    if others:
        yield Missing("links", f"{others:,} more links, none of which carried more, are left out")
    most = max(len(begin_ns) for begin_ns, _, _ in shown)
    if most > MOST_POINTS:
        yield Missing("links", f"of links with up to {most:,} loads the mean rates of some {MOST_POINTS // 2:,} spans")
