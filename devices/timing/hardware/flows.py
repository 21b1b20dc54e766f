"""Flows that share links max-min fair: when does each of them end?

A flow moves bytes over all links of its route at once, at one rate. The rates are max-min fair: no link carries more
than its capacity, and no flow could be faster without making a flow slower that is not faster than itself. So every
flow has a bottleneck: a full link of its route on which no flow is faster.

Progressive filling finds these rates (Bertsekas and Gallager, Data Networks, 6.5.2). The capacity that a link has
left, divided by its flows that have no rate yet, is the share it could give each of them. The least share of all is
the rate of the flows on that link; they are settled, what they take is taken from the other links of their routes,
and the rest is shared in the same way. On links a (10 bytes/s) and b (4 bytes/s):

    flow      route     first round            second round
    long      a, b      b gives 2, a gives 5:
    short     b         both run at 2
    lone      a                                a has 10 - 2 left: 8

Rates last until a flow starts to move bytes or ends; then they are found anew. Seconds and bytes are real numbers here.
The simulated clock, of whole nanoseconds, is in `network`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....errors import InvalidArgumentError
from ....graph.suggestions import suggestion

_Reals = NDArray[np.float64]
_Numbers = NDArray[np.intp]
_Flags = NDArray[np.bool_]


class Flow(NamedTuple):
    """`size_bytes` over the links named in `route`; the first byte moves `latency_s` after `start_s`."""

    route: Sequence[str]
    size_bytes: float
    start_s: float = 0.0
    latency_s: float = 0.0


def finish_times(links: Mapping[str, float], flows: Iterable[Flow]) -> list[float]:
    """The second in which the last byte of each flow arrives, in the order of `flows`.

    `links` maps names to capacities in bytes/s. Latency takes time and no capacity. A flow of 0 bytes, or over no link,
    ends at `start_s + latency_s`. A link that a route names twice counts once.

    Raises InvalidArgumentError for a route over an unknown link, a capacity that is not positive, a size or latency
    that is negative, and a number that is not finite.
    """
    flows = list(flows)
    _check(links, flows)
    ends = np.array([flow.start_s + flow.latency_s for flow in flows], np.float64)
    moving = [i for i, flow in enumerate(flows) if flow.size_bytes and len(flow.route)]
    if moving:
        number = {name: i for i, name in enumerate(links)}
        hops = [(i, number[name]) for i, f in enumerate(moving) for name in dict.fromkeys(flows[f].route)]
        sizes = np.array([flows[f].size_bytes for f in moving], np.float64)
        capacity = np.array(list(links.values()), np.float64)
        ends[moving] = _Links(capacity, np.array(hops, np.intp)).drain(sizes, ends[moving])
    return [float(end) for end in ends]


class _Links:
    """Capacities by link, and the hops of all routes as pairs (flow, link)."""

    def __init__(self, capacity: _Reals, hops: _Numbers) -> None:
        self.capacity = capacity
        self.hops = hops

    def drain(self, sizes: _Reals, starts: _Reals) -> _Reals:
        """When each flow has moved its bytes, if it moves the first one at `starts`."""
        left, ends = sizes.copy(), np.full(len(sizes), np.inf)
        arrivals = np.argsort(starts, kind="stable")
        active = np.zeros(len(sizes), np.bool_)
        now, next_arrival = 0.0, 0
        while next_arrival < len(arrivals) or active.any():
            if not active.any():
                now = starts[arrivals[next_arrival]]
            while next_arrival < len(arrivals) and starts[arrivals[next_arrival]] <= now:
                active[arrivals[next_arrival]] = True
                next_arrival += 1
            rates = self.fair_rates(active)
            needs = np.divide(left, rates, out=np.full(len(left), np.inf), where=active)
            until_arrival = starts[arrivals[next_arrival]] - now if next_arrival < len(arrivals) else np.inf
            step = min(needs.min(), until_arrival)
            # Compared as durations: what is left after a subtraction would be a rounding error, not 0 bytes.
            ended = needs <= step
            left[active] -= rates[active] * step
            now = now + step if step < until_arrival else starts[arrivals[next_arrival]]
            ends[ended] = now
            active &= ~ended
        return ends

    def fair_rates(self, active: _Flags) -> _Reals:
        """The max-min fair rate of each active flow; 0 for the others."""
        rates, left, share = np.zeros(len(active)), self.capacity.copy(), 0.0
        hops = self.hops[active[self.hops[:, 0]]]
        while len(hops):
            waiting = np.bincount(hops[:, 1], minlength=len(left))
            shares = np.divide(left, waiting, out=np.full(len(left), np.inf), where=waiting > 0)
            share = max(share, shares.min())  # shares never fall from round to round, but for rounding
            settled = np.zeros(len(active), np.bool_)
            settled[hops[shares[hops[:, 1]] <= share, 0]] = True
            rates[settled] = share
            leaves = settled[hops[:, 0]]
            left -= share * np.bincount(hops[leaves, 1], minlength=len(left))
            hops = hops[~leaves]
        return rates


def _check(links: Mapping[str, float], flows: Sequence[Flow]) -> None:
    for name, capacity in links.items():
        if not (isfinite(capacity) and capacity > 0):
            raise InvalidArgumentError(f"link {name!r}: {capacity} bytes/s must be a finite number above 0")
    for i, flow in enumerate(flows):
        for what, number in flow._asdict().items():
            if what == "route":
                _check_route(i, flow.route, links)
            elif not isfinite(number) or (number < 0 and what != "start_s"):
                least = "a finite number" if what == "start_s" else "a finite number of at least 0"
                raise InvalidArgumentError(f"flow {i}: {what} = {number} must be {least}")


def _check_route(i: int, route: Sequence[str], links: Mapping[str, float]) -> None:
    if isinstance(route, str):
        raise InvalidArgumentError(f"flow {i}: route {route!r} is one text; give a sequence of names of links")
    for name in route:
        if name not in links:
            raise InvalidArgumentError(f"flow {i}: there is no link {name!r}{suggestion(name, list(links))}")
