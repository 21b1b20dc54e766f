"""Products below 16 bits: the formula grows with every size, and each type moves its own bytes at its own rate."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings, strategies as st

from partita.devices import device_spec
from partita.devices.timing.fits.kernels.element_types import ELEMENT_TYPES, rate_of
from partita.devices.timing.fits.kernels.low_bit import COPIES, DTYPES, LowBitProducts
from partita.errors import InvalidArgumentError

B200 = device_spec("B200-SXM")
NUMBERS = [number.start for number in LowBitProducts.NUMBERS]
SIDES = st.integers(1, 20_000)


def products(dtype: str, *sizes: tuple[int, int, int]) -> LowBitProducts:
    """Products of one type."""
    m, n, k = (list(column) for column in zip(*sizes, strict=True))
    return LowBitProducts({"dtype": [dtype] * len(sizes)}, {"m": m, "n": n, "k": k})


@settings(max_examples=60)
@given(st.sampled_from(DTYPES), SIDES, SIDES, SIDES, st.integers(0, 2))
def test_a_larger_product_takes_no_less(dtype: str, m: int, n: int, k: int, side: int) -> None:
    """Each side on its own, with nothing read from the L2."""
    spec, larger = evolve(B200, l2_bytes=0), [m, n, k]
    larger[side] *= 2
    small, large = products(dtype, (m, n, k), (larger[0], larger[1], larger[2])).formula_ns(NUMBERS, spec)
    assert NUMBERS[0] <= small <= large * (1 + 1e-12)


@settings(max_examples=40)
@given(st.sampled_from(DTYPES), SIDES, SIDES, SIDES)
def test_a_higher_rate_or_bandwidth_takes_no_longer(dtype: str, m: int, n: int, k: int) -> None:
    """On a device that is otherwise the same."""
    rows = products(dtype, (m, n, k))
    faster = evolve(B200, name="faster", memory_bandwidth_bytes_per_s=2 * B200.memory_bandwidth_bytes_per_s)
    family = ELEMENT_TYPES[dtype].family
    rates = {**B200.peak_flops_per_s, family: 2 * B200.peak_flops_per_s[family]}
    assert rows.formula_ns(NUMBERS, faster)[0] <= rows.formula_ns(NUMBERS, B200)[0]
    assert (
        rows.formula_ns(NUMBERS, evolve(faster, name="both", peak_flops_per_s=rates))[0]
        <= (rows.formula_ns(NUMBERS, faster)[0])
    )


def test_bytes_are_those_of_the_types() -> None:
    """Of 16 x 32 by 32 x 64: inputs, weights with their scales, and a 16-bit result."""
    counted = {dtype: float(products(dtype, (16, 64, 32)).bytes[0]) for dtype in DTYPES}
    result, inputs, weights = 2 * 16 * 64, 16 * 32, 32 * 64
    assert counted["fp8"] == counted["fp8_block"] == counted["int8"] == inputs + weights + result
    assert counted["nvfp4"] == (inputs + weights) * 9 / 16 + result
    assert counted["int8_weights"] == 2 * inputs + weights + result
    assert counted["int4_weights"] == 2 * inputs + weights * (1 / 2 + 1 / 64) + result
    assert products("int8", (16, 64, 32)).quantised_bytes[0] == 0
    assert products("fp8", (16, 64, 32)).quantised_bytes[0] == 3 * inputs


def test_copies_of_weights_fill_the_cache() -> None:
    """Weights of half an L2 are used in two copies, tiny ones in five, larger ones alone."""
    spec = evolve(B200, l2_bytes=1 << 20)
    rows = products("fp8", (8, 1 << 10, 1 << 9), (8, 1 << 10, 1 << 5), (8, 1 << 11, 1 << 10))
    assert np.allclose(rows.copies(spec), [1, COPIES / 32, 2])


def test_units_that_a_gpu_lacks_are_named() -> None:
    """An H100 has no fp4."""
    with pytest.raises(InvalidArgumentError, match=r"H100-SXM has no fp4 units.*it has fp64, fp32, tf32, bf16"):
        rate_of(device_spec("H100-SXM"), "nvfp4")
    assert rate_of(B200, "nvfp4") == 2 * rate_of(B200, "fp8") == 4 * rate_of(B200, "bf16")
