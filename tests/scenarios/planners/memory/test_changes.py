"""What would make a configuration fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from partita.scenarios import Split
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.planners.configurations import Configurations
from partita.scenarios.planners.memory import MemoryAdvice, smallest_change
from partita.scenarios.planners.step import PlannedStep
from tests.scenarios.planners.memory.examples import MODELS, memory_of

STEP = PlannedStep(LlamaModel(layers=16, hidden=4096, heads=32, intermediate=11008, vocabulary=32000), 4096)
PLAIN = Split(dp=8, tp=2, microbatches=4, microbatch=4, precision="bfloat16")


def _advice(split: Split, limit_bytes: float, step: PlannedStep = STEP) -> MemoryAdvice:
    return smallest_change(step, Configurations.of([split]), 0, limit_bytes)


def test_what_fits_needs_no_change() -> None:
    """The largest parts are named all the same, the largest first."""
    advice = _advice(PLAIN, 1e12)
    assert (advice.changes, advice.split, advice.fits) == ({}, PLAIN, True)
    assert [size for _, size in advice.parts] == sorted((size for _, size in advice.parts), reverse=True)
    assert sum(size for _, size in advice.parts) == advice.reserved_bytes == memory_of(STEP, PLAIN).reserved


def test_one_field_is_preferred_to_two() -> None:
    """The limit is just below what the split needs: sequence parallelism is enough, and costs least."""
    needed = float(memory_of(STEP, PLAIN).reserved[0])
    advice = _advice(PLAIN, needed - 1)
    assert advice.text == "sequence_parallel"
    assert advice.fits


@pytest.mark.parametrize("part", [0.7, 0.5, 0.3, 0.2])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_change_does_what_it_says(model: LlamaModel, part: float) -> None:
    """The split with the changes reserves what is said, on as many devices, for the same global batch."""
    step = PlannedStep(model, 4096)
    limit = part * float(memory_of(step, PLAIN).reserved[0])
    advice = _advice(PLAIN, limit, step)
    assert advice.fits
    assert advice.reserved_bytes == memory_of(step, advice.split).reserved <= limit
    assert (advice.split.devices, advice.split.global_batch) == (PLAIN.devices, PLAIN.global_batch)
    changes: dict[str, Any] = {**advice.changes}  # Any: fields of a split
    assert replace(PLAIN, dp=advice.split.dp, microbatches=advice.split.microbatches, **changes) == advice.split
    advice.split.check(model, 4096)


def test_where_nothing_fits_the_least_is_said() -> None:
    """It is less than now, and does not fit."""
    advice = _advice(PLAIN, 1e9)
    assert not advice.fits
    assert advice.changes
    assert 1e9 < advice.reserved_bytes < memory_of(STEP, PLAIN).reserved
