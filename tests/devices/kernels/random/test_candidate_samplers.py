"""Samplers of classes draw as often as their distributions say, and the classes that TensorFlow draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.random.philox import seeded
from partita.devices.kernels.random.unigrams import AliasTable, LearnedUnigrams, fixed_weights
from partita.devices.kernels.random.words import Words
from partita.devices.state import DeviceState
from partita.errors import InvalidArgumentError, NotFoundError
from tests.devices.kernels.harness import check_shapes, run, shapes

TRUE = np.array([[3, 1], [0, 7]])
ATTRS: dict[str, Any] = {"num_true": 2, "num_sampled": 4, "range_max": 8, "seed": 5, "seed2": 7}
UNIGRAMS = (5.0, 1.0, 0.5, 7.0, 2.0, 2.25, 9.0)
SAMPLERS: dict[str, dict[str, Any]] = {
    "UniformCandidateSampler": {},
    "LogUniformCandidateSampler": {},
    "LearnedUnigramCandidateSampler": {},
    "ThreadUnsafeUnigramCandidateSampler": {},
    "FixedUnigramCandidateSampler": {"unigrams": UNIGRAMS, "num_reserved_ids": 1, "distortion": 0.75},
}
# TensorFlow 2.21 gives, in two runs of one session: samples, and the expected counts of the first true and sampled one.
TENSORFLOW: list[tuple[str, bool, list[tuple[list[int], float, float]]]] = [
    ("Uniform", False, [([6, 7, 7, 0], 0.5, 0.5), ([3, 1, 4, 5], 0.5, 0.5)]),
    ("Uniform", True, [([6, 7, 0, 2], 0.48709106, 0.48709106), ([3, 1, 4, 5], 0.5, 0.5)]),
    ("LogUniform", False, [([2, 0, 3, 0], 0.406228, 0.523719), ([4, 2, 0, 1], 0.406228, 0.33191246)]),
    ("LogUniform", True, [([2, 0, 3, 6], 0.4740516, 0.5691469), ([4, 2, 0, 1], 0.406228, 0.33191246)]),
    ("LearnedUnigram", False, [([6, 7, 7, 4], 0.5, 0.5), ([1, 0, 0, 0], 0.6666667, 0.6666667)]),
    ("LearnedUnigram", True, [([6, 7, 4, 0], 0.6073041, 0.6073041), ([1, 0, 5, 3], 0.66510206, 0.66510206)]),
    ("FixedUnigram", False, [([7, 4, 4, 6], 0.13245139, 1.157473), ([1, 1, 7, 4], 0.13245139, 0.7448289)]),
    ("FixedUnigram", True, [([7, 4, 6, 5], 0.18293852, 0.87121427), ([1, 7, 4, 3], 0.2361531, 0.8076418)]),
]  # fmt: skip


@pytest.mark.parametrize(("op", "unique", "runs"), TENSORFLOW)
def test_samples_are_tensorflows(op: str, unique: bool, runs: list[tuple[list[int], float, float]]) -> None:
    """The second run continues the stream, and knows what the first one learned."""
    op = f"{op}CandidateSampler"
    state, attrs = DeviceState(0), ATTRS | SAMPLERS[op] | {"unique": unique}
    check_shapes(op, TRUE, **attrs)
    for sampled, of_true, of_sampled in runs:
        drawn, true_counts, sampled_counts = run(op, TRUE, state=state, **attrs)
        np.testing.assert_array_equal(drawn, sampled)
        np.testing.assert_allclose([true_counts[0, 0], sampled_counts[0]], [of_true, of_sampled], rtol=1e-6)


@pytest.mark.parametrize("op", SAMPLERS)
@given(st.integers(1, 7), st.integers(1, 999))
def test_unique_samples_are_different_classes(op: str, count: int, seed: int) -> None:
    """As many as asked for."""
    every = np.arange(8).reshape(8, 1)
    attrs = ATTRS | SAMPLERS[op] | {"num_true": 1, "num_sampled": count, "seed": seed, "unique": True}
    drawn, _, _ = run(op, every, **attrs)
    assert len(set(drawn.tolist())) == count == len(drawn)
    assert drawn.min() >= 0
    assert drawn.max() < 8


@pytest.mark.parametrize("op", SAMPLERS)
def test_classes_come_as_often_as_expected(op: str) -> None:
    """Frequencies of many samples match the expected counts."""
    every = np.arange(8).reshape(8, 1)
    attrs = ATTRS | SAMPLERS[op] | {"num_true": 1, "num_sampled": 40000, "unique": False}
    drawn, expected, _ = run(op, every, **attrs)
    np.testing.assert_allclose(np.bincount(drawn, minlength=8) / 40000, expected[:, 0] / 40000, atol=0.01)


@pytest.mark.parametrize("op", SAMPLERS)
@given(st.integers(1, 999))
def test_few_samples_are_the_first_of_many(op: str, seed: int) -> None:
    """A few are drawn one by one, many at once."""
    attrs = ATTRS | SAMPLERS[op] | {"seed": seed, "unique": False}
    few, many = (run(op, TRUE, **attrs | {"num_sampled": count})[0] for count in (64, 100))
    np.testing.assert_array_equal(few, many[:64])


@given(st.lists(st.floats(0, 100, width=32), min_size=1, max_size=20).filter(any), st.integers(0, 99))
def test_an_alias_table_never_draws_what_has_no_weight(weights: list[float], seed: int) -> None:
    """Each draw has a probability above zero; the probabilities add up to one."""
    table = AliasTable(np.array(weights, np.float32))
    assert (table.probabilities[table.draw(Words(seeded(seed, 1)), 50)] > 0).all()
    np.testing.assert_allclose(table.probabilities.sum(), 1, rtol=1e-5)


def test_weights_are_of_one_shard() -> None:
    """Reserved classes have none; the others are counted on from the shard's reserved ones, as in TensorFlow."""
    given_weights = (1.0, 2.0, 3.0, 4.0, 5.0)
    assert fixed_weights(given_weights, "", 1.0, 0, 1, 0).tolist() == [1, 2, 3, 4, 5]
    assert fixed_weights(given_weights, "", 2.0, 2, 1, 0).tolist() == [0, 0, 1, 4, 9, 16, 25]
    assert fixed_weights(given_weights, "", 1.0, 3, 2, 1).tolist() == [0, 1, 3, 5]
    assert fixed_weights(given_weights, "", 1.0, 0, 2, 2).tolist() == []


