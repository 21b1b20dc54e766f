"""Expert layers: what each setting does to the time of the formula."""

from __future__ import annotations

from typing import Any

import pytest

from partita.devices import device_spec
from partita.devices.timing.fits.kernels.experts import ExpertLayers, skews

B200 = device_spec("B200-SXM")
NUMBERS = [number.start for number in ExpertLayers.NUMBERS]
SIZES: dict[str, Any] = {
    "tokens": 256,
    "hidden": 4096,
    "intermediate": 2048,
    "experts": 128,
    "top_k": 8,
    "tp": 1,
    "ep": 1,
}


def layer(dtype: str = "bf16", **changed: Any) -> ExpertLayers:  # Any: sizes
    """One layer, some sizes changed."""
    counts = {"products": 3, "skew": 1, **SIZES, **changed}
    return ExpertLayers({"dtype": [dtype], "kernel": ["default"]}, {name: [size] for name, size in counts.items()})


def time_ns(of: ExpertLayers) -> float:
    """By the numbers where a search begins."""
    return float(of.formula_ns(NUMBERS, B200)[0])


@pytest.mark.parametrize("change", [{"ep": 4}, {"tp": 4}, {"products": 2}, {"hidden": 2048}, {"intermediate": 1024}])
def test_less_work_takes_less_time(change: dict[str, Any]) -> None:
    """Experts on more GPUs, in parts, without a gate, smaller ones."""
    assert NUMBERS[0] < time_ns(layer(**change)) < time_ns(layer())


def test_more_tokens_and_a_wider_type_take_longer() -> None:
    """Of a layer bound by weights, and of one bound by operations."""
    times = [time_ns(layer(tokens=tokens)) for tokens in (1, 16, 256, 4096, 65536)]
    assert times == sorted(times)
    assert time_ns(layer("w4a8_mxfp4_mxfp8")) < time_ns(layer("fp8")) < time_ns(layer())


def test_skew_makes_the_busiest_slower_and_leaves_experts_out() -> None:
    """With the experts on many GPUs the busiest one has more rows; on one GPU fewer weights are read."""
    many: dict[str, Any] = {"ep": 16, "tokens": 4096}
    alone: dict[str, Any] = {"tokens": 32}
    skew = int(skews([1.2])[0])
    assert time_ns(layer(**many, skew=skew)) > time_ns(layer(**many))
    assert layer(**alone, skew=skew).weight_bytes[0] < layer(**alone).weight_bytes[0]


def test_operations_and_bytes_are_counted() -> None:
    """All rows times three products; the weights of every expert once."""
    rows = SIZES["tokens"] * SIZES["top_k"]
    assert layer().flops[0] == 2 * rows * 3 * 4096 * 2048
    assert layer().weight_bytes[0] == 128 * 3 * 4096 * 2048 * 2
    assert layer("nvfp4").weight_bytes[0] == 128 * 3 * 4096 * 2048 * 9 / 16
