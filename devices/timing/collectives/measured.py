"""Time of collectives inside one host, from measured curves of its system.

The fit (`calibration/fitting/collectives.py`) is a Gaussian process over the curves of all systems at hand, so the rows
of one system alone do not determine it. It is therefore evaluated once, at half octaves of size for every kind and for
2, 4, 8 ... ranks, and a model holds these knots: log time and its standard deviation. Between knots log time is
interpolated linearly in log size, between rank counts by latency and bytes that leave a rank; above the last knot bytes
per second stay, below the first the time.

    model.predict("all_reduce", 4, np.array([1e3, 1e9]))     -> times 14.4 us, 3.72 ms with their 80 % intervals

A broadcast takes as long as an all-gather whose ranks each receive as much, a send as long as a rank of an all-gather
of two takes to send its half, also where all ranks send at once, to the next one: these are said to be "transferred",
as is a time for more ranks than were measured.

Curves of a library's version differ from those of another by a shift of log time (`LibraryVersions`). Where links join
ranks in pairs, each rank count has the number of rings that the curves are of; over other rings the part of the time
that bytes take is that many times shorter or longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from math import log2
from typing import Any

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats
from ..costs.source import Provenance
from ..fits.prediction import Prediction
from .kinds import MEASURED_KINDS, bus_share, kind_named

Z80 = 1.2815515655446004  # four of five values of a normal distribution lie within so many standard deviations
_TRANSFER_SD = 0.15  # assumed, of log time: what deriving one kind from another adds
_BETWEEN_SD = 0.05  # assumed, of log time of a rank count midway between two
_NO_RING_RATE = 0.4  # assumed: of the rate of a ring, of ranks without one, which go over PCIe
_NO_RING_SD = 0.5  # assumed, of log time there
_OTHER_RINGS_SD = 0.08  # assumed, of log time, for each doubling of the rings beside those of the curve
_OTHER_VERSION_SD = 0.05  # assumed, of log time of a version that was not measured beside that of the curve
_KEYS = ("ranks", "first_log2_bytes", "knots_per_octave", "measured", "rows", "source", "date", "knots")


@frozen
class LibraryVersions:
    """The versions of the library that curves were measured with: by (kind, ranks), and shifts between versions.

    `shifts` has by (version, version of a curve) how much longer the former takes, in log time.
    """

    of_curves: Mapping[tuple[str, int], str] = field(factory=dict)
    shifts: Mapping[tuple[str, str], float] = field(factory=dict)

    def of(self, kind: str, ranks: int) -> str:
        """The version of a curve, of the nearest one if that was not measured; "" where none is known."""
        curves = [key for key in self.of_curves if key[0] == kind] or list(self.of_curves)
        nearest = min(curves, key=lambda key: (abs(log2(key[1] / ranks)), key), default=None)
        return self.of_curves[nearest] if nearest is not None else ""

    def shift(self, wanted: str, base: str) -> tuple[float, float]:
        """From the version `base` to the one that is wanted: log time, and its standard deviation."""
        if not wanted or wanted == base:
            return 0.0, 0.0
        known = self.shifts.get((wanted, base))
        if known is None and (wanted, base)[::-1] in self.shifts:
            known = -self.shifts[base, wanted]
        return (0.0, _OTHER_VERSION_SD) if known is None else (known, _OTHER_VERSION_SD / 2)


@frozen(eq=False)
class CollectiveModel:
    """The knots of one system: `log_ns` and `sd` have the shape (kind, rank count, size).

    `measured` has the (kind, ranks) that were measured, `rows` is the number of measurements. `rings` is empty where
    ranks reach each other through a switch or over PCIe, else it has how many the knots of each rank count are of.
    """

    ranks: tuple[int, ...]
    first_log2_bytes: float
    knots_per_octave: int
    log_ns: Floats
    sd: Floats
    measured: frozenset[tuple[str, int]]
    rows: int
    source: str
    date: str
    libraries: LibraryVersions = field(factory=LibraryVersions)
    rings: tuple[int, ...] = ()

    def predict(
        self,
        kind: str,
        ranks: int,
        size_bytes: NDArray[Any],  # Any: whole numbers or floats
        *,
        rings: int | None = None,
        version: str = "",
    ) -> Prediction:
        """Times of collectives of those sizes among `ranks` ranks; "transferred" where that curve was not measured.

        `rings` are those of the ranks in question where links join pairs (0: none visits all), None those of the first
        ranks of the system that was measured. `version` is that of the library, "" that of the curve.
        """
        kind, sizes = kind_named(kind), np.maximum(np.asarray(size_bytes, np.float64), 1.0)
        if ranks < 2:
            raise InvalidArgumentError(f"a collective of {ranks} ranks: it needs at least two")
        base, base_ranks, factor = kind, ranks, 1.0
        if kind == "broadcast":
            base, factor = "all_gather", ranks / (ranks - 1)
        elif kind in ("send_recv", "permute"):
            base, base_ranks, factor = "all_gather", 2, 2.0
        log_ns, sd = self._at(MEASURED_KINDS.index(base), base_ranks, np.log2(sizes * factor))
        is_measured = (kind, ranks) in self.measured and (rings is None or rings == self.rings_of(ranks))
        if self.rings and rings is not None:
            log_ns, sd = self._over(rings, MEASURED_KINDS.index(base), base_ranks, log_ns, sd)
        shift, spread_of_shift = self.libraries.shift(version, self.libraries.of(base, base_ranks))
        log_ns, sd = log_ns + shift, np.hypot(sd, spread_of_shift)
        if base != kind:
            sd = np.hypot(sd, _TRANSFER_SD)
        time_ns, spread = np.exp(log_ns), np.exp(Z80 * sd)
        source: Provenance = "fitted" if is_measured else "transferred"
        return Prediction(time_ns, time_ns / spread, time_ns * spread, source)

    def rings_of(self, ranks: int) -> int:
        """The rings that the knots of a rank count are of; 0 where there are none, or no ring visits all ranks."""
        return self.rings[self.ranks.index(ranks)] if self.rings and ranks in self.ranks else 0

    def _over(self, rings: int, kind: int, ranks: int, log_ns: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """Log time and standard deviation over other rings than those of the knots: bytes take as much longer."""
        own = self.rings_of(ranks)
        if rings == own:
            return log_ns, sd
        ratio = (own or _NO_RING_RATE) / (rings or _NO_RING_RATE)
        latency = np.exp(self._at(kind, ranks, np.zeros(1))[0][0])
        log_ns = np.log(latency + np.maximum(np.exp(log_ns) - latency, 0.0) * ratio)
        return log_ns, np.hypot(sd, _OTHER_RINGS_SD * abs(log2(ratio)) if rings else _NO_RING_SD)

    def _at(self, kind: int, ranks: int, log2_bytes: Floats) -> tuple[Floats, Floats]:
        """Log time and standard deviation, between the knots of two rank counts."""
        known = np.log2(np.array(self.ranks, np.float64))
        place = np.interp(np.log2(ranks), known, np.arange(len(known)))
        below = min(int(place), len(known) - 2)
        weight = place - below
        if not 0 < weight < 1:
            log_ns, sd = self._curve(kind, below + round(weight), log2_bytes)
        else:
            log_ns, sd = self._between(kind, ranks, (below, below + 1), weight, log2_bytes)
        beyond = max(0.0, float(np.log2(ranks)) - float(known[-1]))
        return log_ns + beyond * np.log(2), sd + beyond * _TRANSFER_SD  # as if every rank took its turn

    def _between(
        self, kind: int, ranks: int, rows: tuple[int, int], weight: float, log2_bytes: Floats
    ) -> tuple[Floats, Floats]:
        """Between two rank counts: of their latencies in log time, of the rest by the bytes that leave a rank."""
        log_latency, rest, sd = 0.0, np.zeros(np.shape(log2_bytes)), np.zeros(np.shape(log2_bytes))
        for row, share in zip(rows, (1 - weight, weight), strict=True):
            log_ns, own_sd = self._curve(kind, row, log2_bytes)
            (start,), _ = self._curve(kind, row, np.zeros(1))
            bytes_ratio = bus_share(MEASURED_KINDS[kind], ranks) / bus_share(MEASURED_KINDS[kind], self.ranks[row])
            log_latency += share * float(start)
            rest += share * bytes_ratio * np.maximum(np.exp(log_ns) - np.exp(start), 0.0)
            sd += share * own_sd
        between_sd = _BETWEEN_SD * np.sqrt(4 * weight * (1 - weight))
        return np.log(np.exp(log_latency) + rest), np.hypot(sd, between_sd)

    def _curve(self, kind: int, row: int, log2_bytes: Floats) -> tuple[Floats, Floats]:
        count = self.log_ns.shape[2]
        knots = self.first_log2_bytes + np.arange(count) / self.knots_per_octave
        beyond = np.maximum(log2_bytes - knots[-1], 0.0)
        log_ns = np.interp(log2_bytes, knots, self.log_ns[kind, row]) + beyond * np.log(2)
        outside = beyond + np.maximum(knots[0] - log2_bytes, 0.0)
        return log_ns, np.interp(log2_bytes, knots, self.sd[kind, row]) * (1 + 0.1 * outside)

    def to_table(self) -> dict[str, object]:
        """The table `[fits.collectives]`: a line of the text `knots` is a curve, then its standard deviations.

        ".11x40" stands for 40 equal values.
        """
        lines = []
        for k, kind in enumerate(MEASURED_KINDS):
            for r, ranks in enumerate(self.ranks):
                log_ns = (f"{value:.3f}" for value in self.log_ns[k, r])  # to 0.1 % of the time
                sd = _with_runs([f"{value:.2g}".removeprefix("0") for value in self.sd[k, r]])
                lines += [f"{kind} {ranks} log_ns {' '.join(log_ns)}", f"{kind} {ranks} sd {' '.join(sd)}"]
        return {
            "source": self.source,
            "date": self.date,
            "rows": self.rows,
            "ranks": list(self.ranks),
            "measured": [f"{kind} {ranks}" for kind, ranks in sorted(self.measured)],
            "first_log2_bytes": self.first_log2_bytes,
            "knots_per_octave": self.knots_per_octave,
            **self._optional(),
            "knots": "\n".join(lines) + "\n",
        }

    def _optional(self) -> dict[str, object]:
        """What not every table has: rings, and the versions of libraries."""
        table: dict[str, object] = {"rings": list(self.rings)} if self.rings else {}
        of_curves, shifts = self.libraries.of_curves, self.libraries.shifts
        if of_curves:
            table["versions"] = [f"{kind} {ranks} {name}" for (kind, ranks), name in sorted(of_curves.items())]
        if shifts:
            table["shifts"] = [f"{a} over {b}: {shift:.3f}" for (a, b), shift in sorted(shifts.items())]
        return table

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str) -> CollectiveModel:
        """The model of a table that `to_table` wrote; InvalidArgumentError, beginning with `where`, for any other."""
        try:
            ranks = tuple(int(count) for count in table["ranks"])
            curves: dict[tuple[str, str, str], list[float]] = {}
            for line in table["knots"].splitlines():
                kind, count, name, *values = line.split()
                curves[kind, count, name] = [float(v) for word in values for v in _run(word)]
            log_ns, sd = (
                np.array([[curves[kind, str(count), name] for count in ranks] for kind in MEASURED_KINDS])
                for name in ("log_ns", "sd")
            )
            pairs = (text.split() for text in table["measured"])
            measured = frozenset((kind, int(count)) for kind, count in pairs)
            first, octave = float(table["first_log2_bytes"]), int(table["knots_per_octave"])
            rows, source, date = int(table["rows"]), str(table["source"]), str(table["date"])
            libraries = _libraries(table.get("versions", ()), table.get("shifts", ()))
            rings = tuple(int(count) for count in table.get("rings", ()))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise InvalidArgumentError(
                f"{where}: {error!r}; it needs {', '.join(_KEYS)} as a calibration writes them"
            ) from None
        shapes = {log_ns.shape, sd.shape}
        if log_ns.ndim != 3 or len(shapes) > 1 or len(ranks) < 2 or octave < 1 or len(rings) not in (0, len(ranks)):
            raise InvalidArgumentError(f"{where}: knots of different lengths; write the table by a calibration")
        return cls(ranks, first, octave, log_ns, sd, measured, rows, source, date, libraries, rings)


def _libraries(versions: Sequence[str], shifts: Sequence[str]) -> LibraryVersions:
    """What `_optional` wrote."""
    of_curves = {}
    for line in versions:
        kind, ranks, name = line.split(" ", 2)
        of_curves[kind, int(ranks)] = name
    by_pair = {}
    for line in shifts:
        names, _, shift = line.rpartition(": ")
        wanted, _, base = names.partition(" over ")
        by_pair[wanted, base] = float(shift)
    return LibraryVersions(of_curves, by_pair)


_LIBRARIES = {"nccl": "NCCL", "trtllm": "TensorRT-LLM"}


def library_name(version: str) -> str:
    """A library and its version as people write it: "nccl/2.23" -> "NCCL 2.23"; others as they are."""
    library, slash, number = version.partition("/")
    return f"{_LIBRARIES.get(library, library)} {number}" if slash else version


def _with_runs(words: list[str]) -> list[str]:
    """Words with each run of equal ones as one: ["a", "b", "b"] -> ["a", "bx2"]."""
    runs = [(word, len(list(same))) for word, same in groupby(words)]
    return [word if count == 1 else f"{word}x{count}" for word, count in runs]


def _run(word: str) -> list[str]:
    """The words that one of `_with_runs` stands for."""
    value, _, count = word.partition("x")
    return [value] * (int(count) if count else 1)
