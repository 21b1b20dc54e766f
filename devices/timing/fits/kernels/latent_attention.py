"""Multi-head latent attention of DeepSeek's models in a serving framework, in prefill and in decode.

A token's keys and values of all heads are one vector of `LATENT` numbers and one of `ROTARY` in the cache. A prefill
expands them: heads with keys of 192 and values of 128. A decode step absorbs the expansion into the queries, so that
all heads read the same 576 numbers a token, and multiply them by queries of 576 and weights by 512:

    prefill   floor + bytes + blocks of 64 queries over the SMs      as in `prefill_attention`
    decode    floor + soft maximum of (bytes of the cache / bandwidth; sequences over the SMs, and their way along it)

    LatentDecodeRows({"dtype": ["bf16"], "cache": ["fp8"]}, {"batch": [64], "context": [4096], "heads": [16]})
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....graph.arrays import Floats
from ....spec import DeviceSpec
from ..layers import soft_maximum
from .attention_terms import (
    SHARPNESS,
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

LATENT, ROTARY = 512, 64
KEY, VALUE = 192, 128
"""widths of an expanded head"""
ROWS_OF_TILE = 64.0
"""heads of a sequence that a block of threads takes in decode"""
LEAST_WAVES = 0.3


class LatentPrefillRows(AttentionRows):
    """Prefills of `batch` sequences of `seq_len` new tokens with `heads` heads."""

    PART, WHAT = "latent_prefill", "prefill of latent attention"
    COUNTS = ("batch", "seq_len", "heads")
    NUMBERS = (
        FitNumber("floor", "ns", 12_000, 500, 200_000),
        FitNumber("stream", "", 0.5, 0.02, 3),
        FitNumber("cached", "", 2, 0.1, 20),
        FitNumber("block", "ns", 3000, 5, 50_000),
        FitNumber("rate", "", 0.6, 0.01, 3),
    )

    @property
    def flops(self) -> Floats:
        """Products of queries and keys, and of weights and values, of the pairs that the mask leaves."""
        pairs = pairs_of(self.size("seq_len"), self.size("seq_len"), causal=True)
        return np.asarray(2 * self.size("batch") * self.size("heads") * (KEY + VALUE) * pairs)

    @property
    def bytes(self) -> Floats:
        """Queries, expanded keys and values are read, the result and the cache written."""
        of_token = 2 * self.size("heads") * (2 * KEY + 2 * VALUE) + (LATENT + ROTARY) * width_of(self.texts["cache"])
        return np.asarray(self.size("batch") * self.size("seq_len") * of_token)

    def formula_ns(self, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """Floor, bytes, and blocks."""
        floor, stream, cached, block, share = numbers
        rate = rate_of(spec, self.texts["dtype"][0]) * share / sms_of(spec)
        key_ns = np.full(len(self), TILE * 2 * (KEY + VALUE) * 1e9 / rate)
        tiles = tiles_of(self.size("seq_len"), self.size("seq_len"), causal=True)
        blocks = tiled_ns(tiles, self.size("batch") * self.size("heads"), key_ns, block, spec)
        return np.asarray(floor + streamed_ns(self.bytes, stream, cached, spec) + blocks)

    def features(self, spec: DeviceSpec) -> dict[str, Floats]:
        """Sizes, how far the blocks fill the SMs, and the bytes the L2."""
        batch, seq_len, heads = (self.size(name) for name in self.COUNTS)
        return {
            "log2 seq_len": np.log2(seq_len),
            "log2 tokens": np.log2(batch * seq_len),
            "log2 heads": np.log2(heads),
            "log2 waves": np.log2(batch * heads * np.ceil(seq_len / TILE) / sms_of(spec)),
            "log2 filling": filling(self.bytes, spec),
        }


class LatentDecodeRows(AttentionRows):
    """Steps of one new token of `batch` sequences, each with `context` tokens in the cache, that one included."""

    PART, WHAT = "latent_decode", "decode of latent attention"
    COUNTS = ("batch", "context", "heads")
    NUMBERS = (
        FitNumber("floor", "ns", 10_000, 500, 200_000),
        FitNumber("stream", "", 0.8, 0.02, 3),
        FitNumber("cached", "", 2, 0.1, 20),
        FitNumber("task", "ns", 4000, 5, 100_000),
        FitNumber("walk", "", 2, 0.02, 50),
        FitNumber("split", "", 0.8, 0.01, 1),
        FitNumber("rate", "", 0.6, 0.01, 3),
    )

    @property
    def flops(self) -> Floats:
        """Products of the absorbed queries with the cache, and of weights and the latent part of it."""
        pairs = self.size("batch") * self.size("context") * self.size("heads")
        return np.asarray(2 * pairs * (2 * LATENT + ROTARY))

    @property
    def bytes(self) -> Floats:
        """The cache is read and one token written to it; absorbed queries and results."""
        cache = (LATENT + ROTARY) * (self.size("context") + 1) * width_of(self.texts["cache"])
        return np.asarray(self.size("batch") * (cache + 2 * self.size("heads") * (2 * LATENT + ROTARY)))

    def formula_ns(self, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """Floor, then the longer of bytes, and of tasks and their arithmetic."""
        floor, stream, cached, task, walk, split, share = numbers
        tiles = np.ceil(self.size("heads") / ROWS_OF_TILE)
        waves = self.size("batch") * tiles / sms_of(spec)
        of_sm = spec.memory_bandwidth_bytes_per_s / 1e9 / sms_of(spec)  # bytes / ns
        read_ns = (LATENT + ROTARY) * width_of(self.texts["cache"]) / (walk * of_sm)
        rate = rate_of(spec, self.texts["dtype"][0]) * share / sms_of(spec) / 1e9
        token_ns = read_ns + 2 * (2 * LATENT + ROTARY) * np.minimum(self.size("heads"), ROWS_OF_TILE) / rate
        parts = np.maximum(1 / waves, 1) ** split
        tasks = np.maximum(waves, LEAST_WAVES) * task + np.maximum(waves, 1) * self.size("context") / parts * token_ns
        return np.asarray(floor + soft_maximum(streamed_ns(self.bytes, stream, cached, spec), tasks, SHARPNESS))

    def features(self, spec: DeviceSpec) -> dict[str, Floats]:
        """Sizes, how far the tasks fill the SMs, and the bytes the L2."""
        batch, context, heads = (self.size(name) for name in self.COUNTS)
        return {
            "log2 context": np.log2(context),
            "log2 batch": np.log2(batch),
            "log2 heads": np.log2(heads),
            "log2 waves": np.log2(batch * np.ceil(heads / ROWS_OF_TILE) / sms_of(spec)),
            "log2 filling": filling(self.bytes, spec),
        }
