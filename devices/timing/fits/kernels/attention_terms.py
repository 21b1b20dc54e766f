"""What the formulas of attention layers share: tiles of queries, streams of bytes, and what a datasheet says.

A kernel of prefill gives each block of threads `TILE` queries of a head, which go along the keys that they may see:

    tiles_of(seq_len 256, window 256, causal)     4 blocks a head; they see 64 + 128 + 192 + 256 keys, the longest 256
    tiles_of(seq_len 256, window 64, causal)      64 + 128 + 128 + 128: a tile of queries spans its window and itself

Blocks of all heads and sequences are spread over the SMs; there are never less of them than the longest one takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .....graph.arrays import Floats
from ....spec import DeviceSpec
from ..layers import soft_maximum
from ..products import bf16_peak
from .kernel_rows import KernelRows

TYPES: Mapping[str, Sequence[str]] = {"dtype": ("bf16", "fp8"), "cache": ("bf16", "fp8")}
"""of the arithmetic, and of the keys and values that a cache holds"""
TILE = 64.0
"""queries that a block of threads has, and keys that it takes at a time"""
SHARPNESS = 2.0
CACHED_SHARE = 1.5
"""caches' worth of bytes of which half still comes from the L2: not all that is moved is live at a time"""


class QueryTiles(NamedTuple):
    """By row: blocks a head, keys that all blocks of a head see together, keys that the longest one sees."""

    blocks: Floats
    keys: Floats
    longest: Floats


def tiles_of(seq_len: Floats, window: Floats, causal: bool, waste: float = 0.0) -> QueryTiles:
    """The tiles of sequences; `waste` is the share of the keys outside the window that are computed in spite of it."""
    blocks = np.ceil(seq_len / TILE)
    width = blocks * TILE
    if not causal:
        return QueryTiles(blocks, blocks * width, width)
    span = np.ceil((np.minimum(window, seq_len) + TILE) / TILE) * TILE
    short = np.minimum(span / TILE, blocks)  # blocks that begin before a window is full
    whole = blocks * (blocks + 1) / 2 * TILE
    seen = np.minimum(short * (short + 1) / 2 * TILE + (blocks - short) * span, whole)
    longest = np.minimum(span, width)
    return QueryTiles(blocks, seen + waste * (whole - seen), longest + waste * (width - longest))


def tiled_ns(tiles: QueryTiles, heads: Floats, key_ns: Floats, block_ns: float, spec: DeviceSpec) -> Floats:
    """The time of the blocks of all `heads`, at `block_ns` each and `key_ns` a key, on the SMs of a device."""
    work = heads * (tiles.blocks * block_ns + tiles.keys * key_ns) / sms_of(spec)
    return soft_maximum(work, block_ns + tiles.longest * key_ns, SHARPNESS)


def pairs_of(seq_len: Floats, window: Floats, causal: bool) -> Floats:
    """Pairs of a query and a key that it may see, by sequence."""
    if not causal:
        return np.asarray(seq_len**2)
    window = np.minimum(window, seq_len)
    return np.asarray(window * (window + 1) / 2 + (seq_len - window) * window)


def streamed_ns(moved: Floats, stream: float, cached: float, spec: DeviceSpec) -> Floats:
    """The time of bytes at a share of the bandwidth, `stream` from memory and `cached` from the L2."""
    hit = 1 / (1 + (moved / (CACHED_SHARE * max(spec.l2_bytes, 1))) ** 2)
    return np.asarray(moved * 1e9 / spec.memory_bandwidth_bytes_per_s * (hit / cached + (1 - hit) / stream))


def rate_of(spec: DeviceSpec, dtype: str) -> int:
    """The datasheet's rate of a type of arithmetic, that of bf16 where it has none."""
    return spec.peak_flops_per_s.get(dtype) or bf16_peak(spec)


def sms_of(spec: DeviceSpec) -> int:
    """Multiprocessors of a device, 100 where nobody knows them."""
    return spec.sm_count or 100


def width_of(dtypes: Sequence[str]) -> Floats:
    """Bytes of an element, by row."""
    return np.array([1.0 if dtype == "fp8" else 2.0 for dtype in dtypes])


def filling(moved: Floats, spec: DeviceSpec) -> Floats:
    """The log of bytes by the L2, from a sixteenth of it to 16 times: what a surface may tell cached runs by."""
    return np.asarray(np.clip(np.log2(moved / max(spec.l2_bytes, 1)), -4, 4))


class AttentionRows(KernelRows):
    """What families of attention have in common: types, settings of their fits, and the datasheet's time."""

    TEXTS = TYPES
    SPREAD, NEAR, DECAY = 0.4, 0.8, 0.3
    LIKELIHOOD_ROWS, KEPT_ROWS = 300, 200

    def datasheet_ns(self, spec: DeviceSpec) -> Floats:
        """The longer of operations at the peak of their type and bytes at the bandwidth, by row."""
        rates = np.array([float(rate_of(spec, dtype)) for dtype in self.texts["dtype"]])
        return np.asarray(np.maximum(self.flops / rates, self.bytes / spec.memory_bandwidth_bytes_per_s) * 1e9)
