"""Indices are permuted one by one, and to where TensorFlow puts them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run, shapes

SEED = np.array([1, 2, 3])
WORD = st.integers(-(2**31), 2**31 - 1)


@given(st.integers(0, 300), st.lists(WORD, min_size=3, max_size=3), st.sampled_from([4, 6, 8]))
def test_all_indices_together_are_a_permutation(largest: int, seed: list[int], rounds: int) -> None:
    """And each alone goes where it goes among the others."""
    every = np.arange(largest + 1)
    places = check_shapes("RandomIndexShuffle", every, np.array(seed), np.int64(largest), rounds=rounds)
    assert sorted(places.tolist()) == every.tolist()
    alone = check_shapes("RandomIndexShuffle", np.int64(largest), np.array(seed), np.int64(largest), rounds=rounds)
    assert alone == places[-1]


def test_places_are_tensorflows() -> None:
    """For small and for large permutations, TensorFlow 2.21 gives these."""
    places = run("RandomIndexShuffle", np.arange(6), SEED, np.int64(5))
    np.testing.assert_array_equal(places, [2, 0, 3, 4, 5, 1])
    places = run("RandomIndexShuffle", np.array([0, 10**6, 2**40]), SEED, np.int64(2**41), rounds=8)
    np.testing.assert_array_equal(places, [1817158054156, 902375775847, 675802459161])


def test_every_index_may_have_a_seed_and_a_largest_one() -> None:
    """Rows of seeds, vectors of limits."""
    seeds, limits = np.array([[1, 2, 3], [4, 5, 6]]), np.array([9, 100000])
    both = check_shapes("RandomIndexShuffle", np.array([3, 7]), seeds, limits)
    for row in range(2):
        assert run("RandomIndexShuffle", np.int64([3, 7][row]), seeds[row], limits[row]) == both[row]


@pytest.mark.parametrize(
    ("index", "seed", "largest", "message"),
    [
        (5, SEED, 3, "max_index must be >= index, but 3 < 5"),
        (-1, SEED, 3, "index must be >= 0 but was -1"),
        (1, SEED, -3, "max_index must be >= 0 but was -3"),
        (1, SEED[:2], 3, r"Seed must be a vector of size \[3\] or a matrix of size \[1, 3\] but got \[2\]"),
        ([1, 2], SEED, [3, 3, 3], "Index bust be a scalar or vector"),
        ([[1]], SEED, 3, "Index bust be a scalar or vector"),
    ],
)
def test_inputs_are_checked(index: Any, seed: np.ndarray, largest: Any, message: str) -> None:
    """The messages are TensorFlow's."""
    with pytest.raises(InvalidArgumentError, match=message):
        run("RandomIndexShuffle", np.array(index), seed, np.array(largest))


def test_rounds_come_in_pairs() -> None:
    """TensorFlow reads keys that are not there."""
    with pytest.raises(InvalidArgumentError, match="rounds must be even and at least 4, got 5"):
        run("RandomIndexShuffle", np.int64(1), SEED, np.int64(4), rounds=5)
    with pytest.raises(InvalidArgumentError, match=r"Seed must have shape \[3\] or \[n, 3\] but got \[2\]"):
        shapes("RandomIndexShuffle", (), (2,), ())


@given(st.integers(0, 20), st.integers(0, 2**63), st.integers(0, 2**63))
def test_shuffles_by_key_and_counter_lose_no_row(count: int, key: int, counter: int) -> None:
    """The same key and counter give the same order."""
    rows = np.arange(count * 2).reshape(count, 2)
    inputs = (np.array([key], np.uint64), np.array([counter, 0], np.uint64), np.int32(1))
    shuffled = check_shapes("StatelessShuffle", rows, *inputs)
    np.testing.assert_array_equal(shuffled[np.argsort(shuffled[:, 0])], rows)


def test_the_shuffle_by_key_is_tensorflows() -> None:
    """TensorFlow 2.21 gives this."""
    inputs = (np.array([5], np.uint64), np.array([7, 8], np.uint64), np.int32(1))
    np.testing.assert_array_equal(run("StatelessShuffle", np.arange(6), *inputs), [2, 0, 1, 3, 5, 4])
