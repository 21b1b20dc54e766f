"""The time of a matrix product by its tiles: floor + the fastest over tile shapes and splits of k.

A GPU computes an m x n x k product in tiles of the result, one tile a block of threads (CTA), as many CTAs at once as
it has multiprocessors (SMs): ceil(CTAs / SMs) waves. Splitting k over s CTAs a tile gives s times the CTAs. With one
tile shape and one split the time is the soft maximum (p-norm, p = `SHARPNESS`) of three terms:

    arithmetic   waves * operations of a CTA / (rate of an SM * efficiency of the tile)
    k-loop       waves * (start + steps * step), steps of 64 elements of k (128 bytes)
    bytes        max(all bytes / bandwidth, bytes of a CTA / (bandwidth / CTAs that fill the bus))

A split adds the time of a second kernel, which sums the parts: `SPLIT_FLOORS` of the floor.

The efficiency of a tile is area / (area + half area): small tiles reload their inputs more often. What fits in 60 % of
the L2 cache moves faster by a factor. Eight numbers are fitted: floor, rate, half area, start, step, bandwidth, the
share of the SMs whose CTAs fill the bus, and the factor of the L2. Every term of every shape grows with m, n and k, so
the time does too, whatever the numbers are, and a higher rate or bandwidth never makes a product slower.

Two products of bf16 on an H100-SXM (132 SMs), with the numbers that its measurements gave: floor 2740 ns, rate 786
TFLOP/s, half area 1, start 33.2 ns, step 61.9 ns, bandwidth 2720 GB/s, filling share 0.209, L2 factor 1.04:

    m x n x k           tile      waves  arithmetic    k-loop     bytes   time = floor + soft maximum
    4096 x 4096 x 4096  256x128   4       180329 ns  15979 ns  37009 ns   183151 ns
    64 x 4096 x 4096    64x32     1         2819 ns   3995 ns  12722 ns    15500 ns
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....graph.arrays import Floats, Numbers
from ...spec import DeviceSpec

TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (64, 32), (32, 64), (64, 16), (16, 64))
"""rows and columns of the result that a CTA computes, largest first"""
SPLITS = (1, 2, 4, 8)
"""CTAs that share the k of one tile"""
STEP_BYTES = 128
"""bytes of a row of the left matrix that a CTA reads in one turn of its loop: 64 elements of bf16"""
SHARPNESS = 4.0
"""exponent of the soft maximum"""
SPLIT_FLOORS = 0.6
"""time of the kernel that sums the parts of a split, in floors"""
L2_SHARE = 0.6
"""share of the L2 that a product's tensors can fill and still be read from it"""


class ProductNumbers(NamedTuple):
    """What is fitted for one device."""

    floor_ns: float
    """time of the smallest product"""
    rate_flops_per_s: float
    """of the whole device, in tiles without loss"""
    half_area: float
    """elements of a tile that reaches half of the rate"""
    start_ns: float
    """time of a CTA outside its loop"""
    step_ns: float
    """latency of one turn of a CTA's loop"""
    bandwidth_bytes_per_s: float
    """from memory, with all SMs reading"""
    filling_share: float
    """share of the SMs whose CTAs fill the bus"""
    l2_factor: float
    """how much faster what fits in the L2 moves; at least 1"""


class ProductTerms(NamedTuple):
    """The choices and terms of several products, each in a column."""

    time_ns: Floats
    option: Numbers
    waves: Numbers
    arithmetic_ns: Floats
    loop_ns: Floats
    bytes_ns: Floats

    def tile(self, row: int) -> tuple[int, int]:
        """The tile shape of one product."""
        return TILES[int(self.option[row]) // len(SPLITS)]

    def split_k(self, row: int) -> int:
        """Into how many parts its k is split."""
        return SPLITS[int(self.option[row]) % len(SPLITS)]


class Geometry(NamedTuple):
    """What the numbers do not change, for each option (rows) and product (columns)."""

    waves: Floats
    cta_flops: Floats
    steps: Floats
    moved: Floats
    cta_bytes: Floats
    in_l2: NDArray[np.bool_]
    area: Floats
    is_split: NDArray[np.bool_]


def geometry(m: Numbers, n: Numbers, k: Numbers, batch: Numbers, item_bytes: float, spec: DeviceSpec) -> Geometry:
    """Waves, operations and bytes of each product with each tile shape and split."""
    options = np.array([(*tile, split) for tile in TILES for split in SPLITS], dtype=np.float64)
    rows, columns, split = options.T[:, :, None]
    m_, n_, k_, batch_ = (np.asarray(a, dtype=np.float64)[None, :] for a in (m, n, k, batch))
    ctas = batch_ * np.ceil(m_ / rows) * np.ceil(n_ / columns) * split
    step = STEP_BYTES / item_bytes
    steps = np.ceil(k_ / (split * step))
    tensors = batch_ * (m_ * k_ + k_ * n_ + m_ * n_) * item_bytes
    partial = np.where(split > 1, 2 * 4 * split * batch_ * m_ * n_, 0.0)  # float32 sums, written and read
    return Geometry(
        waves=np.ceil(ctas / spec.sm_count),
        cta_flops=2 * rows * columns * step * steps,
        steps=steps,
        moved=tensors + partial,
        cta_bytes=(np.minimum(m_, rows) + np.minimum(n_, columns)) * k_ / split * item_bytes,
        in_l2=tensors + partial <= L2_SHARE * spec.l2_bytes,
        area=rows * columns,
        is_split=split > 1,
    )


def terms(g: Geometry, numbers: ProductNumbers, sm_count: int) -> tuple[Floats, Floats, Floats]:
    """Arithmetic, k-loop and bytes in ns, for each option and product."""
    efficiency = g.area / (g.area + numbers.half_area)
    arithmetic = g.waves * g.cta_flops / efficiency * (1e9 * sm_count / numbers.rate_flops_per_s)
    loop = g.waves * (numbers.start_ns + g.steps * numbers.step_ns)
    filling = max(1.0, numbers.filling_share * sm_count)
    speed = numbers.bandwidth_bytes_per_s * np.where(g.in_l2, numbers.l2_factor, 1.0)
    return arithmetic, loop, 1e9 * np.maximum(g.moved, g.cta_bytes * filling) / speed


def soft_maximum(arithmetic: Floats, loop: Floats, moved: Floats) -> Floats:
    """The p-norm of the three terms, between their maximum and 3**(1/p) times it."""
    largest = np.maximum(np.maximum(arithmetic, loop), moved)
    total = sum(((term / largest) ** SHARPNESS for term in (arithmetic, loop, moved)), np.zeros_like(largest))
    return np.asarray(largest * total ** (1 / SHARPNESS), dtype=np.float64)


def product_terms(g: Geometry, numbers: ProductNumbers, sm_count: int) -> ProductTerms:
    """Each product's time with its fastest option, the first of equals."""
    arithmetic, loop, moved = terms(g, numbers, sm_count)
    times = soft_maximum(arithmetic, loop, moved) + np.where(g.is_split, SPLIT_FLOORS * numbers.floor_ns, 0.0)
    best = np.argmin(times, axis=0)
    at = best, np.arange(times.shape[1])
    return ProductTerms(
        time_ns=numbers.floor_ns + times[at],
        option=best.astype(np.int64),
        waves=g.waves[at].astype(np.int64),
        arithmetic_ns=arithmetic[at],
        loop_ns=loop[at],
        bytes_ns=np.broadcast_to(moved, times.shape)[at],
    )
