"""Attention of one decode step in a serving framework: rotary embedding, the write of one token, and flash decoding.

    time = floor + soft maximum of (bytes of the cache / bandwidth; tasks over the SMs, and their way along the cache)

A task is a key/value head of a sequence, whose group of query heads shares what it reads. Where there are fewer tasks
than SMs, each is split along the cache, by as much as the framework does (`split` 1: until all SMs are busy; 0: never).
Groups of more than `MOST_GROUP` heads, and heads with keys of their own, run in a kernel of one head a task.

    DecodeRows({"dtype": ["bf16"], "cache": ["fp8"]}, {"batch": [64], "context": [4096], "heads": [32], ...})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .....graph.arrays import Floats, Numbers
from ....spec import DeviceSpec
from ..layers import soft_maximum
from .attention_terms import SHARPNESS, AttentionRows, filling, sms_of, streamed_ns, width_of
from .kernel_rows import FitNumber

MOST_GROUP = 32
"""query heads that share a task: more were measured to take as long as tasks of their own"""
ROWS_OF_TILE = 16.0
"""query heads of a group that a task takes without its way along the cache becoming twice as long"""
WIDE, WIDER = 128.0, 0.6
"""widths of a head beyond 128 make a task longer by this power of their ratio"""
LEAST_WAVES = 0.3
"""share of a wave that a few tasks take too"""


class DecodeRows(AttentionRows):
    """Steps of one new token of `batch` sequences, each with `context` tokens in the cache, that one included; the
    token sees `window` of them, context for all."""

    PART, WHAT = "decode_attention", "decode attention"
    COUNTS = ("batch", "context", "heads", "kv_heads", "head_dim", "window")
    NUMBERS = (
        FitNumber("floor", "ns", 8000, 500, 200_000),
        FitNumber("stream", "", 0.8, 0.02, 3),
        FitNumber("cached", "", 2, 0.1, 20),
        FitNumber("task", "ns", 4000, 5, 50_000),
        FitNumber("walk", "", 2, 0.05, 50),
        FitNumber("split", "", 0.8, 0.01, 1),
        FitNumber("head_task", "ns", 1000, 5, 50_000),
        FitNumber("head_walk", "", 1, 0.01, 50),
        FitNumber("head_split", "", 0.8, 0.01, 1),
        FitNumber("window", "ns", 2000, 50, 50_000),
    )

    @property
    def ranged(self) -> Mapping[str, Numbers]:
        """All sizes but the window, which is within the context."""
        return {name: column for name, column in self.counts.items() if name != "window"}

    @property
    def tokens(self) -> Floats:
        """Tokens of the cache that are read."""
        seen: Floats = np.minimum(self.size("window"), self.size("context"))
        return seen

    @property
    def by_head(self) -> Floats:
        """1 where each query head is a task, else 0."""
        group = self.size("heads") / self.size("kv_heads")
        return np.asarray((group > MOST_GROUP) | (group == 1), dtype=np.float64)

    @property
    def flops(self) -> Floats:
        """Products of the queries with keys, and of weights and values."""
        return np.asarray(4 * self.size("batch") * self.size("heads") * self.size("head_dim") * self.tokens)

    @property
    def bytes(self) -> Floats:
        """The cache is read and one token written to it; queries, its keys and values, and the result."""
        heads, kv_heads, width = (self.size(name) for name in ("heads", "kv_heads", "head_dim"))
        cache = 2 * kv_heads * (self.tokens + 1) * width_of(self.texts["cache"])
        return np.asarray(self.size("batch") * width * (cache + 2 * (2 * heads + 2 * kv_heads)))

    def formula_ns(self, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """Floor, then the longer of bytes and tasks."""
        floor, stream, cached, task, walk, split, head_task, head_walk, head_split, window = numbers
        by_head, width = self.by_head > 0, self.size("head_dim")
        heads, kv_heads = self.size("heads"), self.size("kv_heads")
        waves = self.size("batch") * np.where(by_head, heads, kv_heads) / sms_of(spec)
        start = np.where(by_head, head_task, task) * np.maximum(width / WIDE, 1) ** WIDER
        of_sm = spec.memory_bandwidth_bytes_per_s / 1e9 / sms_of(spec)  # bytes / ns
        rows = np.where(by_head, 1.0, 1 + heads / kv_heads / ROWS_OF_TILE)
        token_ns = 2 * width * width_of(self.texts["cache"]) * rows / (np.where(by_head, head_walk, walk) * of_sm)
        parts = np.maximum(1 / waves, 1) ** np.where(by_head, head_split, split)
        tasks = np.maximum(waves, LEAST_WAVES) * start + np.maximum(waves, 1) * self.tokens / parts * token_ns
        begun = floor + window * (self.tokens < self.size("context"))
        return np.asarray(begun + soft_maximum(streamed_ns(self.bytes, stream, cached, spec), tasks, SHARPNESS))

    def features(self, spec: DeviceSpec) -> dict[str, Floats]:
        """Sizes, which kernel it is, how far the tasks fill the SMs, and the bytes the L2."""
        batch, heads, kv_heads = (self.size(name) for name in ("batch", "heads", "kv_heads"))
        return {
            "log2 tokens": np.log2(self.tokens),
            "log2 span": np.log2(self.size("context") / self.tokens),
            "log2 tasks": np.log2(batch * kv_heads),
            "log2 group": np.log2(heads / kv_heads),
            "log2 head_dim": np.log2(self.size("head_dim")),
            "by head": self.by_head,
            "log2 waves": np.log2(batch * kv_heads / sms_of(spec)),
            "log2 filling": filling(self.bytes, spec),
        }
