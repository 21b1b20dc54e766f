"""Grouped products: laws of the formula, its cap, and the table of the file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.timing.fits.grouped import GroupedModel, GroupedNumbers, GroupedProducts
from partita.errors import InvalidArgumentError

PEAK = 2e15
MODEL = GroupedModel(
    {
        "fwd": GroupedNumbers(5e3, 7e12, 1e15, 2, 0.2),
        "bwd_grad_act": GroupedNumbers(6e3, 7e12, 1.1e15, 1.2, 0.2),
        "bwd_grad_w": GroupedNumbers(1e3, 6e12, 1e15, 1.4, 0.1),
    },
    PEAK,
    {"groups": (20, 256), "m": (128, 9832), "n": (3072, 7168), "k": (1536, 7168)},
    "rig.csv",
    "2026-11-23",
)
SIZES = {"groups": 40, "m": 616, "n": 3072, "k": 5120, "gradient_bytes": 4}


def products(stage: str = "fwd", **changed: int) -> GroupedProducts:
    """One row of the usual sizes, some of them changed."""
    return GroupedProducts([stage], **{name: [size] for name, size in {**SIZES, **changed}.items()})


@given(
    st.sampled_from(["fwd", "bwd_grad_act", "bwd_grad_w"]),
    *(st.integers(1, most) for most in (512, 1 << 14, 1 << 14, 1 << 14)),
)
def test_twice_a_size_never_takes_less(stage: str, groups: int, m: int, n: int, k: int) -> None:
    """Whatever doubles; and nothing is faster than the peak."""
    sizes = {"groups": groups, "m": m, "n": n, "k": k}
    one = products(stage, **sizes)
    time_ns = MODEL.predict(one).time_ns[0]
    assert time_ns >= one.flops[0] * 1e9 / PEAK
    for name, size in sizes.items():
        assert MODEL.predict(products(stage, **{**sizes, name: 2 * size})).time_ns[0] >= 0.999 * time_ns


def test_bytes_of_a_weight_gradient() -> None:
    """It is read and written in its own type; a forward product reads the weights once."""
    activations = 2 * (616 * 5120 + 616 * 3072)
    assert products().bytes[0] == 40 * (activations + 2 * 3072 * 5120)
    assert products("bwd_grad_w").bytes[0] == 40 * (activations + 8 * 3072 * 5120)
    wide, narrow = (MODEL.predict(products("bwd_grad_w", gradient_bytes=size)).time_ns[0] for size in (4, 2))
    assert wide > narrow


def test_small_groups_cost_what_a_group_costs() -> None:
    """A token a group: the latency and the weights, group after group."""
    one_ns = 5e3 + products(m=1).group_bytes[0] / 7e3
    assert MODEL.predict(products(m=1)).time_ns[0] == pytest.approx(40 * one_ns, rel=0.01)


def test_interval_widens_outside_the_range() -> None:
    """By a share for each doubling."""
    said = MODEL.predict(products(m=4 * 9832))
    assert float(np.log(said.high_ns[0] / said.time_ns[0])) == pytest.approx(0.3)


def test_table_and_back() -> None:
    """What was written is read, and a number that is not above 0 is refused."""
    table = MODEL.to_table()
    again = GroupedModel.from_table(table, "here")
    assert again.to_table() == table
    assert (again.numbers, again.source, again.date) == (MODEL.numbers, "rig.csv", "2026-11-23")
    wrong = {**table["fwd"], "latency": {"value": "0 ns", "source": "", "date": ""}}
    with pytest.raises(InvalidArgumentError, match=r"here.fwd: latency: 0.0 must be above 0"):
        GroupedModel.from_table({**table, "fwd": wrong}, "here")


def test_wrong_rows() -> None:
    """A stage that is not known and a column of another length are refused."""
    with pytest.raises(InvalidArgumentError, match="stage 'bwd' is not known"):
        products("bwd")
    with pytest.raises(InvalidArgumentError, match="must be 2 whole numbers"):
        GroupedProducts(["fwd", "fwd"], **{name: [size] for name, size in SIZES.items()})
