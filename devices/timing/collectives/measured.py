"""Time of collectives inside one host, from measured curves of its system.

The fit (`calibration/fitting/collectives.py`) is a Gaussian process over the curves of all systems at hand, so the rows
of one system alone do not determine it. It is therefore evaluated once, at half octaves of size for every kind and for
2, 4, 8 ... ranks, and a model holds these knots: log time and its standard deviation. Between knots log time is
interpolated linearly in log size and in log ranks; above the last knot bytes per second stay, below the first the time.

    model.predict("all_reduce", 4, np.array([1e3, 1e9]))     -> times 14.4 us, 3.72 ms with their 80 % intervals

A broadcast takes as long as an all-gather whose ranks each receive as much, a send as long as a rank of an all-gather
of two takes to send its half, also where all ranks send at once, to the next one: these are said to be "transferred",
as is a time for more ranks than were measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats
from ..costs.source import Provenance
from ..fits.prediction import Prediction
from .kinds import MEASURED_KINDS, kind_named

Z80 = 1.2815515655446004  # four of five values of a normal distribution lie within so many standard deviations
_TRANSFER_SD = 0.15  # assumed, of log time: what deriving one kind from another adds
_KEYS = ("ranks", "first_log2_bytes", "knots_per_octave", "measured", "rows", "source", "date", "knots")


@frozen(eq=False)
class CollectiveModel:
    """The knots of one system: `log_ns` and `sd` have the shape (kind, rank count, size).

    `measured` has the (kind, ranks) that were measured, `rows` is the number of measurements.
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

    def predict(self, kind: str, ranks: int, size_bytes: NDArray[Any]) -> Prediction:  # Any: whole numbers or floats
        """Times of collectives of those sizes among `ranks` ranks; "transferred" where that curve was not measured."""
        kind, sizes = kind_named(kind), np.maximum(np.asarray(size_bytes, np.float64), 1.0)
        if ranks < 2:
            raise InvalidArgumentError(f"a collective of {ranks} ranks: it needs at least two")
        base, base_ranks, factor = kind, ranks, 1.0
        if kind == "broadcast":
            base, factor = "all_gather", ranks / (ranks - 1)
        elif kind in ("send_recv", "permute"):
            base, base_ranks, factor = "all_gather", 2, 2.0
        log_ns, sd = self._at(MEASURED_KINDS.index(base), base_ranks, np.log2(sizes * factor))
        is_measured = (kind, ranks) in self.measured
        if base != kind:
            sd = np.hypot(sd, _TRANSFER_SD)
        time_ns, spread = np.exp(log_ns), np.exp(Z80 * sd)
        source: Provenance = "fitted" if is_measured else "transferred"
        return Prediction(time_ns, time_ns / spread, time_ns * spread, source)

    def _at(self, kind: int, ranks: int, log2_bytes: Floats) -> tuple[Floats, Floats]:
        """Log time and standard deviation, between the knots of two rank counts."""
        known = np.log2(np.array(self.ranks, np.float64))
        place = np.interp(np.log2(ranks), known, np.arange(len(known)))
        below = min(int(place), len(known) - 2)
        weight = place - below
        low, high = (self._curve(kind, row, log2_bytes) for row in (below, below + 1))
        log_ns, sd = ((1 - weight) * a + weight * b for a, b in zip(low, high, strict=True))
        beyond = max(0.0, float(np.log2(ranks)) - float(known[-1]))
        return log_ns + beyond * np.log(2), sd + beyond * _TRANSFER_SD  # as if every rank took its turn

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
            "knots": "\n".join(lines) + "\n",
        }

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
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise InvalidArgumentError(
                f"{where}: {error!r}; it needs {', '.join(_KEYS)} as a calibration writes them"
            ) from None
        if log_ns.ndim != 3 or log_ns.shape != sd.shape or len(ranks) < 2 or octave < 1:
            raise InvalidArgumentError(f"{where}: knots of different lengths; write the table by a calibration")
        return cls(ranks, first, octave, log_ns, sd, measured, rows, source, date)


def _with_runs(words: list[str]) -> list[str]:
    """Words with each run of equal ones as one: ["a", "b", "b"] -> ["a", "bx2"]."""
    runs = [(word, len(list(same))) for word, same in groupby(words)]
    return [word if count == 1 else f"{word}x{count}" for word, count in runs]


def _run(word: str) -> list[str]:
    """The words that one of `_with_runs` stands for."""
    value, _, count = word.partition("x")
    return [value] * (int(count) if count else 1)
