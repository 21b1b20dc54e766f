"""Folds: every row is predicted once, from rows of other keys."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from partita.devices.calibration.validation.cross_validation import dealt_folds
from partita.devices.calibration.validation.rows import MeasuredRows

PAIRS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 6)), min_size=1, max_size=30)


def rows_of(pairs: list[tuple[str, int]]) -> MeasuredRows:
    """Rows with two key columns."""
    names, sizes = zip(*pairs, strict=True)
    keys = {"system": np.array(names), "m": np.array(sizes, np.int64)}
    texts = {name: tuple(map(str, column)) for name, column in keys.items()}
    return MeasuredRows(("t.csv:2",) * len(pairs), texts, keys, {"latency_ms": np.ones(len(pairs))})


@given(PAIRS, st.integers(2, 5))
def test_folds_share_the_rows(pairs: list[tuple[str, int]], count: int) -> None:
    """A row is tested once, never with its key among those fitted to; folds of a group differ by one key at most."""
    rows = rows_of(pairs)
    folds = dealt_folds(rows, count, ["system"])
    assert sorted(np.concatenate([fold.test for fold in folds]).tolist()) == list(range(len(pairs)))
    for fold in folds:
        assert sorted([*fold.fit.tolist(), *fold.test.tolist()]) == list(range(len(pairs)))
        assert not {pairs[i] for i in fold.fit} & {pairs[i] for i in fold.test}
    sizes = [len({pairs[i] for i in fold.test if pairs[i][0] == "a"}) for fold in folds]
    sizes += [0] * (count - len(folds))
    assert max(sizes) - min(sizes) <= 1
