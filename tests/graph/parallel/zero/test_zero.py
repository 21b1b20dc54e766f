"""A sharded training step is that of one device: losses, parameters and optimizer state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.graph.parallel.replicate import replicate
from tests.graph.parallel.training_models import MODELS, OPTIMIZERS, TrainingModel
from tests.graph.parallel.zero.one_device import assert_as_on_one_device, reads_of, trained

LAYOUTS = {2: (None, 1), 3: (None,), 4: (None, 2)}
"""groups by number of replicas; no size of a parameter divides by 3"""


@st.composite
def cases(draw: st.DrawFn) -> tuple[TrainingModel, int, dict[str, Any]]:
    """A model with its optimizer, a number of replicas, and how they share out."""
    kind = draw(st.sampled_from(["resource", "reference"]))
    optimizers = OPTIMIZERS if kind == "resource" else ("sgd", "momentum", "adam")
    flags: Any = {name: draw(st.booleans()) for name in ("clips", "decays", "scales")}
    m = TrainingModel(
        draw(st.sampled_from(MODELS)),
        draw(st.sampled_from(optimizers)),
        kind=kind,
        averages=kind == "resource" and draw(st.booleans()),
        reduction=draw(st.sampled_from(["mean", "sum"])),
        **flags,
    )
    replicas = draw(st.sampled_from([*LAYOUTS]))
    stage = draw(st.sampled_from([1, 2, 3]))
    how: dict[str, Any] = {"zero": stage, "zero_group": draw(st.sampled_from(LAYOUTS[replicas]))}
    if stage == 3:
        how["prefetch"] = draw(st.sampled_from([0, 1, 5]))
    return m, replicas, how | {"bucket_bytes": draw(st.sampled_from([1, 700, 1 << 20]))}


@settings(max_examples=12)
@given(cases())
async def test_sharded_replicas_train_as_one_device(case: tuple[TrainingModel, int, dict[str, Any]]) -> None:
    """Whatever the model, the optimizer, the stage, groups and buckets: 5 steps in float64."""
    m, replicas, how = case
    await assert_as_on_one_device(m, replicas, **how)


PAIRS = list(zip([*MODELS, *MODELS][: len(OPTIMIZERS)], OPTIMIZERS, strict=True))


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize(("model", "optimizer"), PAIRS)
async def test_shards_of_different_sizes(model: str, optimizer: str, stage: int) -> None:
    """Three replicas divide no parameter; gradients are clipped by the norm of all of them, and parameters decay."""
    await assert_as_on_one_device(TrainingModel(model, optimizer, clips=True, decays=True), 3, zero=stage)


@pytest.mark.parametrize("stage", [1, 2, 3])
async def test_single_precision(stage: int) -> None:
    """Losses of float32 differ by rounding only."""
    m = TrainingModel("transformer", "adam", dtype="float32", clips=True)
    await assert_as_on_one_device(m, 2, losses=1e-5, variables=None, zero=stage)


@pytest.mark.parametrize("stage", [1, 2, 3])
async def test_mixed_precision(stage: int) -> None:
    """Products in half precision, with a scaled loss; parameters are gathered in their own type."""
    m = TrainingModel("transformer", "momentum", dtype="mixed", scales=True)
    await assert_as_on_one_device(m, 2, losses=1e-2, variables=None, zero=stage)


@pytest.mark.parametrize("stage", [1, 2, 3])
async def test_devices_in_any_order(stage: int) -> None:
    """Shards are in the order of devices, which is that of collectives; replica 0 is where the caller wants it."""
    m = TrainingModel(optimizer="adam")
    graph, feeds = m.graph(), [m.feeds(6, step) for step in range(3)]
    reads = reads_of(graph)
    sharded = replicate(graph, ["cpu:2", "cpu:0", "cpu:1"], batch=["x", "y"], loss="loss", zero=stage)
    one, many = await trained(graph, "cpu:1", feeds, reads), await trained(sharded, "cpu:3", feeds, reads)
    for name in reads:
        np.testing.assert_allclose(many.variables[name], one.variables[name], rtol=1e-10, atol=1e-13)
