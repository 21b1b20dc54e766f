"""The time of ops that are bound by memory: bytes / (bandwidth * efficiency) + a constant, for each kind of op.

    64 MiB on B200, "default": 67108864 B / (8 TB/s * 0.666) + 30 us = 42.6 us

The kinds are "default", "permute" (rows change places) and "cross_entropy". Where a device has no such fit, efficiency
0.8 and 3 us are assumed for every kind, as aiconfigurator does (Apache-2.0). An op with more arithmetic than its bytes
pay for takes as long as that.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import Any, NamedTuple

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats
from ....graph.suggestions import suggestion
from ...tables import naming
from ...units import parse_bytes_per_s, parse_ns, parse_share
from ..costs.source import Provenance
from .prediction import Prediction

ASSUMED_EFFICIENCY, ASSUMED_CONSTANT_NS = 0.8, 3000
ASSUMED_SPREAD = 0.4
"""half the width of the 80 % interval of a time with assumed numbers, in log time: assumed itself"""
KINDS = ("default", "permute", "cross_entropy")
_OPS_OF = {
    "permute": ("Transpose", "ConjugateTranspose", "GatherV2", "GatherNd", "ResourceGather", "ScatterNd"),
    "cross_entropy": (
        *("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"),
        *("Partita>SoftmaxCrossEntropy", "Partita>SoftmaxCrossEntropyGrad"),
    ),
}
_KIND_OF = {op: kind for kind, ops in _OPS_OF.items() for op in ops}
_PARSERS = {
    "bandwidth": parse_bytes_per_s,
    "efficiency": parse_share,
    "constant": parse_ns,
    "spread": parse_share,
}


def kind_of(op: str) -> str:
    """The kind of a memory-bound op."""
    return _KIND_OF.get(op, "default")


class MemoryNumbers(NamedTuple):
    """What is fitted for one kind of op: the bandwidth that `efficiency` is a share of, and the constant.

    `spread` is half the width of the 80 % interval in log time.
    """

    bandwidth_bytes_per_s: int
    efficiency: float
    constant_ns: float
    spread: float

    def time_ns(self, size_bytes: float) -> float:
        """Time of one op."""
        return size_bytes * 1e9 / (self.bandwidth_bytes_per_s * self.efficiency) + self.constant_ns

    def bounds_ns(self, time_ns: float) -> tuple[float, float]:
        """The 80 % interval of a time."""
        wider = exp(self.spread)
        return time_ns / wider, time_ns * wider


def _with_default(model: object, attribute: object, kinds: Mapping[str, MemoryNumbers]) -> None:
    if "default" not in kinds:
        raise InvalidArgumentError("a model of memory-bound ops has no kind 'default'; give rows of that kind")


@frozen(eq=False)
class MemoryBoundModel:
    """Numbers by kind of op, "default" at least; InvalidArgumentError without it."""

    kinds: Mapping[str, MemoryNumbers] = field(validator=_with_default)
    source: str = ""
    date: str = ""
    provenance: Provenance = "fitted"

    def numbers(self, kind: str = "default") -> MemoryNumbers:
        """The numbers of a kind, or of "default" where it has none."""
        return self.kinds.get(kind, self.kinds["default"])

    def predict(
        self, size_bytes: NDArray[Any], kind: str = "default", arithmetic_ns: NDArray[Any] | float = 0.0
    ) -> Prediction:  # Any: integers or floats of every width
        """Times of ops that move so many bytes, and compute for `arithmetic_ns` meanwhile."""
        numbers = self.numbers(kind)
        moved = np.asarray(size_bytes, np.float64) * (1e9 / (numbers.bandwidth_bytes_per_s * numbers.efficiency))
        time_ns: Floats = np.maximum(moved, arithmetic_ns) + numbers.constant_ns
        wider = np.exp(numbers.spread)
        return Prediction(time_ns, time_ns / wider, time_ns * wider, self.provenance)

    def to_table(self) -> dict[str, Any]:
        """The table `[fits.memory_bound]` of a calibration file: a table of sourced numbers by kind."""
        return {kind: self._sourced(numbers) for kind, numbers in self.kinds.items()}

    def _sourced(self, numbers: MemoryNumbers) -> dict[str, dict[str, str]]:
        texts = {
            "bandwidth": f"{numbers.bandwidth_bytes_per_s} B/s",
            "efficiency": f"{100 * numbers.efficiency:.6g} %",
            "constant": f"{round(numbers.constant_ns)} ns",
            "spread": f"{100 * numbers.spread:.6g} %",
        }
        return {key: {"value": text, "source": self.source, "date": self.date} for key, text in texts.items()}

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str) -> MemoryBoundModel:
        """The model that `to_table` wrote; InvalidArgumentError names `where` and the number that is wrong."""
        kinds: dict[str, MemoryNumbers] = {}
        first: Mapping[str, str] = {}
        for kind, values in table.items():
            if kind not in KINDS:
                raise InvalidArgumentError(f"{where}: unknown kind {kind!r}{suggestion(kind, list(KINDS))}")
            kinds[kind] = MemoryNumbers(*(_parsed(values, key, f"{where}.{kind}") for key in _PARSERS))
            first = first or values["bandwidth"]
        with naming(where):
            return cls(kinds, first.get("source", ""), first.get("date", ""))


def _parsed(values: Mapping[str, Any], key: str, where: str) -> Any:  # Any: a whole number or a share
    try:
        with naming(f"{where}: {key}"):
            return _PARSERS[key](values[key]["value"])
    except (KeyError, TypeError):
        raise InvalidArgumentError(f"{where}: {key!r} is missing; calibrate the device again") from None


def assumed_memory_bound(bandwidth_bytes_per_s: int) -> MemoryBoundModel:
    """What is assumed of a device that nobody has calibrated."""
    numbers = MemoryNumbers(bandwidth_bytes_per_s, ASSUMED_EFFICIENCY, ASSUMED_CONSTANT_NS, ASSUMED_SPREAD)
    return MemoryBoundModel({"default": numbers}, "assumed, as aiconfigurator does", "2026-11-23", "assumed")