def test_weights_may_come_from_a_file(tmp_path: Path) -> None:
    """The last column of each line that is not empty."""
    path = tmp_path / "vocabulary"
    path.write_bytes(b"a,b,3\r\n4\n\nx, 1e2\n")
    assert fixed_weights((), str(path), 1.0, 0, 1, 0).tolist() == [3, 4, 100]
    path.write_text("x,zz\n")
    with pytest.raises(InvalidArgumentError, match="Wrong vocabulary format at line: x,zz"):
        fixed_weights((), str(path), 1.0, 0, 1, 0)
    with pytest.raises(NotFoundError, match="No such file"):
        fixed_weights((), str(tmp_path / "none"), 1.0, 0, 1, 0)


def test_counts_stay_below_31_bits() -> None:
    """Beyond that nothing is learned."""
    unigrams = LearnedUnigrams(3)
    unigrams.counts[0] = 2**31 - 5
    unigrams.learn(np.array([1]))
    unigrams.learn(np.array([1, 1, 2]))
    assert unigrams.counts.tolist() == [2**31 - 5, 3, 1]


def test_all_classes_are_sampled_once() -> None:
    """In order, each expected once."""
    sampled, of_true, of_sampled = check_shapes("AllCandidateSampler", TRUE, num_true=2, num_sampled=8, unique=True)
    assert sampled.tolist() == list(range(8))
    assert (of_true == 1).all()
    assert (of_sampled == 1).all()


@given(st.integers(1, 3), st.data())
def test_accidental_hits_are_true_classes_that_were_sampled(num_true: int, data: st.DataObject) -> None:
    """Row by row; of a class that was sampled twice the last place, as in TensorFlow."""
    rows = data.draw(st.lists(st.lists(st.integers(0, 5), min_size=num_true, max_size=num_true), max_size=4))
    sampled = data.draw(st.lists(st.integers(0, 7), max_size=8))
    true = np.array(rows, np.int64).reshape(-1, num_true)
    indices, ids, weights = check_shapes("ComputeAccidentalHits", true, np.array(sampled, np.int64), num_true=num_true)
    last = {number: place for place, number in enumerate(sampled)}
    expected = [(row, last[c]) for row, classes in enumerate(rows) for c in classes if c in last]
    assert list(zip(indices.tolist(), ids.tolist(), strict=True)) == expected
    assert (weights == np.finfo(np.float32).min).all()


@pytest.mark.parametrize(
    ("op", "true", "attrs", "message"),
    [
        ("UniformCandidateSampler", [1], {}, "true_classes must be a matrix"),
        ("UniformCandidateSampler", [[1]], {}, "must have num_true columns, expected: 1 was: 2"),
        ("LogUniformCandidateSampler", [[1, 8]], {}, r"`true_candidate` out of range \[0, 8\), received 8"),
        ("LearnedUnigramCandidateSampler", [[1, -1]], {}, r"`true_candidate` out of range \[0, 8\), received -1"),
        ("UniformCandidateSampler", [[1, 1]], {"num_sampled": 9}, "Sampler's range is too small"),
        ("FixedUnigramCandidateSampler", [[1, 1]], {}, "Must provide either vocab_file or unigrams"),
        ("FixedUnigramCandidateSampler", [[1, 1]], {"unigrams": (1.0,), "vocab_file": "x"}, "Must only provide one of"),
        ("FixedUnigramCandidateSampler", [[1, 1]], {"unigrams": (1.0,)}, "must be equal to weights size  1"),
        ("FixedUnigramCandidateSampler", [[1, 1]], {"unigrams": (1.0,) + (0.0,) * 7}, "1 classes have a weight"),
        ("ComputeAccidentalHits", [[1, 1]], {}, "must be a vector"),
    ],
)
def test_classes_and_attrs_are_checked(op: str, true: Any, attrs: dict[str, Any], message: str) -> None:
    """The messages are TensorFlow's, but for weights that never give enough classes, where it does not return."""
    if op == "ComputeAccidentalHits":
        with pytest.raises(InvalidArgumentError, match=message):
            run(op, np.array(true), np.array([[1]]), num_true=2)
        return
    with pytest.raises(InvalidArgumentError, match=message):
        run(op, np.array(true), **(ATTRS | {"unique": True} | attrs))


def test_shapes_follow_from_the_attrs() -> None:
    """The number of true rows may be unknown."""
    assert shapes("UniformCandidateSampler", (None, 2), unique=True, **ATTRS) == [(4,), (None, 2), (4,)]
    assert shapes("ComputeAccidentalHits", (3, 2), (5,), num_true=2) == [(None,)] * 3
