"""How tensors are cut, and how parameters are put into units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.parallel.zero.layout import Cut, Place, Sharding, ranks_of
from partita.graph.parallel.zero.units import buckets, unit_names


@given(st.lists(st.integers(1, 5), max_size=3), st.integers(1, 9))
def test_shards_are_the_tensor(shape: list[int], parts: int) -> None:
    """One after the other they have every element once; with padding all are equally long."""
    cut = Cut(tuple(shape), parts)
    elements = np.arange(cut.size)
    places = [Place(position, 0) for position in range(parts)]
    shards = [elements[cut.begin(place) : cut.begin(place) + cut.rows(place)] for place in places]
    assert np.array_equal(np.concatenate(shards), elements)
    assert all(0 <= cut.rows(place) <= cut.part for place in places)
    assert cut.part * parts == cut.padded >= cut.size > cut.padded - parts
    assert cut.is_even == (len({len(shard) for shard in shards}) == 1)


@given(st.integers(1, 6), st.integers(1, 6))
def test_every_replica_has_its_place(parts: int, groups: int) -> None:
    """Neighbours are in one group, in the order of their ranks."""
    sharding = Sharding.of(parts * groups, parts)
    places = [sharding.place(rank) for rank in range(parts * groups)]
    assert places == [Place(position, group) for group in range(groups) for position in range(parts)]


def test_groups_have_one_size() -> None:
    """The error names the sizes that come out even."""
    with pytest.raises(InvalidArgumentError, match="zero_group=4: 6 replicas cannot .* choose one of 1, 2, 3, 6"):
        Sharding.of(6, 4)


def test_ranks_are_those_of_collectives() -> None:
    """By task first, then by number, which is not the order of names."""
    devices = ["/device:CPU:10", "/device:CPU:2", "/job:worker/task:1/device:CPU:0", "/job:worker/task:0/device:CPU:3"]
    assert ranks_of(devices) == [1, 0, 3, 2]


NAMES = ["model/embed/table", "model/block_0/w", "model/block_0/b", "model/block_1/w", "model/head"]


def test_units_by_scopes() -> None:
    """The first level on which names differ, or the longest scope that is named; others are one unit."""
    assert unit_names(NAMES, None) == ["model/embed", "model/block_0", "model/block_0", "model/block_1", "model/head"]
    assert unit_names(NAMES, ["model/block_0", "model"]) == ["model", "model/block_0", "model/block_0", "model", "model"]
    assert unit_names(NAMES, ["model/block_1/"]) == ["", "", "", "model/block_1", ""]
    assert unit_names(["w", "b"], None) == ["w", "b"]
    assert unit_names(["a/w"], None) == ["a/w"]


@pytest.mark.parametrize(
    ("units", "message"),
    [
        (["model/block"], "scope 'model/block' has no parameter that is updated; there are .*'model/block_0'"),
        (["model", "model/"], "scope 'model' is named twice"),
    ],
)
def test_units_without_parameters_are_refused(units: list[str], message: str) -> None:
    """The error names the nearest scopes."""
    with pytest.raises(InvalidArgumentError, match=message):
        unit_names(NAMES, units)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 9))), st.integers(1, 20))
def test_buckets_keep_the_order(items: list[tuple[int, int]], most: int) -> None:
    """Each has one kind, and not more bytes than asked for unless it is a single tensor."""
    found = buckets(items, lambda item: item[0], lambda item: item[1], most)
    assert [item for bucket in found for item in bucket] == items
    for bucket in found:
        assert len({kind for kind, _ in bucket}) == 1
        assert len(bucket) == 1 or sum(size for _, size in bucket) <= most
