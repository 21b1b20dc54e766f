"""The CTC loss is minus the logarithm of a sum over all paths; its gradient is that sum's; decoding takes the best."""

from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import FailedPreconditionError, InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run


def loss_by_paths(scores: Array, labels: list[int]) -> float:
    """The definition: every sequence of classes that collapses to the labels."""
    steps, classes = scores.shape
    y = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    total = 0.0
    for path in product(range(classes), repeat=steps):
        if [c for c, _ in groupby(path) if c != classes - 1] == labels:
            total += np.prod([y[t, c] for t, c in enumerate(path)])
    return float(-np.log(total)) if total else np.inf


def loss(scores: Array, labels: list[int], lengths: list[int] | None = None, **attrs: Any) -> tuple[Array, Array]:
    """Loss and gradient of a batch of one."""
    places = np.array([[0, i] for i in range(len(labels))], np.int64).reshape(-1, 2)
    ends = np.array([len(scores)] if lengths is None else lengths, np.int32)
    losses, gradients = check_shapes("CTCLoss", scores[:, None], places, np.array(labels, np.int32), ends, **attrs)
    return losses, gradients


@given(st.integers(1, 4), st.lists(st.integers(0, 1), min_size=1, max_size=3), st.integers(0, 99))
def test_loss_is_that_of_all_paths(steps: int, labels: list[int], seed: int) -> None:
    """It is infinite if there is no path."""
    scores = np.random.default_rng(seed).normal(size=(steps, 3))
    if len(labels) > steps:
        with pytest.raises(InvalidArgumentError, match="Not enough time for target transition sequence"):
            loss(scores, labels)
        assert loss(scores, labels, ignore_longer_outputs_than_inputs=True)[0] == 0
    else:
        np.testing.assert_allclose(loss(scores, labels)[0][0], loss_by_paths(scores, labels), rtol=1e-9)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=2), st.booleans(), st.integers(0, 99))
def test_gradient_is_the_slope_of_the_loss(labels: list[int], merge: bool, seed: int) -> None:
    """Compared with central differences."""
    scores = np.random.default_rng(seed).normal(size=(4, 3))
    gradient = loss(scores, labels, ctc_merge_repeated=merge)[1][:, 0]
    for place in np.ndindex(scores.shape):
        step = np.zeros_like(scores)
        step[place] = 1e-5
        ahead, behind = (loss(scores + sign * step, labels, ctc_merge_repeated=merge)[0][0] for sign in (1, -1))
        np.testing.assert_allclose(gradient[place], (ahead - behind) / 2e-5, rtol=1e-5, atol=1e-7)


def test_steps_past_the_end_count_for_nothing() -> None:
    """They change neither the loss nor the gradient."""
    scores = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    short, whole = loss(scores[:3], [0, 1]), loss(scores, [0, 1], lengths=[3])
    np.testing.assert_array_equal(short[0], whole[0])
    np.testing.assert_array_equal(np.concatenate([short[1], np.zeros((2, 1, 3))]), whole[1])


@pytest.mark.parametrize(
    ("labels", "lengths", "message"),
    [
        ([], [3], "Labels length is zero in batch 0"),
        ([-1], [3], "All labels must be nonnegative integers, batch: 0 labels: -1"),
        ([0], [4], r"sequence_length\(0\) <= 3"),
        ([0], [3, 3], "len.sequence_length. != batch_size"),
    ],
)
def test_what_does_not_fit_is_refused(labels: list[int], lengths: list[int], message: str) -> None:
    """The error has TensorFlow's words."""
    places = np.array([[0, i] for i in range(len(labels))], np.int64).reshape(-1, 2)
    with pytest.raises(InvalidArgumentError, match=message):
        run("CTCLoss", np.zeros((3, 1, 3)), places, np.array(labels, np.int32), np.array(lengths, np.int32))


def test_greedy_decoding() -> None:
    """Repetitions are merged if requested, blanks and steps past the end are left out."""
    classes = [[0, 0, 2, 0, 1], [2, 1, 1, 1, 1]]
    scores = np.eye(3, dtype=np.float32)[np.array(classes).T] * 2
    lengths = np.array([5, 3], np.int32)
    indices, values, shape, total = check_shapes("CTCGreedyDecoder", scores, lengths, merge_repeated=True)
    assert values.tolist() == [0, 0, 1, 1]
    assert indices.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0]]
    assert (shape.tolist(), total.tolist()) == ([2, 3], [[-10], [-6]])
    assert run("CTCGreedyDecoder", scores, lengths)[1].tolist() == [0, 0, 0, 1, 1, 1]
    assert run("CTCGreedyDecoder", scores, lengths, blank_index=0)[1].tolist() == [2, 1, 2, 1, 1]
    with pytest.raises(InvalidArgumentError, match="blank_index expected to be between -3 and 2 but was 3"):
        run("CTCGreedyDecoder", scores, lengths, blank_index=3)
    with pytest.raises(FailedPreconditionError, match=r"sequence_length\(0\) <= 5"):
        run("CTCGreedyDecoder", scores, lengths + 1)


@given(st.integers(1, 5), st.integers(2, 3), st.integers(0, 99))
def test_a_wide_beam_search_is_exact(steps: int, classes: int, seed: int) -> None:
    """The probability of each sequence is the sum over its paths; the most probable come first."""
    scores = np.random.default_rng(seed).normal(size=(steps, classes)) * 2
    *_, shape, chances = check_shapes(
        "CTCBeamSearchDecoder", scores[:, None], np.array([steps], np.int32), beam_width=200, top_paths=1
    )
    sequences = {
        tuple(c for c, _ in groupby(path) if c != classes - 1) for path in product(range(classes), repeat=steps)
    }
    exact = {sequence: -loss_by_paths(scores, list(sequence)) for sequence in sequences}
    np.testing.assert_allclose(chances, [[max(exact.values())]])
    best = max(exact, key=lambda sequence: exact[sequence])
    assert shape[1] == len([label for label, _ in groupby(best)])


def test_paths_of_a_narrow_beam_search() -> None:
    """Sequences and log probabilities that TensorFlow 2.21 gives; equal labels in a row are merged in the output."""
    scores = np.zeros((3, 1, 3), np.float32)
    scores[:, 0, 0], scores[1, 0, 0], scores[1, 0, 2], scores[2, 0, 1] = 5, 0, 9, 0.5
    attrs: dict[str, Any] = {"beam_width": 5, "top_paths": 3}
    got = check_shapes("CTCBeamSearchDecoder", scores, np.array([3], np.int32), merge_repeated=False, **attrs)
    assert [values.tolist() for values in got[3:6]] == [[0, 0], [0], [0, 1]]
    assert got[6].tolist() == [1, 2]
    np.testing.assert_allclose(got[9], [[-0.03132248, -4.3289366, -4.531]], rtol=1e-5)
    merged = run("CTCBeamSearchDecoder", scores, np.array([3], np.int32), **attrs)
    assert [values.tolist() for values in merged[3:6]] == [[0], [0], [0, 1]]


def test_more_paths_than_beams() -> None:
    """Are refused, by the attrs or when there are fewer sequences."""
    scores = np.zeros((1, 1, 2))
    with pytest.raises(InvalidArgumentError, match="requested more paths than the beam width"):
        run("CTCBeamSearchDecoder", scores, np.array([1], np.int32), beam_width=1, top_paths=2)
    with pytest.raises(InvalidArgumentError, match="Less leaves in the beam search than requested"):
        run("CTCBeamSearchDecoder", scores, np.array([1], np.int32), beam_width=9, top_paths=3)
