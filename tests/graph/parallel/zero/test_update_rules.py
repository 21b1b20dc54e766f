"""Whatever stands between gradients and updates: single elements, reductions, rows, products, other variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.graph import Graph
from partita.graph.dtypes import Array
from partita.graph.parallel.replicate import replicate
from tests.graph.parallel.zero.one_device import assert_close, reads_of
from tests.graph.parallel.zero.update_models import (
    ANY_KIND,
    OF_RESOURCES,
    SHAPES,
    LinearModel,
    Rule,
    by_parameter,
    by_reductions,
    plain,
)

STAGES = pytest.mark.parametrize("stage", [1, 2, 3])


async def _run(
    graph: Graph, devices: str, m: LinearModel, fetches: list[str], initial: Mapping[str, Array]
) -> dict[str, Any]:
    """Three steps; the values of `fetches` in the last of them, and of all variables after it."""
    async with open_session(graph.to_graph_def(), devices) as session:
        await session.run([], initial, ["init"])
        for step in range(3):
            values = await session.run(fetches, m.feeds(step), ["train"])
        found = dict(zip(fetches, values, strict=True))
        for name in reads_of(graph):
            found[name] = (await session.run([name]))[0]
        return found


async def _assert_equal(m: LinearModel, graph: Graph, fetches: list[str], **settings: Any) -> None:
    draw = np.random.default_rng(1)
    fed = {f"{name}/fed": draw.normal(size=shape) for name, shape in SHAPES.items()} if m.initial == "fed" else {}
    devices = ["cpu:0", "cpu:1", "cpu:2"]
    sharded = replicate(graph, devices, batch=["x", "y"], loss="loss", bucket_bytes=100, **settings)
    one, many = await _run(graph, "cpu:1", m, fetches, fed), await _run(sharded, "cpu:3", m, fetches, fed)
    for name, value in one.items():
        assert_close(np.asarray(many[name]), np.asarray(value), 1e-12, name)


@STAGES
@pytest.mark.parametrize("rule", [*ANY_KIND, *OF_RESOURCES])
async def test_update_rules(rule: Rule, stage: int) -> None:
    """What works on single elements gets shards, reductions are merged, anything else gets whole tensors."""
    m = LinearModel()
    await _assert_equal(m, m.graph(rule), ["loss"], zero=stage)


@STAGES
@pytest.mark.parametrize("rule", [by_parameter, by_reductions])
async def test_update_rules_of_references(rule: Rule, stage: int) -> None:
    """The same with the variables of TensorFlow 1."""
    m = LinearModel("reference")
    await _assert_equal(m, m.graph(rule), ["loss"], zero=stage)


@pytest.mark.parametrize("stage", [1, 3])
@pytest.mark.parametrize("initial", ["random", "fed"])
@pytest.mark.parametrize("kind", ["resource", "reference"])
async def test_what_is_assigned_is_cut(kind: str, initial: str, stage: int) -> None:
    """Random initial values, which are drawn once, and values that are fed, as a checkpoint is restored."""
    m = LinearModel(kind, initial)
    await _assert_equal(m, m.graph(plain), ["loss"], zero=stage)


@STAGES
async def test_outputs_see_whole_gradients_and_parameters(stage: int) -> None:
    """Norms that no update needs: all replicas gather for them."""
    m = LinearModel()

    def rule(model: LinearModel, *grads: Any) -> list[Any]:
        for name, value in (("gradient_norm", grads[0]), ("weight_norm", model.reads["a"])):
            model.b.op("Sqrt", model.b.op("Sum", model.b.op("Square", value), [0, 1]), name=name)
        return model.momentum(*grads)

    outputs = ["gradient_norm", "weight_norm"]
    await _assert_equal(m, m.graph(rule), ["loss", *outputs], mean=outputs, zero=stage)
