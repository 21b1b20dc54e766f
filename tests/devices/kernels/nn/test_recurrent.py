"""A recurrent cell is its equations; an LSTM over time is its cell, step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run

BATCH, INPUTS, CELLS = 2, 3, 4
Weights = tuple[np.ndarray, np.ndarray]


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


def lstm_loss(weights: Weights, *inputs: np.ndarray) -> float:
    """The weighted sum of a cell's new state and output."""
    _, cell, *_, h = run("LSTMBlockCell", *inputs, use_peephole=True, cell_clip=0.0)
    return float((cell * weights[0] + h * weights[1]).sum(dtype=np.float64))


def test_gradient_of_an_lstm_cell() -> None:
    """Slopes along the previous cell, the bias of the four gates and the peepholes."""
    inputs, d_cell, d_h = (
        [numbers(60, BATCH, INPUTS), *lstm_inputs(3)],
        numbers(70, BATCH, CELLS),
        numbers(71, BATCH, CELLS),
    )
    outputs = run("LSTMBlockCell", *inputs, use_peephole=True, cell_clip=0.0)
    d_before, d_gates, *d_peeps = check_shapes(
        "LSTMBlockCellGrad", *inputs, *outputs[:6], d_cell, d_h, use_peephole=True
    )
    found = {1: d_before, 7: d_gates.sum(axis=0)} | dict(zip((4, 5, 6), d_peeps, strict=True))
    for port, gradient in found.items():
        direction = numbers(80 + port, *gradient.shape)
        moved = [
            lstm_loss((d_cell, d_h), *inputs[:port], inputs[port] + s * direction, *inputs[port + 1 :])
            for s in (np.float32(1e-2), np.float32(-1e-2))
        ]
        np.testing.assert_allclose((moved[0] - moved[1]) / 2e-2, (gradient * direction).sum(), rtol=2e-2, atol=2e-3)


def test_gradient_of_an_lstm_over_time_in_its_own_order_of_gates() -> None:
    """Version two of the gradient is version one with two gates exchanged."""
    cell, h, w, *peeps, bias = lstm_inputs(5)
    x, outputs = numbers(90, 2, BATCH, INPUTS), [numbers(91 + i, 2, BATCH, CELLS) for i in range(9)]
    order = np.arange(4 * CELLS).reshape(4, CELLS)[[0, 2, 1, 3]].reshape(-1)
    first = check_shapes("BlockLSTMGrad", np.int64(2), x, cell, h, w, *peeps, bias, *outputs, use_peephole=True)
    second = check_shapes(
        "BlockLSTMGradV2", np.int64(2), x, cell, h, w[:, order], *peeps, bias, *outputs, use_peephole=True
    )
    for port, (a, b) in enumerate(zip(first, second, strict=True)):
        np.testing.assert_allclose(b, a[..., order] if port in (3, 7) else a, rtol=1e-5, atol=1e-5)


def test_gradient_of_a_gru_cell() -> None:
    """Slopes along the input and the previous output, and along both biases."""
    ranks = [(BATCH, INPUTS), (BATCH, CELLS), (7, 2 * CELLS), (7, CELLS), (2 * CELLS,), (CELLS,)]
    inputs, d_h = [numbers(i, *shape) for i, shape in enumerate(ranks)], numbers(9, BATCH, CELLS)
    r, u, c, _ = run("GRUBlockCell", *inputs)
    d_x, d_before, d_new, d_gates = check_shapes("GRUBlockCellGrad", *inputs, r, u, c, d_h)
    for port, gradient in {0: d_x, 1: d_before, 4: d_gates.sum(axis=0), 5: d_new.sum(axis=0)}.items():
        direction = numbers(80 + port, *gradient.shape)
        moved = [
            (run("GRUBlockCell", *inputs[:port], inputs[port] + s * direction, *inputs[port + 1 :])[3] * d_h).sum()
            for s in (np.float32(1e-2), np.float32(-1e-2))
        ]
        np.testing.assert_allclose((moved[0] - moved[1]) / 2e-2, (gradient * direction).sum(), rtol=2e-2, atol=2e-3)


def test_weights_that_do_not_fit_are_named() -> None:
    """With the shape they should have."""
    x, h, bias = np.ones((2, 3), np.float32), np.ones((2, 4), np.float32), np.ones(8, np.float32)
    wrong = np.ones((3, 8), np.float32)
    with pytest.raises(InvalidArgumentError, match=r"w_ru.dims\(0\) != input_size \+ cell_size: 3 vs. 7"):
        run("GRUBlockCell", x, h, wrong, wrong, bias, bias[:4])
