"""Attention: laws of the formula, its cap and interval, and the table of the file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.timing.fits.attention import MOST_SHARE, AttentionModel, AttentionNumbers, Attentions
from partita.errors import InvalidArgumentError

PEAK = 2e15
MODEL = AttentionModel(
    {"fwd": AttentionNumbers(9e4, 2e15, 0.5, 2.3, 0.2), "bwd": AttentionNumbers(1e5, 1.8e15, 1.1, 3.5, 0.1)},
    PEAK,
    {"seq_len": (4096, 131072), "streams": (4, 128), "dims": (256, 320)},
    "rig.csv",
    "2026-11-23",
)
SIZES = {"batch": 1, "seq_len": 4096, "heads": 64, "kv_heads": 8, "qk_head_dim": 128, "v_head_dim": 128}


def layers(direction: str = "fwd", **changed: int) -> Attentions:
    """One layer of the usual sizes, some of them changed."""
    return Attentions([direction], **{name: [size] for name, size in {**SIZES, **changed}.items()})


@given(
    st.sampled_from(["fwd", "bwd"]),
    st.integers(1, 64),
    st.integers(1, 1 << 20),
    st.integers(1, 256),
    st.integers(1, 512),
)
def test_twice_a_size_never_takes_less(direction: str, batch: int, seq_len: int, heads: int, dim: int) -> None:
    """Whatever doubles; and no layer is faster than the cap."""
    sizes = {"batch": batch, "seq_len": seq_len, "heads": heads, "kv_heads": 1, "qk_head_dim": dim, "v_head_dim": dim}
    one = layers(direction, **sizes)
    time_ns = MODEL.predict(one).time_ns[0]
    assert time_ns >= one.flops[0] * 1e9 / (MOST_SHARE * PEAK)
    for name in ("batch", "seq_len", "heads", "qk_head_dim"):
        assert MODEL.predict(layers(direction, **{**sizes, name: 2 * sizes[name]})).time_ns[0] >= 0.999 * time_ns


def test_latency_shows_where_few_heads_run() -> None:
    """One head takes as long as the latency, many heads as long as their operations."""
    assert MODEL.predict(layers(heads=1, kv_heads=1)).time_ns[0] == pytest.approx(9e4, rel=0.01)
    many = layers(heads=4096)
    assert MODEL.predict(many).time_ns[0] == pytest.approx(many.flops[0] / 2e15 * 1e9, rel=0.01)


def test_operations_and_bytes() -> None:
    """The full square, backward 2.5 times; every tensor once, of fewer heads for keys and values."""
    assert layers().flops[0] == 2 * 4096**2 * 64 * 256
    assert layers("bwd").flops[0] == 2.5 * layers().flops[0]
    assert layers().bytes[0] == 2 * 4096 * 256 * (64 + 8)


def test_interval_widens_outside_the_range() -> None:
    """By a share for each doubling."""
    inside, outside = (MODEL.predict(layers(seq_len=1 << power)) for power in (17, 19))
    widths = [float(np.log(said.high_ns[0] / said.time_ns[0])) for said in (inside, outside)]
    assert widths == pytest.approx([0.2, 0.3])


def test_rows_are_answered_one_by_one() -> None:
    """Both directions in one question, in their order."""
    both = Attentions(["bwd", "fwd"], **{name: [size, size] for name, size in SIZES.items()})
    expected = [MODEL.predict(layers(direction)).time_ns[0] for direction in ("bwd", "fwd")]
    assert MODEL.predict(both).time_ns.tolist() == expected


def test_table_and_back() -> None:
    """What was written is read."""
    again = AttentionModel.from_table(MODEL.to_table(), "here")
    assert again.to_table() == MODEL.to_table()
    assert (again.numbers, again.ranges, again.source, again.date) == (
        MODEL.numbers,
        MODEL.ranges,
        "rig.csv",
        "2026-11-23",
    )


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("range_dims", [320, 256], "here: range_dims = [320, 256] must begin with the smaller"),
        ("range_dims", "256", "here: range_dims = '256' must be the least and the greatest size"),
        ("forward", {}, "here: unknown key 'forward'"),
        ("fwd", {}, "here.fwd: the key 'latency' is missing"),
        ("peak", {"value": "2 TB/s", "source": "", "date": ""}, "here: peak: the unit of '2 TB/s'"),
    ],
)
def test_wrong_tables(key: str, value: Any, says: str) -> None:  # Any: what TOML holds
    """The place and the key are named."""
    with pytest.raises(InvalidArgumentError) as caught:
        AttentionModel.from_table({**MODEL.to_table(), key: value}, "here")
    assert says in str(caught.value)


def test_wrong_layers() -> None:
    """A direction or a size that cannot be is refused."""
    with pytest.raises(InvalidArgumentError, match="direction 'forward' is not known"):
        layers("forward")
    with pytest.raises(InvalidArgumentError, match="seq_len = 0 must be at least 1"):
        layers(seq_len=0)
    with pytest.raises(InvalidArgumentError, match="heads = 64 must be a multiple of kv_heads = 7"):
        layers(kv_heads=7)
