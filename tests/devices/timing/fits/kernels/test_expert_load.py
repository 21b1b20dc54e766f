"""The load of the busiest GPU of an expert layer: what is dealt is what there is, and skew concentrates it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from partita.devices.timing.fits.kernels.expert_load import TILE_ROWS, busiest
from partita.errors import InvalidArgumentError

LAYERS = st.tuples(
    st.integers(1, 3000),
    st.integers(1, 8),
    st.sampled_from([8, 32, 128, 160, 512]),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([0.0, 0.5, 1.0, 1.01, 1.2, 2.0]),
)


@settings(max_examples=60)
@given(LAYERS)
def test_the_busiest_has_at_least_the_mean_and_at_most_all(layer: tuple[int, int, int, int, float]) -> None:
    """Rows between the mean and all of them; at most one active expert a row, and no more than lie there."""
    tokens, top_k, experts, gpus, exponent = layer
    load = busiest(*layer)
    rows = tokens * top_k
    assert rows / gpus - 1e-9 <= load.rows <= rows + 1e-9 or load.rows == 1 > rows / gpus
    assert 0 < load.active <= min(experts // gpus, rows)
    assert load.most_rows <= tokens + 1e-9 or exponent == 0
    for tile, tiles in zip(TILE_ROWS, load.tiles, strict=True):
        assert load.active <= tiles + 1e-9
        assert tiles * tile >= load.rows - 1e-6


@settings(max_examples=30)
@given(LAYERS)
def test_one_gpu_has_all_rows(layer: tuple[int, int, int, int, float]) -> None:
    """However they are dealt to experts."""
    tokens, top_k, experts, _, exponent = layer
    assert busiest(tokens, top_k, experts, 1, exponent).rows == pytest.approx(max(1, tokens * top_k))


def test_a_steeper_law_concentrates() -> None:
    """More rows on the busiest GPU; experts that nobody asks for are not active."""
    even, flat, steep = (busiest(256, 8, 256, 8, exponent) for exponent in (0.0, 0.5, 2.0))
    assert even.rows == 256 < flat.rows < steep.rows
    assert busiest(256, 8, 256, 1, 0.0).active == 256 > busiest(256, 8, 256, 1, 1.2).active


def test_an_even_routing_is_exact() -> None:
    """4 tokens of 2 experts each on 2 of 8 experts: 4 rows, each at an expert of its own."""
    assert busiest(4, 2, 8, 2, 0.0) == (4.0, 4.0, 1.0, (4.0, 4.0, 4.0))


@pytest.mark.parametrize(("experts", "gpus", "top_k"), [(8, 3, 2), (8, 2, 9)])
def test_what_cannot_be_dealt_is_named(experts: int, gpus: int, top_k: int) -> None:
    """Experts that GPUs do not divide, tokens with more experts than there are."""
    with pytest.raises(InvalidArgumentError, match=f"8 experts cannot be dealt to {gpus} GPUs"):
        busiest(16, top_k, experts, gpus, 0.0)
