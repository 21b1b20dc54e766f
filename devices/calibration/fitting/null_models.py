"""Null models: what anybody could say with a few numbers. A fit that is not better than these is worth nothing.

- `roofline_3`: floor + the longer of operations / rate and bytes / bandwidth, three numbers fitted in log time.
- `log_log`: log time interpolated in log size along a measured curve, straight on beyond its ends.
- `datasheet`: nothing fitted: peaks and bandwidths as catalogued (`datasheet_ns` of products; of collectives here).

Of a curve with 10 us at 1 kB and 40 us at 16 kB `log_log` says 20 us at 4 kB: half way in both logarithms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from ....errors import InvalidArgumentError, NotFoundError
from ....graph.arrays import Floats
from ...catalog import link_spec
from ...link import LinkSpec
from ...spec import DeviceSpec
from ...timing.collectives.kinds import bus_share

_SHARES = (0.9, 0.6, 0.3)  # of the best rate and bandwidth seen, where the search begins


class Roofline3(NamedTuple):
    """Three fitted numbers of a device, and the bounds of four of five of its errors in log time."""

    floor_ns: float
    rate_flops_per_s: float
    bandwidth_bytes_per_s: float
    low: float
    high: float

    def time_ns(self, flops: Floats, size_bytes: Floats) -> Floats:
        """Times of ops by their operations and bytes."""
        return _roofline(np.log(np.array(self[:3])), flops, size_bytes)


def _roofline(logs: Floats, flops: Floats, size_bytes: Floats) -> Floats:
    floor, rate, bandwidth = np.exp(logs)
    return np.asarray(floor + 1e9 * np.maximum(flops / rate, size_bytes / bandwidth), dtype=np.float64)


def fit_roofline_3(flops: Floats, size_bytes: Floats, time_ns: Floats) -> Roofline3:
    """The three numbers with the least robust error of log time; InvalidArgumentError for fewer than three rows."""
    if len(time_ns) < 3:
        raise InvalidArgumentError(f"{len(time_ns)} times are too few for the 3 numbers of a roofline; measure more")
    measured = np.log(time_ns)
    best = np.array([time_ns.min(), (1e9 * flops / time_ns).max(), (1e9 * size_bytes / time_ns).max()])

    def errors(logs: Floats) -> Floats:
        return np.asarray(np.log(_roofline(logs, flops, size_bytes)) - measured, dtype=np.float64)

    fits = [least_squares(errors, np.log(best * share), loss="soft_l1", f_scale=0.1) for share in _SHARES]
    logs = min(fits, key=lambda fit: float(fit.cost)).x
    low, high = np.quantile(-errors(logs), (0.1, 0.9))
    floor, rate, bandwidth = np.exp(logs)
    return Roofline3(float(floor), float(rate), float(bandwidth), float(low), float(high))


def log_log(sizes: Floats, times: Floats, wanted: Floats) -> Floats:
    """Times at the `wanted` sizes from a curve of one time or more at positive sizes, in any order.

    Several times of one size count as their geometric mean.
    """
    x, group = np.unique(np.log(sizes), return_inverse=True)
    y = np.bincount(group, np.log(times)) / np.bincount(group)
    at = np.log(wanted)
    if len(x) == 1:
        return np.full(len(at), np.exp(y[0]))
    left = np.clip(np.searchsorted(x, at) - 1, 0, len(x) - 2)
    share = (at - x[left]) / (x[left + 1] - x[left])
    return np.asarray(np.exp(y[left] + share * (y[left + 1] - y[left])), dtype=np.float64)


def nearest_ranks(ranks: int, known: list[int]) -> int:
    """The measured number of ranks with the nearest logarithm; the larger one of two."""
    return min(sorted(known, reverse=True), key=lambda each: abs(np.log2(each / ranks)))


def datasheet_collective_ns(kind: str, ranks: int, size_bytes: Floats, spec: DeviceSpec) -> Floats:
    """A ring over the datasheet's link: a latency a step, and the bytes at full bandwidth; NaN without a link."""
    link = link_between(spec)
    if link is None:
        return np.full(len(size_bytes), np.nan)
    steps = {"all_reduce": 2 * (ranks - 1), "send_recv": 1}.get(kind, ranks - 1)
    moving_ns = 1e9 * size_bytes * bus_share(kind, ranks) / link.bandwidth_bytes_per_s
    return np.asarray(steps * link.latency_ns + moving_ns, dtype=np.float64)


def link_between(spec: DeviceSpec) -> LinkSpec | None:
    """The datasheet's link between two devices of a host: its own, else that to the host; None if it has neither."""
    name = spec.peer_link or spec.host_link
    try:
        return None if name is None else link_spec(name)
    except NotFoundError:
        return None
