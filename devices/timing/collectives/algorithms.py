"""Time of a collective from links alone: steps, latency and bytes of ring, tree and halving-doubling, the fastest wins.

A group of n equal ranks has one way out each, with a bandwidth and a latency. A protocol sends at a share of the
bandwidth: low-latency protocols put flags beside the data and so save the wait for a flush (NCCL's LL: half of the
bytes are data; LL128: 120 of 128).

    all_reduce     ring               2 (n - 1) steps           2 (n - 1) / n of the size
                   halving-doubling   2 ceil(log2 n) steps      2 (n - 1) / n
                   tree               2 ceil(log2 n) steps      2, pipelined in both directions
                   switch             2 steps                   1, where the switch reduces
    others         ring               n - 1 steps               (n - 1) / n
    permute        pairs              1 step                    1

Over rings of links that join ranks in pairs (`GroupWay.rings`) there is nothing but the ring; an all-to-all goes the
shorter way round, past a quarter of the ranks on average.

    8 ranks at 450 GB/s and 2 us, 1 KiB:  LL, 2 * 3 steps of 0.8 us and the 6 us of the kernel = 10.8 us
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log2
from typing import NamedTuple

import numpy as np

from ....graph.arrays import Floats
from .kinds import bus_share

KERNEL_NS = 6_000.0  # assumed: the floor of one collective kernel, chosen by eye beside nine NCCL systems
RING_EFFICIENCY = 0.87  # assumed of rings over links of pairs: V100s reach 21.3 to 22.6 of 25 GB/s a ring (vTrain)
EFFICIENCY = 0.6  # assumed likewise: share of the datasheet bandwidth that a collective reaches


class GroupWay(NamedTuple):
    """How every rank of a group reaches the others: the slowest way's bandwidth and latency, and the switch between.

    Where links join ranks in pairs, `rings` is how many rings have that bandwidth together.
    """

    bandwidth_bytes_per_s: float
    latency_ns: float
    reduces_in_switch: bool = False
    rings: int = 0

    @property
    def efficiency(self) -> float:
        """The share of the bandwidth that a collective reaches."""
        return RING_EFFICIENCY if self.rings else EFFICIENCY


class Protocol(NamedTuple):
    """The share of the bandwidth that carries data, and the latency of a step as a share of the link's."""

    name: str
    rate: float
    latency: float


PROTOCOLS = (Protocol("LL", 0.5, 0.4), Protocol("LL128", 120 / 128, 0.7), Protocol("Simple", 1.0, 1.0))
# latencies assumed, to go with the order of NCCL's own table (LL < LL128 < Simple)


class PlannedCost(NamedTuple):
    """Time in ns, with the algorithm and the protocol that reach it."""

    time_ns: float
    algorithm: str
    protocol: str


def fastest(kind: str, ranks: int, size_bytes: float, way: GroupWay) -> PlannedCost:
    """The fastest algorithm and protocol of a group of equal ranks; without time for fewer than two ranks."""
    if ranks < 2:
        return PlannedCost(0.0, "none", "")
    options = _options(kind, ranks, way)
    return min(
        PlannedCost(it.fixed_ns + it.share * size_bytes * 1e9 / it.rate, it.algorithm, it.protocol) for it in options
    )


class WayTimes(NamedTuple):
    """Times of collectives of several sizes, in ns: what no byte changes, and what bytes take on the wire."""

    fixed_ns: Floats
    wire_ns: Floats


def fastest_times(kind: str, ranks: int, size_bytes: Floats, way: GroupWay) -> WayTimes:
    """What `fastest` says of each size, in its two parts."""
    if ranks < 2:
        return WayTimes(np.zeros(len(size_bytes)), np.zeros(len(size_bytes)))
    options = [(it.fixed_ns, it.share * 1e9 / it.rate) for it in _options(kind, ranks, way)]
    fixed, of_byte = (np.array(column) for column in zip(*options, strict=True))
    best = np.argmin(fixed[:, None] + of_byte[:, None] * size_bytes, axis=0)
    return WayTimes(fixed[best], of_byte[best] * size_bytes)


class _Option(NamedTuple):
    """An algorithm with a protocol: what no byte changes, and the share of the size that goes at a rate in bytes/s."""

    algorithm: str
    protocol: str
    fixed_ns: float
    share: float
    rate: float


def _options(kind: str, ranks: int, way: GroupWay) -> Iterator[_Option]:
    """What a library may choose from."""
    rate = way.bandwidth_bytes_per_s * way.efficiency
    for algorithm, steps, share in _algorithms(kind, ranks, way):
        for protocol in PROTOCOLS:
            fixed_ns = KERNEL_NS + steps * way.latency_ns * protocol.latency
            yield _Option(algorithm, protocol.name, fixed_ns, share, rate * protocol.rate)


def _algorithms(kind: str, ranks: int, way: GroupWay) -> Iterator[tuple[str, int, float]]:
    """Name, steps and share of the size that leaves a rank."""
    share, doublings = bus_share(kind, ranks), ceil(log2(ranks))
    if way.rings:
        yield from _over_rings(kind, ranks, share)
    elif kind == "all_reduce":
        yield "ring", 2 * (ranks - 1), share
        yield "tree", 2 * doublings, 2.0
        if ranks == 2**doublings:
            yield "halving-doubling", 2 * doublings, share
        if way.reduces_in_switch:
            yield "switch", 2, 1.0
    elif kind in ("all_gather", "reduce_scatter"):
        yield "ring", ranks - 1, share
        if ranks == 2**doublings:
            yield "halving-doubling", doublings, share
    elif kind == "broadcast":
        yield "ring", ranks - 1, share
        yield "tree", doublings, 2.0  # a rank of a binary tree sends to two
    else:
        yield "pairs", 1, share  # all at once: sends to different ranks do not wait for each other


def _over_rings(kind: str, ranks: int, share: float) -> Iterator[tuple[str, int, float]]:
    """The one algorithm over rings of links."""
    steps = 2 * (ranks - 1) if kind == "all_reduce" else ranks - 1
    past = max(1.0, ranks / 4) if kind == "all_to_all" else 1.0
    yield "ring", steps, share * past
