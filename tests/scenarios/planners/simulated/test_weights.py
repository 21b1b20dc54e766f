"""What ops do with weights, and which bytes collectives of gradients move: told of the graph of a built step."""

from __future__ import annotations

from collections import Counter

import pytest

from partita.devices import cut, parse_cluster, simulate
from partita.devices.timing.costs.fitted import FittedSource
from partita.devices.timing.costs.source import CostRequest, OpCost
from partita.graph.analysis.collective_seats import AXIS, MOVED
from partita.graph.ops.record import Exchange
from partita.scenarios import LlamaModel, Split
from partita.scenarios.planners.simulated.exchanges import mark_gradients
from partita.scenarios.planners.simulated.weights import WeightShapes, WeightUse
from partita.scenarios.planners.step import PlannedStep
from partita.scenarios.workloads.model_building import build_model
from partita.scenarios.workloads.model_step import ModelStep

MODEL = LlamaModel(layers=2, hidden=512, heads=4, kv_heads=2, intermediate=1536, vocabulary=1024)
CLUSTER = parse_cluster('[[host]]\nmodel = "DGX-A100"\njob = "worker"')


class Recorded(FittedSource):
    """A source that keeps what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, tuple[CostRequest, OpCost]] = {}

    def costs(self, batch: list[CostRequest]) -> list[OpCost]:  # type: ignore[override]  # a list is what planners give
        """The costs of each request."""
        costs = super().costs(batch)
        self.answers |= {repr(asked): (asked, cost) for asked, cost in zip(batch, costs, strict=True)}
        return costs


def built(text: str) -> ModelStep:
    """A step of 768 tokens, which is the size of no weight."""
    split = Split.parse(f"{text},precision=bfloat16")
    return build_model(MODEL, split, CLUSTER, sequence_length=768, representatives=True)


def uses(text: str) -> Counter[tuple[str, str | None]]:
    """How many kinds of ops there are of a name and a use."""
    step, source = built(text), Recorded()
    simulate(cut(step.graph, CLUSTER, targets=step.targets), CLUSTER, cost_source=source)
    shapes = WeightShapes.of(step, MODEL)
    told = Counter[tuple[str, str | None]]()
    for asked, cost in source.answers.values():
        if asked.spec.launches_kernels and cost.time_ns:
            use = shapes.use(asked, cost.flops)
            told[asked.properties.op, None if use is None else use.name] += 1
    return told


@pytest.mark.parametrize("text", ["tp=2,microbatches=2", "dp=4,zero=1,microbatches=2", "tp=2,dp=2,zero=2,pp=2"])
def test_the_optimizer_works_on_weights_and_layers_on_rows(text: str) -> None:
    """Adam, norms and decay are updates; products, norms of rows and their sums are not."""
    told = uses(text)
    assert {use for op, use in told if op in ("ResourceApplyAdam", "L2Loss", "AssignSubVariableOp")} == {"UPDATE"}
    assert {use for op, use in told if op in ("MatMul", "Partita>RMSNorm", "Partita>GatedSilu", "AddN")} == {None}


def test_casts_and_sums_of_gradients_are_told_apart_from_those_of_rows() -> None:
    """Weights are cast to 16 bits, gradients to 32 and added up; the sums of residual branches are of rows."""
    told = uses("tp=2,microbatches=2")
    assert told["Cast", "CAST"] >= 8
    assert told["AddV2", "ACCUMULATION"] >= 5
    assert told["AddV2", None] >= 1  # residual sums
    assert not any(use == "ARRANGEMENT" for _, use in told)


def test_shards_are_arranged_for_collectives() -> None:
    """With ZeRO parts of weights are cut out and put side by side."""
    told = uses("dp=4,zero=1,microbatches=2")
    assert {"Slice", "ConcatV2", "SplitV"} <= {op for op, use in told if use == WeightUse.ARRANGEMENT.name}


def test_gated_weights_are_those_of_gate_and_up() -> None:
    """A rank has a part of their columns."""
    assert WeightShapes.of(built("tp=2"), MODEL).gated == {(512, 768)}


def test_collectives_over_dp_move_the_bytes_of_a_framework() -> None:
    """Gradients in 2 bytes and parameters in 2 where the graph has 4; exchanges within layers as they are."""
    step = built("tp=2,dp=4,zero=1,microbatches=2")
    mark_gradients(step.graph, PlannedStep(MODEL, 768, gradient_bytes=2, gathered_bytes=2), step.split, 1.0)
    moved = {
        node.name.partition("/")[0]: node.attrs.get(MOVED)
        for node in step.graph.op_nodes()
        if node.op_def.record.exchange is not None and node.attrs.get("_axis") is not None
    }
    assert moved["zero"] == 0.5


@pytest.mark.parametrize(("zero", "marked"), [(0, False), (1, True)])
def test_shards_over_cp_are_summed_with_those_over_dp(zero: int, marked: bool) -> None:
    """A framework spreads shards over both at once; what is no shard is reduced over both in one collective as well."""
    step = built(f"dp=2,cp=2,zero={zero},microbatches=2")
    mark_gradients(step.graph, PlannedStep(MODEL, 768), step.split, 1.0)
    over_cp = [
        node.attrs.get(MOVED)
        for node in step.graph.op_nodes()
        if node.op_def.record.exchange is Exchange.ALL_REDUCE and node.attrs.get(AXIS) == b"cp"
    ]
    assert any(moved is not None for moved in over_cp) == marked
