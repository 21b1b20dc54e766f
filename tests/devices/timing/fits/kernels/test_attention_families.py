"""Families of attention: masks are counted, formulas grow with what there is to do, lines become rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices import device_spec
from partita.devices.timing.fits.kernels.attention_terms import TILE, pairs_of, tiles_of
from partita.devices.timing.fits.kernels.decode_attention import DecodeRows
from partita.devices.timing.fits.kernels.encoder_attention import EncoderRows
from partita.devices.timing.fits.kernels.kernel_rows import KernelRows
from partita.devices.timing.fits.kernels.latent_attention import LatentDecodeRows, LatentPrefillRows
from partita.devices.timing.fits.kernels.prefill_attention import PrefillRows

FAMILIES: list[type[KernelRows]] = [PrefillRows, EncoderRows, DecodeRows, LatentPrefillRows, LatentDecodeRows]
tokens = st.integers(1, 600)


@given(tokens, tokens)
def test_pairs_of_a_causal_window(seq_len: int, window: int) -> None:
    """As many as a mask leaves, counted one by one."""
    query, key = np.mgrid[:seq_len, :seq_len]
    seen = int(np.sum((key <= query) & (key > query - window)))
    assert pairs_of(np.array([float(seq_len)]), np.array([float(window)]), causal=True)[0] == seen


@given(tokens, tokens, st.booleans())
def test_tiles_hold_all_pairs(seq_len: int, window: int, causal: bool) -> None:
    """Blocks of queries see at least the keys that the mask leaves, at most all keys; waste makes them see all."""
    length, width = np.array([float(seq_len)]), np.array([float(window)])
    tiles, wasted = tiles_of(length, width, causal), tiles_of(length, width, causal, waste=1.0)
    assert pairs_of(length, width, causal)[0] <= tiles.keys[0] * TILE
    assert tiles.keys[0] <= wasted.keys[0] <= tiles.blocks[0] ** 2 * TILE
    assert 0 < tiles.longest[0] <= wasted.longest[0]


def rows_of(family: type[KernelRows], **changed: int) -> KernelRows:
    """One run; grouped heads where the family has them."""
    sizes = {"batch": 8, "seq_len": 512, "context": 512, "heads": 16, "kv_heads": 4, "head_dim": 128, "window": 1 << 20}
    texts: dict[str, Any] = {"dtype": ["bf16"], "cache": ["bf16"]}
    return family(texts, {name: [size] for name, size in {**sizes, **changed}.items()})


def decode(**changed: int) -> DecodeRows:
    """One step of decode."""
    rows = rows_of(DecodeRows, **changed)
    assert isinstance(rows, DecodeRows)
    return rows


@pytest.mark.parametrize("family", FAMILIES)
def test_more_work_takes_longer(family: type[KernelRows]) -> None:
    """More sequences, and longer ones, never take less time by the formula; it is never below the floor."""
    numbers, spec = [number.start for number in family.NUMBERS], device_spec("H100-SXM")
    for name in ("batch", "seq_len" if "seq_len" in family.COUNTS else "context"):
        times = [float(rows_of(family, **{name: 1 << power}).formula_ns(numbers, spec)[0]) for power in range(12)]
        assert times == sorted(times)
        assert times[0] > numbers[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_features_are_finite_and_of_one_name(family: type[KernelRows]) -> None:
    """On a device whose SMs and caches nobody knows as well."""
    for device in ("H100-SXM", "V100-SXM2"):
        features = rows_of(family).features(device_spec(device))
        assert all(np.all(np.isfinite(column)) for column in features.values())
    assert rows_of(family).datasheet_ns(device_spec("H100-SXM"))[0] > 0


def test_grouped_heads_share_the_cache() -> None:
    """Bytes of a cache follow its heads and its type; groups of one head and very large ones run head by head."""
    wide, shared = decode(kv_heads=16), decode(kv_heads=4)
    assert 3 < wide.bytes[0] / shared.bytes[0] < 4
    by_head = [decode(heads=64, kv_heads=kv).by_head[0] for kv in (64, 8, 2, 1)]
    assert by_head == [1, 0, 0, 1]
