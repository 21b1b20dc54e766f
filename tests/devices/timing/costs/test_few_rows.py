"""Grouped products smaller than those of the fit: led to the roofline, and not known as well."""

from __future__ import annotations

from itertools import pairwise

import pytest

from partita.devices import OpCost, device_spec, grouped_product_cost


def cost(m: int, n: int = 4096, k: int = 7168, device: str = "B200-SXM") -> OpCost:
    """Of 256 groups."""
    return grouped_product_cost(device_spec(device), groups=256, m=m, n=n, k=k, stage="fwd")


@pytest.mark.parametrize("device", ["B200-SXM", "H100-SXM"])
def test_few_rows_come_near_the_bytes(device: str) -> None:
    """The time falls to what the weights take, and never below; the interval widens with each halving."""
    costs = [cost(m, device=device) for m in (128, 64, 16, 4, 1)]
    for larger, smaller in pairwise(costs):
        assert smaller.time_ns < larger.time_ns
        assert widths(smaller) > widths(larger)
    spec = device_spec(device)
    least_ns = costs[-1].bytes * 1e9 / spec.achieved_bytes_per_s
    assert least_ns < costs[-1].time_ns < max(1.05 * least_ns, costs[0].time_ns)


def widths(said: OpCost) -> float:
    """How far the ends of the interval are apart."""
    assert said.low_ns is not None
    assert said.high_ns is not None
    return said.high_ns / said.low_ns


def test_small_matrices_are_led_to_the_roofline_too() -> None:
    """256 groups of 256 x 512 by 512: the latency of each large group says nothing of them."""
    said, large = cost(256, 512, 512), cost(256)
    assert said.time_ns < large.time_ns / 15
    assert said.time_ns > max(said.bytes / 7.7e12, said.flops / 2.25e15) * 1e9


def test_inside_the_range_the_fit_speaks() -> None:
    """The time that the fit has always said: 256 groups of 128 rows, 3.95 ms on a B200."""
    assert cost(128).time_ns == pytest.approx(3_946_776, rel=1e-3)
