"""Traces of steps as a source: rows equal what the step took, with the graph inside or beside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

from partita.actors import open_session
from partita.devices import cut, device_spec, local_cluster, simulate
from partita.devices.calibration.sources.measurements import Measurements, TimedMove, TimedProduct
from partita.devices.calibration.sources.reading import read_source
from partita.devices.timing.export.run_metadata import run_metadata
from partita.devices.timing.timeline import Timeline
from partita.errors import InvalidArgumentError
from partita.graph import Graph, GraphDef
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Operation
from partita.graph.exporter import to_graph_def
from partita.graph.protos import RunMetadata, RunOptions

H100 = device_spec("H100-SXM")
CLUSTER = local_cluster("cpu:1,gpu:1", gpu=H100)
DATA = Path(__file__).parents[1] / "timing" / "tracing" / "data"


def _graph() -> GraphDef:
    """Products, a sum and a convolution of GPU:0, and a product of the host."""
    b = GraphBuilder()
    on = "/device:GPU:0"

    def zeros(*shape: int) -> Operation:
        sizes = b.constant(np.array(shape, np.int32), device="/device:CPU:0")
        return b.op("Fill", sizes, b.constant(np.zeros((), bfloat16), device=on), device=on)

    x, y = zeros(64, 128), zeros(128, 256)
    product = b.op("MatMul", x, y, name="product", device=on)
    b.op("AddV2", product, product, name="sum", device=on)
    b.op("Conv2D", zeros(1, 8, 8, 4), zeros(3, 3, 4, 2), name="conv", strides=[1, 1, 1, 1], padding="SAME", device=on)
    b.op("MatMul", x, y, name="on_host", device="/device:CPU:0")
    return b.graph_def()


def _step() -> tuple[dict[str, Graph], Timeline]:
    parts = cut(_graph(), CLUSTER, fetches=["sum:0", "conv:0", "on_host:0"])
    return dict(parts), simulate(parts, CLUSTER)


def _written(folder: Path, message: RunMetadata | bytes) -> Path:
    path = folder / "trace.pb"
    path.write_bytes(message if isinstance(message, bytes) else message.SerializeToString())
    return path


def assert_rows_of(rows: Measurements, timeline: Timeline) -> None:
    took = {node: float(timeline.find(node).duration_ns) for node in ("product", "sum")}
    assert rows.products == (TimedProduct(64, 256, 128, 1, "NN", took["product"]),)
    assert TimedMove(3 * 64 * 256 * 2, took["sum"]) in rows.moves
    assert [(refused.where.rpartition(": ")[2], refused.reason.split(" ")[0]) for refused in rows.refused] == [
        ("node 'conv'", "Conv2D")
    ]


def test_a_run_metadata_has_its_graphs(tmp_path: Path) -> None:
    """Ops of the device are rows with the times of the step; those of the host are not."""
    parts, timeline = _step()
    message = run_metadata(timeline)
    message.partition_graphs.extend(to_graph_def(part) for part in parts.values())
    assert_rows_of(read_source(_written(tmp_path, message), ["rig"], spec=H100), timeline)


def test_a_trace_without_a_graph_needs_one(tmp_path: Path) -> None:
    """A StepStats and a RunMetadata without graphs say so; the graph of the client does for both."""
    _, timeline = _step()
    graph = tmp_path / "graph.pb"
    graph.write_bytes(_graph().SerializeToString())
    for message in (run_metadata(timeline), run_metadata(timeline).step_stats.SerializeToString()):
        path = _written(tmp_path, message)
        with pytest.raises(InvalidArgumentError, match=r"trace\.pb: the trace has no graph; .* --graph FILE"):
            read_source(path, ["rig"], spec=H100)
        assert_rows_of(read_source(path, ["rig"], spec=H100, graph=graph), timeline)


async def test_shapes_of_feeds_come_from_the_trace(tmp_path: Path) -> None:
    """A graph in which the number of rows is open, in a session that gives its partition graphs."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None, 64))
    b.op("AddV2", x, x, name="y")
    message, options = RunMetadata(), RunOptions(trace_level=RunOptions.FULL_TRACE, output_partition_graphs=True)
    async with open_session(b.graph_def(), "cpu:1") as session:
        await session.run("y:0", {"x:0": np.ones((32, 64), np.float32)}, options=options, metadata=message)
    rows = read_source(_written(tmp_path, message), ["rig"], spec=device_spec("generic-cpu"))
    assert [move.size_bytes for move in rows.moves] == [3 * 32 * 64 * 4]


def test_a_trace_of_tensorflow_tells_shapes_that_its_graph_does_not() -> None:
    """Its ops on a CPU are rows of a CPU; it has none of a GPU."""
    path, graph = DATA / "loop.trace.pb", DATA / "loop.graph.pb"
    rows = read_source(path, ["rig"], spec=device_spec("generic-cpu"), graph=graph)
    assert [move.size_bytes for move in rows.moves] == [9, 12]
    assert ["float" in refused.reason for refused in rows.refused] == [True]
    with pytest.raises(InvalidArgumentError, match="but H100-SXM is a GPU"):
        read_source(path, ["rig"], spec=H100, graph=graph)


def test_what_is_no_trace_is_an_error(tmp_path: Path) -> None:
    """Files of other messages and of nothing name themselves."""
    for data in (b"", b"abc"):
        with pytest.raises(InvalidArgumentError, match=r"trace\.pb"):
            read_source(_written(tmp_path, data), ["rig"], spec=H100)
