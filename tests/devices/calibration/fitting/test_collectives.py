"""The fit of collectives on curves that are known: it returns them, survives its table and follows the laws."""

from __future__ import annotations

import numpy as np
import pytest

from partita.devices.calibration.fitting.collectives import CollectiveRows, fit_collectives
from partita.devices.timing.collectives.kinds import bus_share
from partita.devices.timing.collectives.measured import CollectiveModel
from partita.errors import InvalidArgumentError

SIZES = np.array([1 << e for e in range(9, 30, 2)])


def curve(kind: str, ranks: int, sizes: np.ndarray = SIZES) -> np.ndarray:
    """A latency that grows with ranks and a bus bandwidth of 240 GB/s - 100 / ranks."""
    return 8_000 + 1_000 * (ranks - 1) + bus_share(kind, ranks) * sizes / (240 - 100 / ranks)


def rows(ranks: tuple[int, ...] = (2, 4), systems: tuple[str, ...] = ("mine",)) -> CollectiveRows:
    """Curves of two kinds."""
    keys = [(s, kind, n) for s in systems for kind in ("all_gather", "all_reduce") for n in ranks]
    return CollectiveRows(
        [s for s, _, _ in keys for _ in SIZES],
        [kind for _, kind, _ in keys for _ in SIZES],
        np.array([n for _, _, n in keys for _ in SIZES]),
        np.concatenate([SIZES for _ in keys]),
        np.concatenate([curve(kind, n) for _, kind, n in keys]),
    )


def test_curves_are_met_between_their_sizes() -> None:
    """At sizes between those of the fit the error stays below 3 %."""
    model = fit_collectives(rows(), source="test", date="2026-11-23")["mine"]
    for kind in ("all_gather", "all_reduce"):
        for n in (2, 4):
            said = model.predict(kind, n, SIZES[:-1] * 2)
            assert np.abs(said.time_ns / curve(kind, n, SIZES[:-1] * 2) - 1).max() < 0.03
            assert said.provenance == "fitted"


def test_eight_ranks_follow_from_two_and_four() -> None:
    """An unseen rank count follows the law within 8 %, and its interval is wider."""
    model = fit_collectives(rows(), source="test", date="2026-11-23")["mine"]
    seen, unseen = (model.predict("all_gather", n, SIZES) for n in (4, 8))
    assert np.abs(unseen.time_ns / curve("all_gather", 8) - 1).max() < 0.08
    assert unseen.provenance == "transferred"
    assert (unseen.high_ns / unseen.time_ns > seen.high_ns / seen.time_ns).all()


def test_a_table_holds_the_whole_model() -> None:
    """A model read from its table says the same to four digits; equal rows give equal tables."""
    model = fit_collectives(rows(), source="test", date="2026-11-23")["mine"]
    again = CollectiveModel.from_table(model.to_table(), "test")
    assert np.allclose(again.predict("broadcast", 8, SIZES).time_ns, model.predict("broadcast", 8, SIZES).time_ns, 1e-3)
    assert again.to_table() == model.to_table()
    assert fit_collectives(rows(), source="test", date="2026-11-23")["mine"].to_table() == model.to_table()


def test_a_system_learns_rank_counts_from_others() -> None:
    """Rows of 8 ranks of another system change what is said of 8 ranks, one system alone works too."""
    both = rows(systems=("mine", "other"))
    eight = rows((8,), ("other",))
    slower = CollectiveRows(
        [*both.systems, *eight.systems],
        [*both.kinds, *eight.kinds],
        np.concatenate([both.ranks, eight.ranks]),
        np.concatenate([both.size_bytes, eight.size_bytes]),
        np.concatenate([both.time_ns, eight.time_ns * 1.5]),
    )
    before, after = (fit_collectives(r, source="test", date="2026-11-23")["mine"] for r in (both, slower))
    assert (after.predict("all_gather", 8, SIZES).time_ns > 1.1 * before.predict("all_gather", 8, SIZES).time_ns).all()


def test_wrong_rows_and_tables_are_refused() -> None:
    """Too few rows of a curve, a time of nothing and a broken table are errors."""
    good = rows()
    with pytest.raises(InvalidArgumentError, match="a curve needs 3 sizes"):
        fit_collectives(
            CollectiveRows(["a"], ["all_gather"], np.array([2]), np.array([512]), np.array([9e3])), source="", date=""
        )
    with pytest.raises(InvalidArgumentError, match="not above 0"):
        fit_collectives(good._replace(time_ns=good.time_ns * 0), source="", date="")
    with pytest.raises(InvalidArgumentError, match=r"file x: .*as a calibration writes them"):
        CollectiveModel.from_table({"ranks": [2]}, "file x")
