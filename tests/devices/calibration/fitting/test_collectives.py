"""The fit of collectives on curves that are known: it returns them, survives its table and follows the laws."""

from __future__ import annotations

import numpy as np
import pytest

from partita.devices.calibration.fitting.collectives import CollectiveRows, fit_collectives
from partita.devices.timing.collectives.kinds import bus_share
from partita.devices.timing.collectives.measured import CollectiveModel, library_name
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


def test_a_row_that_is_off_moves_its_curve_little() -> None:
    """One time among eleven that is twice as long: the others are met within 6 %."""
    given = rows()
    off = given.time_ns.copy()
    off[5] *= 2
    model = fit_collectives(given._replace(time_ns=off), source="test", date="2026-11-23")["mine"]
    said = model.predict("all_gather", 2, SIZES)
    others = np.arange(len(SIZES)) != 5
    assert np.abs(said.time_ns / curve("all_gather", 2) - 1)[others].max() < 0.06


def test_versions_of_the_library_are_kept_apart() -> None:
    """A curve is of the version of most of its rows; another one's are that much faster, in every curve."""
    given = rows()
    is_new = np.isin(given.size_bytes, SIZES[:2])
    times = np.where(is_new, 0.85 * given.time_ns, given.time_ns)
    versions = ["nccl/2.29" if new else "nccl/2.23" for new in is_new]
    model = fit_collectives(given._replace(time_ns=times, versions=versions), source="t", date="")["mine"]
    assert set(model.libraries.of_curves.values()) == {"nccl/2.23"}
    assert library_name(model.libraries.of("all_gather", 8)) == "NCCL 2.23"
    old, new = (model.predict("all_gather", 2, SIZES[:2], version=name).time_ns for name in ("", "nccl/2.29"))
    assert np.abs(old / curve("all_gather", 2)[:2] - 1).max() < 0.08
    assert np.abs(new / (0.85 * curve("all_gather", 2)[:2]) - 1).max() < 0.08
    assert (new < 0.93 * old).all()
    again = CollectiveModel.from_table(model.to_table(), "test")
    assert again.libraries.of_curves == model.libraries.of_curves
    assert again.libraries.shift("nccl/2.23", "nccl/2.29")[0] == pytest.approx(
        -again.libraries.shift("nccl/2.29", "nccl/2.23")[0]
    )


def test_rows_without_a_version_have_that_of_their_curve() -> None:
    """No version, or none for some rows: the same fit as with the commonest for all."""
    given = rows()
    some = ["nccl/2.23" if i % 3 else "" for i in range(len(given.systems))]
    every = ["nccl/2.23"] * len(given.systems)
    tables = [
        fit_collectives(given._replace(versions=v), source="t", date="")["mine"].to_table() for v in (some, every)
    ]
    assert tables[0] == tables[1]


def mesh_times(ranks: int, rings: int) -> np.ndarray:
    """A latency, and bytes over so many rings of 22 GB/s."""
    return 20_000 + bus_share("all_reduce", ranks) * SIZES / (22 * rings)


def test_rings_decide_over_links_that_join_pairs() -> None:
    """Counts that were not measured follow from their number of rings; other GPUs of one count likewise."""
    counts, rings = (2, 4, 8), {2: 1, 3: 2, 4: 4, 5: 0, 6: 2, 7: 4, 8: 6}
    given = CollectiveRows(
        ["mesh"] * len(SIZES) * 3,
        ["all_reduce"] * len(SIZES) * 3,
        np.repeat(counts, len(SIZES)),
        np.tile(SIZES, 3),
        np.concatenate([mesh_times(n, rings[n]) for n in counts]),
    )
    model = fit_collectives(given, source="t", date="", meshes={"mesh": rings})["mesh"]
    large = SIZES[-4:]
    for n in (3, 6, 7):
        said = model.predict("all_reduce", n, large)
        assert np.abs(said.time_ns / mesh_times(n, rings[n])[-4:] - 1).max() < 0.03
        assert said.provenance == "transferred"
    other = model.predict("all_reduce", 2, large, rings=2)
    assert np.abs(other.time_ns / mesh_times(2, 2)[-4:] - 1).max() < 0.03
    without, with_two = model.predict("all_reduce", 5, large), model.predict("all_reduce", 5, large, rings=2)
    assert (without.time_ns > 2 * with_two.time_ns).all()
    assert (without.high_ns / without.time_ns > 1.5).all()
    again = CollectiveModel.from_table(model.to_table(), "test")
    assert again.rings == model.rings == (1, 2, 4, 0, 2, 4, 6)


def test_a_pcie_tree_gets_slower_with_each_level() -> None:
    """Eight ranks that nobody measured: half of the bus bandwidth of four, and an interval that says so; not 16."""
    given = rows()
    slow = given._replace(time_ns=10 * given.time_ns)
    model = fit_collectives(slow, source="t", date="")["mine"]
    rates = {}
    for n in (4, 8, 16):
        said = model.predict("all_gather", n, SIZES[-1:])
        rates[n] = bus_share("all_gather", n) / said.time_ns[0]
    assert rates[8] / rates[4] == pytest.approx(0.5, rel=0.02)
    assert rates[16] / rates[8] > 0.9
    wide = model.predict("all_gather", 8, SIZES)
    assert wide.high_ns[-1] / wide.time_ns[-1] > 1.4 > 1.2 > wide.high_ns[0] / wide.time_ns[0]


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
