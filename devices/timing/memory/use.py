"""The memory that a step needs, and the questions that a timeline answers about it.

For x (fed, 40 bytes) -> a = Exp(x) -> b = MatMul(a, a), 100 ns each, on a device of 64 bytes:

    peak_bytes             {(device, "device"): 80}
    peak(device)           MemoryPeak(peak_bytes=80, limit_bytes=64, at_ns=0, tensors=(x, a)); it does not fit
    its by_category        {"parameters": 0, ..., "temporaries": 80, "communication": 0}
    curve(device)          80 bytes from 0 on, 80 (a and b) from 100 on, 0 from 200 on
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.ops.device_kinds import device_kind
from ...cluster import Cluster
from ...units import format_bytes
from .categories import MEMORY_CATEGORIES
from .curve import MemoryCurve, curve_of
from .kinds import MemoryPlace
from .peaks import Lives, Peak, peaks_of
from .spans import HeldSpans

_NAMED = 3  # tensors that a sentence lists


class HeldTensor(NamedTuple):
    """A tensor in memory: an output of a node in an iteration ("" outside of loops).

    `category` is one of `MEMORY_CATEGORIES`.
    """

    node: str
    output: int
    bytes: int
    iteration: str = ""
    category: str = "temporaries"


class MemoryPeak(NamedTuple):
    """The most bytes in use in one memory, the first instant at which that many are, and the tensors that fill it.

    `limit_bytes` is the size of the memory, None if it is not known. Tensors are in order of size, largest first, those
    of one size in order of nodes and outputs. Tensors that share a buffer are listed once, as the latest of them.
    """

    peak_bytes: int
    limit_bytes: int | None
    at_ns: int
    tensors: tuple[HeldTensor, ...]

    @property
    def by_category(self) -> dict[str, int]:
        """The bytes of each of `MEMORY_CATEGORIES`, which add up to `peak_bytes`."""
        sums = dict.fromkeys(MEMORY_CATEGORIES, 0)
        for tensor in self.tensors:
            sums[tensor.category] += tensor.bytes
        return sums

    @property
    def fits(self) -> bool:
        """Whether the memory is large enough; True if its size is not known."""
        return self.limit_bytes is None or self.peak_bytes <= self.limit_bytes


def limits_of(cluster: Cluster) -> dict[tuple[str, MemoryPlace], int | None]:
    """Bytes of every memory of a cluster, None where its size is not known."""
    limits: dict[tuple[str, MemoryPlace], int | None] = {}
    for device in cluster:
        limits[device.name, "device"] = device.spec.memory_bytes
        if device_kind(device.type).own_memory:
            limits[device.name, "host"] = device.spec.host_memory_bytes or None
    return limits


class MemoryUse:
    """The buffers of a step by memory. Sums are made at once, lists of tensors when they are asked for."""

    def __init__(
        self,
        lives: Lives,
        spans: Callable[[], HeldSpans],
        memories: Sequence[tuple[str, MemoryPlace]],
        limits: Mapping[tuple[str, MemoryPlace], int | None],
    ) -> None:
        """`memories` has device and place of every memory, by number; `limits` has those that there are in a cluster.

        `spans` tells what is in the buffers of `lives`. It is called when first asked for.
        """
        self._find_spans = spans
        self._memories = memories
        self._limits = dict(limits)
        self._peaks = {memories[number]: peak for number, peak in peaks_of(lives).items()}

    @cached_property
    def spans(self) -> HeldSpans:
        """What is in the buffers, and from when to when."""
        return self._find_spans()

    @cached_property
    def peak_bytes(self) -> dict[tuple[str, MemoryPlace], int]:
        """The peak of every memory that has a buffer, by device and place, sorted."""
        return {memory: self._peaks[memory].size_bytes for memory in sorted(self._peaks)}

    @cached_property
    def too_small(self) -> tuple[tuple[str, MemoryPlace], ...]:
        """The memories that are too small."""
        limits = ((memory, used, self._limits[memory]) for memory, used in self.peak_bytes.items())
        return tuple(memory for memory, used, limit in limits if limit is not None and used > limit)

    def warnings(self) -> list[str]:
        """A sentence for each memory that is too small."""
        sentences = []
        for device, place in self.too_small:
            used, limit = self.peak_bytes[device, place], self._limits[device, place]
            assert limit is not None  # as it is too small
            sentences.append(f"{device} needs {format_bytes(used)} of {place} memory and has {format_bytes(limit)}")
        return sentences

    @cached_property
    def shortages(self) -> tuple[str, ...]:
        """The same with the largest tensors in it."""
        largest = (self.peak(*memory).tensors[:_NAMED] for memory in self.too_small)
        texts = (", ".join(f"{t.node!r} ({t.category}, {format_bytes(t.bytes)})" for t in some) for some in largest)
        return tuple(
            f"{warning}; the largest tensors are {text}" for warning, text in zip(self.warnings(), texts, strict=True)
        )

    def peak(self, device: str, place: MemoryPlace = "device") -> MemoryPeak:
        """The peak of one memory; InvalidArgumentError if the cluster has no such memory."""
        memory = self._checked(device, place)
        size_bytes, at_ns = self._peaks.get(memory, Peak(0, 0))
        tensors = self._held(self._memories.index(memory), at_ns) if size_bytes else ()
        return MemoryPeak(size_bytes, self._limits[memory], at_ns, tensors)

    def curve(self, device: str, place: MemoryPlace = "device") -> MemoryCurve:
        """The bytes in use in one memory over time; raises as `peak`."""
        return curve_of(self.spans, self._memories.index(self._checked(device, place)))

    def _checked(self, device: str, place: MemoryPlace) -> tuple[str, MemoryPlace]:
        memory = device, place
        if memory not in self._limits:
            known = ", ".join(sorted({f"{name} ({where})" for name, where in self._limits}))
            raise InvalidArgumentError(f"{device!r} has no {place!r} memory here; there are {known}")
        return memory

    def _held(self, memory: int, at_ns: int) -> tuple[HeldTensor, ...]:
        """The tensors that fill a memory at an instant."""
        spans = self.spans
        held = np.flatnonzero((spans.memory == memory) & (spans.start_ns <= at_ns) & (at_ns < spans.end_ns))
        held = held[np.argsort(-spans.size_bytes[held], kind="stable")]
        rows = zip(
            spans.node.in_order(held),
            spans.output[held].tolist(),
            spans.size_bytes[held].tolist(),
            spans.iteration.in_order(held),
            (MEMORY_CATEGORIES[category] for category in spans.category[held].tolist()),
            strict=True,
        )
        return tuple(map(HeldTensor._make, rows))
