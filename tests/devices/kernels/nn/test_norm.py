"""Batch norm gives channels of mean 0 and variance 1 before scale and offset; its gradient is the derivative."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run, shapes

NONE = np.zeros(0, np.float32)


def tensor(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@settings(max_examples=25)
@given(st.integers(0, 99), st.sampled_from(["NHWC", "NCHW"]))
def test_training_normalises_each_channel(seed: int, layout: str) -> None:
    """y has the offset as its mean and the scale as its deviation, channel by channel."""
    x, axis = tensor(seed, 3, 4, 5, 6), 3 if layout == "NHWC" else 1
    channels = x.shape[axis]
    scale, offset = np.abs(tensor(seed + 1, channels)) + 1, tensor(seed + 2, channels)
    y, mean, variance, *_ = check_shapes(
        "FusedBatchNormV3", x, scale, offset, NONE, NONE, is_training=True, epsilon=1e-7, data_format=layout
    )
    axes = tuple(a for a in range(4) if a != axis)
    count = x.size // channels
    np.testing.assert_allclose(y.mean(axis=axes), offset, atol=1e-4)
    np.testing.assert_allclose(y.std(axis=axes), scale, rtol=1e-3)
    np.testing.assert_allclose(mean, x.mean(axis=axes), atol=1e-5)
    np.testing.assert_allclose(variance, x.var(axis=axes) * count / (count - 1), rtol=1e-4)


@given(st.integers(0, 99))
@settings(max_examples=20)
def test_inference_uses_what_it_is_given(seed: int) -> None:
    """The given mean and variance are also outputs."""
    x, mean = tensor(seed, 2, 3, 3, 4), tensor(seed + 1, 4)
    variance, scale, offset = np.abs(tensor(seed + 2, 4)) + 0.1, tensor(seed + 3, 4), tensor(seed + 4, 4)
    got = check_shapes("FusedBatchNormV3", x, scale, offset, mean, variance, is_training=False, epsilon=1e-3)
    np.testing.assert_allclose(got[0], (x - mean) / np.sqrt(variance + 1e-3) * scale + offset, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(got[1], mean)
    np.testing.assert_array_equal(got[2], variance)


def test_running_statistics_are_blended() -> None:
    """exponential_avg_factor is the weight of this batch."""
    x, old = tensor(0, 2, 3, 3, 1), np.array([3], np.float32)
    plain = run("FusedBatchNormV3", x, old, old, NONE, NONE, is_training=True)
    blended = run("FusedBatchNormV3", x, old, old, old, old, is_training=True, exponential_avg_factor=0.25)
    for i in (1, 2):
        np.testing.assert_allclose(blended[i], 0.75 * old + 0.25 * plain[i], rtol=1e-5)


@pytest.mark.parametrize("training", [True, False])
@settings(max_examples=15)
@given(st.integers(0, 99))
def test_gradient_is_the_directional_derivative(training: bool, seed: int) -> None:
    """A small step along a direction changes <y, dy> by what the gradients say."""
    x, scale, offset, dy = (
        tensor(seed, 2, 2, 3, 2),
        tensor(seed + 1, 2),
        tensor(seed + 2, 2),
        tensor(seed + 3, 2, 2, 3, 2),
    )
    mean, variance = tensor(seed + 4, 2), np.abs(tensor(seed + 5, 2)) + 0.5

    def value(x: np.ndarray, scale: np.ndarray, offset: np.ndarray) -> float:
        axes = (0, 1, 2)
        m, v = (x.mean(axes), x.var(axes)) if training else (mean, variance)
        return float((((x - m) / np.sqrt(v + 1e-2) * scale + offset) * dy).sum())

    used = run("FusedBatchNormV3", x, scale, offset, *((NONE, NONE) if training else (mean, variance)),
               is_training=training, epsilon=1e-2)  # fmt: skip
    grads = check_shapes(
        "FusedBatchNormGradV3", dy, x, scale, used[3], used[4], NONE, is_training=training, epsilon=1e-2
    )
    point = [a.astype(np.float64) for a in (x, scale, offset)]
    for i in range(3):
        direction = np.random.default_rng(seed + i).standard_normal(point[i].shape)
        step = 1e-5
        ahead, behind = ([*point[:i], point[i] + s * direction, *point[i + 1 :]] for s in (step, -step))
        slope = (value(*ahead) - value(*behind)) / (2 * step)
        np.testing.assert_allclose(np.vdot(grads[i], direction), slope, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_tensors_keep_float_statistics(dtype: type[np.generic]) -> None:
    """The tensor stays half, mean and variance are float32."""
    one = np.ones(2, np.float32)
    y, mean, *_ = run("FusedBatchNormV3", np.ones((1, 2, 2, 2), dtype), one, one, NONE, NONE)
    assert y.dtype == dtype
    assert mean.dtype == np.float32


def test_an_empty_batch_has_no_mean() -> None:
    """The statistics are NaN, as in TensorFlow."""
    one = np.ones(2, np.float32)
    y, mean, *_ = check_shapes("FusedBatchNormV3", np.ones((0, 2, 2, 2), np.float32), one, one, NONE, NONE)
    assert y.shape == (0, 2, 2, 2)
    assert np.isnan(mean).all()


@given(st.integers(0, 99), st.integers(0, 6))
@settings(max_examples=20)
def test_lrn_divides_by_near_channels(seed: int, radius: int) -> None:
    """By the definition, channel by channel; its gradient by a difference quotient."""
    x = tensor(seed, 1, 2, 2, 5)
    attrs = {"depth_radius": radius, "bias": 1.5, "alpha": 0.3, "beta": 0.6}

    def direct(x: np.ndarray) -> np.ndarray:
        near = np.stack([np.square(x[..., max(c - radius, 0) : c + radius + 1]).sum(-1) for c in range(5)], -1)
        return np.asarray(x / (1.5 + 0.3 * near) ** 0.6)

    y = check_shapes("LRN", x, **attrs)
    np.testing.assert_allclose(y, direct(x.astype(np.float64)), rtol=1e-4)
    dy, direction, step = tensor(seed + 1, *x.shape), tensor(seed + 2, *x.shape), 1e-5
    slope = (
        (direct(x + step * direction.astype(np.float64)) - direct(x - step * direction.astype(np.float64))) * dy
    ).sum()
    got = np.vdot(check_shapes("LRNGrad", dy, x, y, **attrs), direction)
    np.testing.assert_allclose(got, slope / (2 * step), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("x", "scale", "attrs", "message"),
    [
        ((2, 3, 2), (2,), {}, "input must be 4 or 5-dimensional[2,3,2]"),
        ((2, 3, 2, 2), (3,), {}, "scale must have the same number of elements as the channels of x, got 3 and 2"),
        ((2, 3, 2, 2), (2, 1), {}, "scale must be 1-dimensional[2,1]"),
        (
            (2, 3, 2, 2),
            (2,),
            {"is_training": False},
            "When is_training=false, mean must have the same number of elements as the channels of x, got 0 and 2",
        ),
    ],
)
def test_vectors_that_do_not_fit_are_named(
    x: tuple[int, ...], scale: tuple[int, ...], attrs: dict[str, Any], message: str
) -> None:
    """The message is TensorFlow's."""
    with pytest.raises(InvalidArgumentError) as caught:
        run(
            "FusedBatchNormV3",
            np.ones(x, np.float32),
            np.ones(scale, np.float32),
            np.ones(2, np.float32),
            NONE,
            NONE,
            **attrs,
        )
    assert caught.value.message == message


def test_vectors_tell_the_channels() -> None:
    """They give the channels of a tensor of unknown shape."""
    got = shapes("FusedBatchNormV3", (2, 3, 4, None), (5,), None, None, None, is_training=True)
    assert got == [(2, 3, 4, 5), (5,), (5,), (5,), (5,), None]
