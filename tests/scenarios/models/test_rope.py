"""Angles of rotary positions: formulas by hand, transformers' numbers, and kinds that are refused."""

from __future__ import annotations

from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidArgumentError, PartitaError, UnimplementedError
from partita.scenarios import LlamaModel, MoeModel, Rope, model_from_config
from tests.scenarios.models.families import Published, published, written

ROTARY = {name: case for name, case in published().items() if case.frequencies is not None}


@pytest.mark.parametrize("case", ROTARY.values(), ids=ROTARY)
def test_angles_are_those_of_transformers(case: Published, tmp_path: Path) -> None:
    """Which has them in float32; default, linear, llama3 and yarn with DeepSeek's mscale."""
    model = model_from_config(written(tmp_path, case.config))
    assert isinstance(model, LlamaModel)
    size = model.latent.rope_size if isinstance(model, MoeModel) and model.latent else model.head_size
    np.testing.assert_allclose(model.rope.frequencies(size), np.asarray(case.frequencies), rtol=1e-6)
    assert model.rope.attention_scale == pytest.approx(case.attention_scale)


def test_pairs_turn_slower_and_slower() -> None:
    """theta ** (-2 k / size); linear scaling divides all."""
    np.testing.assert_allclose(Rope(theta=100.0).frequencies(4), [1.0, 0.1])
    np.testing.assert_allclose(Rope(theta=100.0, kind="linear", factor=4.0).frequencies(4), [0.25, 0.025])


def test_llama3_divides_slow_pairs_and_keeps_fast_ones() -> None:
    """With a context of 8192 a pair that turns more than 4 times is kept, one that turns less than once divided."""
    scaled = Rope(500000.0, "llama3", 8.0, original_positions=8192).frequencies(128)
    plain = Rope(500000.0).frequencies(128)
    turns = 8192 * plain / (2 * np.pi)
    np.testing.assert_allclose(scaled[turns > 4], plain[turns > 4])
    np.testing.assert_allclose(scaled[turns < 1], plain[turns < 1] / 8)
    between = (turns > 1) & (turns < 4)
    assert between.any()
    assert ((scaled < plain) & (scaled > plain / 8))[between].all()


def test_yarn_grows_with_the_logarithm_of_its_factor() -> None:
    """0.1 m ln(factor) + 1: in the angles' cosines, or as DeepSeek in the scale of the scores, squared."""
    yarn = Rope(kind="yarn", factor=40.0, original_positions=4096)
    assert yarn.attention_scale == pytest.approx(0.1 * log(40) + 1)
    assert yarn.softmax_factor == 1
    deepseek = Rope(kind="yarn", factor=40.0, original_positions=4096, mscale=0.707, mscale_all_dim=0.707)
    assert deepseek.attention_scale == 1
    assert deepseek.softmax_factor == pytest.approx((0.0707 * log(40) + 1) ** 2)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"kind": "dynamic", "factor": 2.0}, UnimplementedError, "depend on the length of the sequence at run time"),
        ({"kind": "longrope"}, UnimplementedError, "depend on the length"),
        ({"kind": "yarm"}, InvalidArgumentError, "'yarm' does not exist; did you mean 'yarn'"),
        ({"kind": "yarn", "factor": 2.0}, InvalidArgumentError, "'yarn' needs original_positions"),
        ({"theta": 0.5}, InvalidArgumentError, "theta=0.5 must be above 1"),
        ({"kind": "linear", "factor": 0.0}, InvalidArgumentError, "factor=0.0 above 0"),
        (
            {"kind": "llama3", "original_positions": 8, "low_frequency_factor": 4.0},
            InvalidArgumentError,
            "high_frequency_factor=4.0 must be above low_frequency_factor=4.0",
        ),
    ],
)
def test_what_makes_no_angles_is_refused(given: dict[str, Any], error: type[PartitaError], message: str) -> None:
    with pytest.raises(error, match=message):
        Rope(**given)


def test_an_odd_head_has_no_pairs() -> None:
    with pytest.raises(InvalidArgumentError, match="rotary size 5 is no even number"):
        Rope().frequencies(5)
