"""Attention without mask, as encoders have it: floor, bytes, and blocks of 64 queries that see all keys.

    EncoderRows({"dtype": ["bf16"]}, {"batch": [8], "seq_len": [1500], "heads": [20], "head_dim": [64]})

No cache is written and no position is embedded; heads have their own keys and values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from .....graph.arrays import Floats
from ....spec import DeviceSpec
from .attention_terms import TILE, AttentionRows, filling, pairs_of, rate_of, sms_of, streamed_ns, tiled_ns, tiles_of
from .kernel_rows import FitNumber


class EncoderRows(AttentionRows):
    """Attention of `batch` sequences of `seq_len` tokens without mask."""

    PART, WHAT = "encoder_attention", "encoder attention"
    TEXTS: ClassVar[Mapping[str, Sequence[str]]] = {"dtype": ("bf16",)}
    COUNTS = ("batch", "seq_len", "heads", "head_dim")
    NUMBERS = (
        FitNumber("floor", "ns", 10_000, 500, 200_000),
        FitNumber("stream", "", 0.5, 0.02, 3),
        FitNumber("cached", "", 2, 0.1, 20),
        FitNumber("block", "ns", 1500, 5, 50_000),
        FitNumber("rate_64", "", 0.4, 0.01, 3),
        FitNumber("rate_72", "", 0.4, 0.01, 3),
        FitNumber("rate_80", "", 0.4, 0.01, 3),
    )

    @property
    def flops(self) -> Floats:
        """Products of queries and keys, and of weights and values."""
        pairs = pairs_of(self.size("seq_len"), self.size("seq_len"), causal=False)
        return np.asarray(4 * self.size("batch") * self.size("heads") * self.size("head_dim") * pairs)

    @property
    def bytes(self) -> Floats:
        """Queries, keys and values are read, the result written."""
        tokens = self.size("batch") * self.size("seq_len")
        return np.asarray(8 * tokens * self.size("heads") * self.size("head_dim"))

    def formula_ns(self, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """Floor, bytes, and blocks."""
        floor, stream, cached, block, *rates = numbers
        width = self.size("head_dim")
        share = np.exp(np.interp(width, [64, 72, 80], np.log(rates)))
        key_ns = TILE * 4 * width * 1e9 * sms_of(spec) / (rate_of(spec, "bf16") * share)
        tiles = tiles_of(self.size("seq_len"), self.size("seq_len"), causal=False)
        blocks = tiled_ns(tiles, self.size("batch") * self.size("heads"), key_ns, block, spec)
        return np.asarray(floor + streamed_ns(self.bytes, stream, cached, spec) + blocks)

    def features(self, spec: DeviceSpec) -> dict[str, Floats]:
        """Sizes, how far the blocks fill the SMs, and the bytes the L2."""
        batch, seq_len, heads = (self.size(name) for name in ("batch", "seq_len", "heads"))
        return {
            "log2 seq_len": np.log2(seq_len),
            "log2 tokens": np.log2(batch * seq_len),
            "log2 batch heads": np.log2(batch * heads),
            "head_dim": self.size("head_dim") / 8,
            "log2 waves": np.log2(batch * heads * np.ceil(seq_len / TILE) / sms_of(spec)),
            "log2 filling": filling(self.bytes, spec),
        }
