"""Gradients of depthwise convolutions add products in the order of the taps and of the images, as TensorFlow does."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from partita.devices.kernels.nn.depthwise_arithmetic import depthwise_filter_gradient, depthwise_input_gradient
from partita.devices.kernels.nn.sliding import Sweep
from partita.graph.ops.nn.windows import walk


@st.composite
def sweeps(draw: st.DrawFn) -> tuple[Sweep, tuple[int, int]]:
    """A window that walks over an image, and the sizes of the image."""
    window, strides, dilations = (tuple(draw(st.lists(st.integers(1, 3), min_size=2, max_size=2))) for _ in range(3))
    sizes = tuple((k - 1) * d + draw(st.integers(1, 5)) for k, d in zip(window, dilations, strict=True))
    padding, border = draw(st.sampled_from(["SAME", "VALID", "EXPLICIT"])), draw(st.integers(0, 3))
    walks = [
        walk(n, k, s, d, padding, (border, 3 - border))
        for n, k, s, d in zip(sizes, window, strides, dilations, strict=True)
    ]
    return Sweep(window, strides, dilations, tuple(walks)), (sizes[0], sizes[1])


def drawn(seed: int, *shape: int) -> np.ndarray:
    """float32 numbers of eleven binary digits: their products are exact, their sums are rounded."""
    return (np.random.default_rng(seed).integers(-1024, 1024, shape) / 256).astype(np.float32)


@given(sweeps(), st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
def test_order_of_sums(swept: tuple[Sweep, tuple[int, int]], channels: int, multiplier: int, seed: int) -> None:
    """Bit for bit what loops over taps give."""
    sweep, sizes = swept
    x, w = drawn(seed, 2, *sizes, channels), drawn(seed + 1, *sweep.window, channels, multiplier)
    y = drawn(seed + 2, 2, *sweep.output, channels * multiplier)
    parts, padded = y.reshape(*y.shape[:-1], channels, multiplier), sweep.padded(x)
    spread = np.zeros((*padded.shape, multiplier), np.float32)
    filters = np.zeros_like(w)
    for tap, seen in sweep.taps():
        spread[seen] += parts * w[tap]
        products = (padded[seen][..., None] * parts).reshape(2, -1, channels, multiplier)
        for image in products:
            total = np.zeros(w.shape[2:], np.float32)
            for product in image:
                total += product
            filters[tap] += total
    to_input = spread[sweep.inside(sizes)][..., 0].copy()
    for other in range(1, multiplier):
        to_input += spread[sweep.inside(sizes)][..., other]
    np.testing.assert_array_equal(depthwise_input_gradient(y, w, sizes, sweep), to_input)
    np.testing.assert_array_equal(depthwise_filter_gradient(x, y, w.shape, sweep), filters)
