"""Pipelines on the clock: bubbles of equal stages with free transfers, what is kept, and calls against inlined calls.

The stages are layers whose Tanh takes a millisecond, whose TanhGrad takes two, and all else nothing. The CPUs of one
task share their memory, so nothing is transferred.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from partita.devices import Cluster, Device, DeviceSpec, cut, local_cluster
from partita.devices.kernels.op_cost import PortDims
from partita.devices.timing import Timeline, simulate
from partita.devices.timing.costs.source import OpCost
from partita.graph import Graph, GraphBuilder, gradients, lower_functional, pipeline
from partita.graph.ops.properties import NodeProperties
from tests.graph.parallel.training_models import TrainingModel

MS = 10**6
ROWS = 16
FAST = DeviceSpec("host", "CPU", {"fp32": 10**15}, 10**15, 10**14)


class TanhCosts:
    """Tanh takes a millisecond, TanhGrad two, all other ops nothing."""

    def cost(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> OpCost:
        """See `CostSource`."""
        return OpCost({"Tanh": MS, "TanhGrad": 2 * MS}.get(properties.op, 0), 0, 0, "measured")


def layers(count: int, width: int) -> Graph:
    """A training step of so many layers in scopes "layer0", ..., from one column to `width`."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None, 1))
    weights = []
    for k in range(count):
        with b.scope(f"layer{k}"):
            shape = (width if k else 1, width)
            handle = b.op("VarHandleOp", name="w", dtype="float32", shape=shape, attrs={"shared_name": f"w{k}"})
            weights.append((handle, b.op("ReadVariableOp", handle, name="read", dtype="float32")))
            x = b.op("Tanh", b.op("MatMul", x, weights[-1][1]))[0]
    b.op("Mean", x, [0, 1], name="loss")
    slopes = gradients(b, ["loss"], [value[0] for _, value in weights])
    rate = np.float32(0.1)
    updates = [b.op("ResourceApplyGradientDescent", h, rate, g) for (h, _), g in zip(weights, slopes, strict=True)]
    b.group(*updates, name="train")
    return b.graph()


def pipelined(schedule: str, p: int, v: int, m: int, *, kind: str = "cpu", width: int = 4, inlined: bool) -> Graph:
    """The pipeline of p devices with v layers each, for m micro-batches; its calls are inlined on request."""
    stages = {f"layer{k}": f"{kind}:{k % p}" for k in range(p * v)}
    graph = pipeline(layers(p * v, width), stages, batch="x", loss="loss", microbatches=m, schedule=schedule)
    return lower_functional(graph, inline_calls=True) if inlined else graph


def timeline(graph: Graph, cluster: Cluster, rows: int, *, costs: TanhCosts | None = None) -> Timeline:
    parts = cut(graph, cluster, feeds=["x"], fetches=["loss"], targets=["train"])
    return simulate(parts, cluster, feeds={"x": (rows, 1)}, cost_source=costs)


@pytest.mark.parametrize("inlined", [False, True])
@pytest.mark.parametrize(
    ("schedule", "p", "v", "m"),
    [
        ("gpipe", 2, 1, 4),
        ("gpipe", 3, 2, 4),
        ("1f1b", 2, 1, 4),
        ("1f1b", 4, 1, 6),
        ("1f1b", 3, 1, 1),
        ("interleaved", 2, 2, 4),
        ("interleaved", 4, 2, 8),
        ("interleaved", 2, 3, 2),
    ],
)
def test_bubble(schedule: str, p: int, v: int, m: int, inlined: bool) -> None:
    """Devices wait exactly (p - 1) / (v m + p - 1) of the time, whether calls are inlined or not."""
    cluster = Cluster([Device(FAST, k) for k in range(p)])
    step = timeline(pipelined(schedule, p, v, m, inlined=inlined), cluster, 2 * m, costs=TanhCosts())
    assert 1 - Fraction(3 * MS * m * p * v, p * step.makespan_ns) == Fraction(p - 1, v * m + p - 1)


@pytest.mark.parametrize("inlined", [False, True])
@pytest.mark.parametrize("m", [3, 6, 9])
def test_kept_activations(m: int, inlined: bool) -> None:
    """The first of three stages keeps activations of m micro-batches with gpipe, of three with 1f1b, and a gradient."""
    width, cluster = 512, local_cluster("cpu:1,gpu:3")
    gpu = cluster.find("gpu:0").name
    sizes = {}
    for schedule in ("gpipe", "1f1b"):
        graph = pipelined(schedule, 3, 1, m, kind="gpu", width=width, inlined=inlined)
        peak = timeline(graph, cluster, m * ROWS).peak_memory_bytes(gpu)
        sizes[schedule] = round(peak / (ROWS * width * 4), 1)
    assert sizes == {"gpipe": pytest.approx(m + 1, abs=0.2), "1f1b": pytest.approx(4, abs=0.2)}


@pytest.mark.parametrize("rows", [None, 8])
def test_sizes_are_known_in_calls(rows: int | None) -> None:
    """A transformer over three GPUs is placed and timed without inlining: shapes do not pass between calls."""
    model, cluster = TrainingModel("transformer", "adam", dtype="float32", rows=rows), local_cluster("cpu:1,gpu:3")
    stages = [f"gpu:{k}" for k in range(3)]
    graph = pipeline(model.graph(), stages, batch=["x", "y"], loss="loss", microbatches=4)
    parts = cut(graph, cluster, feeds=["x", "y"], fetches=["loss"], targets=["train"])
    step = simulate(parts, cluster, feeds={name: value.shape for name, value in model.feeds(8, 0).items()})
    assert {cluster.find(name).name for name in stages} <= set(step.devices)
    assert not any("assumed" in warning and "size" in warning for warning in step.warnings)
