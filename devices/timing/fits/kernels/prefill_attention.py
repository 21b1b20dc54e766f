"""Attention of a prefill in a serving framework: rotary embedding, the write of the cache, and causal flash attention.

    time = floor + bytes of q, k, v, result and cache / bandwidth + blocks of 64 queries over the SMs

Each block takes a start and a time a key, at a share of the peak that depends on the width of a head. Short sequences
are blocks that are hardly filled: 128 sequences of 1 token with 40 heads are 5,120 blocks, 190 us on an H100. Where a
framework computes what its window hides, `waste` comes out near 1.

    PrefillRows({"dtype": ["bf16"], "cache": ["fp8"]}, {"batch": [4], "seq_len": [4096], "heads": [32], ...})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .....graph.arrays import Floats, Numbers
from ....spec import DeviceSpec
from .attention_terms import (
    TILE,
    AttentionRows,
    filling,
    pairs_of,
    rate_of,
    sms_of,
    streamed_ns,
    tiled_ns,
    tiles_of,
    width_of,
)
from .kernel_rows import FitNumber


class PrefillRows(AttentionRows):
    """Prefills of `batch` sequences of `seq_len` new tokens; a query sees `window` tokens, seq_len for all of them."""

    PART, WHAT = "prefill_attention", "prefill attention"
    COUNTS = ("batch", "seq_len", "heads", "kv_heads", "head_dim", "window")
    NUMBERS = (
        FitNumber("floor", "ns", 10_000, 500, 200_000),
        FitNumber("stream", "", 0.5, 0.02, 3),
        FitNumber("cached", "", 2, 0.1, 20),
        FitNumber("block", "ns", 1500, 5, 50_000),
        FitNumber("rate_64", "", 0.4, 0.01, 3),
        FitNumber("rate_128", "", 0.5, 0.01, 3),
        FitNumber("rate_256", "", 0.5, 0.01, 3),
        FitNumber("waste", "", 0.01, 0.001, 1),
    )

    @property
    def ranged(self) -> Mapping[str, Numbers]:
        """All sizes but the window, which is within the sequence."""
        return {name: column for name, column in self.counts.items() if name != "window"}

    @property
    def flops(self) -> Floats:
        """Products of queries and keys, and of weights and values, of the pairs that the mask leaves."""
        pairs = pairs_of(self.size("seq_len"), self.size("window"), causal=True)
        return np.asarray(4 * self.size("batch") * self.size("heads") * self.size("head_dim") * pairs)

    @property
    def bytes(self) -> Floats:
        """Queries, keys and values are read, the result and the cache written."""
        heads, kv_heads = self.size("heads"), self.size("kv_heads")
        of_token = 2 * (2 * heads + 2 * kv_heads) + 2 * kv_heads * width_of(self.texts["cache"])
        return np.asarray(self.size("batch") * self.size("seq_len") * self.size("head_dim") * of_token)

    def formula_ns(self, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """Floor, bytes, and blocks."""
        floor, stream, cached, block, rate_64, rate_128, rate_256, waste = numbers
        tiles = tiles_of(self.size("seq_len"), self.size("window"), causal=True, waste=waste)
        width = self.size("head_dim")
        share = np.exp(np.interp(np.log2(width), [6, 7, 8], np.log([rate_64, rate_128, rate_256])))
        rate = rate_of(spec, self.texts["dtype"][0]) * share / sms_of(spec)
        key_ns = TILE * 4 * width * 1e9 / rate
        blocks = tiled_ns(tiles, self.size("batch") * self.size("heads"), key_ns, block, spec)
        return np.asarray(floor + streamed_ns(self.bytes, stream, cached, spec) + blocks)

    def features(self, spec: DeviceSpec) -> dict[str, Floats]:
        """Sizes, how far the blocks fill the SMs, and the bytes the L2."""
        batch, seq_len, heads = (self.size(name) for name in ("batch", "seq_len", "heads"))
        width, window = self.size("head_dim"), self.size("window")
        return {
            "log2 seq_len": np.log2(seq_len),
            "log2 tokens": np.log2(batch * seq_len),
            "log2 batch heads": np.log2(batch * heads),
            "log2 group": np.log2(heads / self.size("kv_heads")),
            "log2 head_dim": np.log2(width),
            "is 128": (width == 128).astype(np.float64),
            "is wide": (width >= 256).astype(np.float64),
            "has window": (window < seq_len).astype(np.float64),
            "log2 waves": np.log2(batch * heads * np.ceil(seq_len / TILE) / sms_of(spec)),
            "log2 filling": filling(self.bytes, spec),
        }
