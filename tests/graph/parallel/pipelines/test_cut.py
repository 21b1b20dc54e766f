"""Cuts of a chain: the slowest stage is as fast as can be; of such cuts the one with the fewest crossings counts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.parallel.pipelines.cut import cut_positions

numbers = st.lists(st.integers(0, 9), min_size=1, max_size=9)


def best(costs: Sequence[int], crossings: Sequence[int], stages: int) -> tuple[int, int]:
    """By trying all cuts: the cost of the slowest stage, and the fewest crossings with it."""
    inner = range(1, len(costs))
    cuts = ([0, *places, len(costs)] for places in combinations(inner, stages - 1))
    return min(value(costs, crossings, cut) for cut in cuts)


def value(costs: Sequence[int], crossings: Sequence[int], cut: Sequence[int]) -> tuple[int, int]:
    return max(sum(costs[a:b]) for a, b in pairwise(cut)), sum(crossings[at] for at in cut[1:-1])


@given(numbers, st.data())
def test_best_cut(costs: list[int], data: st.DataObject) -> None:
    """The cut is as good as the best of all cuts; every stage has a node."""
    crossings = data.draw(st.lists(st.integers(0, 5), min_size=len(costs) + 1, max_size=len(costs) + 1))
    stages = data.draw(st.integers(1, len(costs)))
    cut = cut_positions(costs, crossings, stages)
    assert len(cut) == stages + 1
    assert all(a < b for a, b in pairwise(cut))
    assert value(costs, crossings, cut) == best(costs, crossings, stages)


def test_too_few_nodes() -> None:
    """Fewer nodes than stages cannot be cut."""
    with pytest.raises(InvalidArgumentError, match="2 nodes cannot be cut into 3 stages; use fewer stages"):
        cut_positions([1, 1], [0, 1, 0], 3)
