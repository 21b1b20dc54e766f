"""A recurrent cell is its equations; an LSTM over time is its cell, step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run

BATCH, INPUTS, CELLS = 2, 3, 4


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def lstm_inputs(seed: int) -> list[np.ndarray]:
    """State, weights of [input, output] for gates i, c, f, o, peepholes and bias."""
    shapes = [(BATCH, CELLS)] * 2 + [(INPUTS + CELLS, 4 * CELLS)] + [(CELLS,)] * 3 + [(4 * CELLS,)]
    return [numbers(seed + i, *shape) for i, shape in enumerate(shapes)]


@settings(max_examples=20)
@given(st.integers(0, 99), st.booleans(), st.sampled_from([-1.0, 0.5]))
def test_lstm_cell_is_its_equations(seed: int, peephole: bool, clip: float) -> None:
    """With and without peepholes and clipping."""
    x, (cell, h, w, wci, wcf, wco, b) = numbers(seed + 50, BATCH, INPUTS), lstm_inputs(seed)
    got = check_shapes("LSTMBlockCell", x, cell, h, w, wci, wcf, wco, b, use_peephole=peephole, cell_clip=clip)
    i, c, f, o = np.split(np.concatenate([x, h], 1) @ w + b, 4, axis=1)
    i, f = sigmoid(i + peephole * wci * cell), sigmoid(f + 1 + peephole * wcf * cell)
    new = i * np.tanh(c) + f * cell
    new = np.clip(new, -clip, clip) if clip > 0 else new
    o = sigmoid(o + peephole * wco * new)
    for mine, expected in zip(got, (i, new, f, o, np.tanh(c), np.tanh(new), o * np.tanh(new)), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-5)


@settings(max_examples=10)
@given(st.integers(0, 99), st.integers(0, 3))
def test_block_lstm_is_its_cell_step_by_step(seed: int, length: int) -> None:
    """Up to the given length; after it everything is zero."""
    x, (cell, h, *weights) = numbers(seed + 50, 3, BATCH, INPUTS), lstm_inputs(seed)
    got = check_shapes("BlockLSTM", np.int64(length), x, cell, h, *weights)
    for time in range(3):
        if time >= length:
            assert not any(value[time].any() for value in got)
            continue
        step = run("LSTMBlockCell", x[time], cell, h, *weights)
        cell, h = step[1], step[6]
        for mine, expected in zip(got, step, strict=True):
            np.testing.assert_array_equal(mine[time], expected)


@settings(max_examples=20)
@given(st.integers(0, 99))
def test_gru_cell_is_its_equations(seed: int) -> None:
    """Reset gate first in the joined weights, then the update gate."""
    x, h = numbers(seed, BATCH, INPUTS), numbers(seed + 1, BATCH, CELLS)
    w, wc = numbers(seed + 2, INPUTS + CELLS, 2 * CELLS), numbers(seed + 3, INPUTS + CELLS, CELLS)
    b, bc = numbers(seed + 4, 2 * CELLS), numbers(seed + 5, CELLS)
    got = check_shapes("GRUBlockCell", x, h, w, wc, b, bc)
    r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ w + b), 2, axis=1)
    c = np.tanh(np.concatenate([x, h * r], 1) @ wc + bc)
    for mine, expected in zip(got, (r, u, c, u * h + (1 - u) * c), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-5)


def test_weights_that_do_not_fit_are_named() -> None:
    """With the shape they should have."""
    x, h, bias = np.ones((2, 3), np.float32), np.ones((2, 4), np.float32), np.ones(8, np.float32)
    wrong = np.ones((3, 8), np.float32)
    with pytest.raises(InvalidArgumentError, match=r"weights must have shape \[7,8\], not \[3,8\]"):
        run("GRUBlockCell", x, h, wrong, wrong, bias, bias[:4])
