"""Measured costs, from traces of our own and of TensorFlow and from a cost model: what they know and what not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.devices import cut, local_cluster, simulate
from partita.devices.timing import RooflineSource
from partita.devices.timing.costs.first_known import FirstKnown
from partita.devices.timing.costs.measured import MeasuredSource
from partita.devices.timing.costs.source import UnknownCost
from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph import GraphDef
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.graphdef.files import load_graph_def
from partita.graph.ops.properties import properties_of
from partita.graph.protos import CostGraphDef, NodeExecStats, RunMetadata, StepStats

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
DATA = Path(__file__).parents[1] / "tracing" / "data"
CLUSTER = local_cluster("cpu:1")


def _graph() -> GraphDef:
    """z = Neg(Neg(x)) and y = x * x."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (4, 4))
    b.op("Neg", b.op("Neg", x, name="a"), name="z")
    b.op("MatMul", x, x, name="y")
    return b.graph_def()


def _parts() -> Any:
    return cut(_graph(), CLUSTER, feeds=["x:0"], fetches=["y:0", "z:0"])


def _stats(*times: tuple[str, str, int]) -> StepStats:
    """The trace of runs (node, op, ns), in TensorFlow's form."""
    stats = StepStats()
    device = stats.dev_stats.add(device=CPU)
    for node, op, time_ns in times:
        label = f"{node} = {op}(x)"
        device.node_stats.append(NodeExecStats(node_name=node, timeline_label=label, op_end_rel_nanos=time_ns))
    return stats


def test_equal_ops_share_their_times() -> None:
    """Two nodes of one kind give the median and percentiles of all their runs; a new node of that kind has them too."""
    stats = _stats(("a", "Neg", 1000), ("z", "Neg", 3000), ("a", "Neg", 2000), ("y", "MatMul", 7000))
    source = MeasuredSource.from_step_stats(stats, _parts(), CLUSTER)
    assert len(source) == 2
    timeline = simulate(_parts(), CLUSTER, cost_source=source)
    assert timeline.sources == {"measured": 3}
    z = timeline.find("z")
    assert (z.low_ns, z.high_ns) == (1200, 2800)
    assert {node: timeline.find(node).duration_ns for node in "azy"} == {"a": 2000, "z": 2000, "y": 7000}
    low, high = timeline.interval_ns()
    assert low < timeline.makespan_ns < high


def test_it_explains_by_its_runs() -> None:
    """How many there were; what is assumed of a single one; nothing of a free op."""
    stats = _stats(("a", "Neg", 1000), ("a", "Neg", 2000), ("y", "MatMul", 7000))
    source, spec = MeasuredSource.from_step_stats(stats, _parts(), CLUSTER), CLUSTER.client.spec
    square = ((4, 4),)
    neg = source.explain(properties_of("Neg", {"T": DataType.FLOAT}), square, square, spec)
    assert (neg.cost.provenance, neg.rows, neg.assumed) == ("measured", "2 runs", ())
    product = source.explain(properties_of("MatMul", {"T": DataType.FLOAT}), square * 2, square, spec)
    assert (product.cost.time_ns, product.rows) == (7000, "1 run")
    assert "within 10 %" in product.text()
    assert source.explain(properties_of("NoOp", {}), (), (), spec).cost.provenance == "free"


def test_other_attrs_shapes_types_and_devices_are_unknown() -> None:
    """Each of them alone; and FirstKnown falls back."""
    source = MeasuredSource.from_step_stats(_stats(("y", "MatMul", 7000)), _graph(), CLUSTER)
    spec, square = CLUSTER.client.spec, ((4, 4), (4, 4))
    same = properties_of("MatMul", {"T": DataType.FLOAT})
    assert source.cost(same, square, ((4, 4),), spec).time_ns == 7000
    for other in (
        (properties_of("MatMul", {"T": DataType.FLOAT, "transpose_a": True}), square, ((4, 4),), spec),
        (properties_of("MatMul", {"T": DataType.DOUBLE}), square, ((4, 4),), spec),
        (same, ((4, 5), (5, 4)), ((4, 4),), spec),
        (same, square, ((4, 4),), local_cluster("gpu:1").find("gpu:0").spec),
    ):
        with pytest.raises(UnknownCost, match="MatMul"):
            source.cost(*other)
        assert FirstKnown(source, RooflineSource()).cost(*other).provenance == "roofline"


def test_a_cost_model_has_times_in_microseconds() -> None:
    """As a message, inside a RunMetadata, and as bytes of either."""
    model = CostGraphDef()
    node = model.node.add(name="y", device=CPU, compute_cost=7)
    node.output_info.add().shape.dim.add(size=4)
    node.output_info[0].shape.dim.add(size=4)
    metadata = RunMetadata(cost_graph=model)
    for given in (model, metadata, model.SerializeToString(), metadata.SerializeToString()):
        source = MeasuredSource.from_cost_model(given, _parts(), CLUSTER)
        cost = source.cost(
            properties_of("MatMul", {"T": DataType.FLOAT}), ((4, 4), (4, 4)), ((4, 4),), CLUSTER.client.spec
        )
        assert (cost.time_ns, cost.low_ns, cost.high_ns, cost.provenance) == (7000, 6300, 7700, "measured")


def test_a_trace_of_tensorflow_is_of_its_graph() -> None:
    """Its shapes fill in those that the graph leaves open."""
    graph_def = load_graph_def(DATA / "function.graph.pb")
    parts = cut(graph_def, CLUSTER, feeds=["x:0"], fetches=["y:0"], inline=True)
    source = FirstKnown(MeasuredSource.from_step_stats(DATA / "function.trace.pb", parts, CLUSTER), RooflineSource())
    timeline = simulate(parts, CLUSTER, feeds={"x:0": np.ones((2, 3), np.float32)}, cost_source=source)
    assert timeline.sources["measured"] > 0


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    """A trace of another graph or device, and a file that is missing or no cost model."""
    with pytest.raises(InvalidArgumentError, match="of another graph"):
        MeasuredSource.from_step_stats(_stats(("other", "Neg", 5)), _parts(), CLUSTER)
    stats = _stats(("a", "Neg", 5))
    stats.dev_stats[0].device = "/job:elsewhere/replica:0/task:0/device:CPU:0"
    with pytest.raises(InvalidArgumentError, match="elsewhere"):
        MeasuredSource.from_step_stats(stats, _parts(), CLUSTER)
    with pytest.raises(NotFoundError, match="check the path"):
        MeasuredSource.from_cost_model(tmp_path / "none.pb", _parts(), CLUSTER)
    with pytest.raises(InvalidArgumentError, match="no nodes"):
        MeasuredSource.from_cost_model(b"", _parts(), CLUSTER)
