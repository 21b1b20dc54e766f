"""Event files of a simulated step, as TensorBoard reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices import Cluster, cut, local_cluster, simulate
from partita.devices.timing import Timeline
from partita.devices.timing.export import run_metadata, write_tensorboard
from partita.devices.timing.export.tensorboard import scalars
from partita.errors import PartitaError
from partita.graph import Graph, GraphBuilder, GraphDef, RunMetadata

from .drawn import timelines

reader = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator",
    reason="needs the package tensorboard, which reads the files: pip install 'partita[peers]'",
)


def step() -> tuple[dict[str, Graph], Timeline, Cluster]:
    """A product with a large constant on one GPU, and its sum over two."""
    cluster, b = local_cluster("gpu:2"), GraphBuilder()
    gpus = [device.name for device in cluster if device.type == "GPU"]
    x = b.placeholder("x", "float32", (64, 64))
    sums = []
    for rank, device in enumerate(gpus):
        with b.device(device):
            y = b.op("MatMul", x, b.constant(np.ones((64, 64), np.float32), name=f"weights{rank}"), name=f"y{rank}")[0]
            sums.append(
                b.op("CollectiveReduceV2", y, 2, 1, 1, [], merge_op=b"Add", final_op=b"Id", name=f"sum{rank}")[0]
            )
    parts = cut(b, cluster, feeds=["x"], fetches=sums)
    return parts, simulate(parts, cluster, feeds={"x": (64, 64)}), cluster


def accumulated(folder: Path) -> Any:  # Any: TensorBoard ships no types
    """What TensorBoard knows of a folder."""
    events = reader.EventAccumulator(str(folder))
    events.Reload()
    return events


def test_tensorboard_reads_everything_back(tmp_path: Path) -> None:
    """Scalars to seven digits, the whole graph, and the RunMetadata under the tag of the step."""
    parts, timeline, cluster = step()
    assert Path(write_tensorboard(timeline, parts, tmp_path / "runs" / "a", step=3)).parent == tmp_path / "runs" / "a"
    events = accumulated(tmp_path / "runs" / "a")
    expected = dict(scalars(timeline))
    assert set(events.Tags()["scalars"]) == set(expected)
    for tag, value in expected.items():
        assert [(scalar.step, scalar.value) for scalar in events.Scalars(tag)] == [(3, np.float32(value))]
    assert expected["step/time_s"] == pytest.approx(timeline.makespan_ns / 1e9)
    gpu = next(device.name for device in cluster if device.type == "GPU")
    assert expected["busy/gpu:0"] == timeline.busy_fraction(gpu)
    assert expected["peak_memory_bytes/gpu:0"] == timeline.peak_memory_bytes(gpu)
    assert expected["exposed_communication_s/gpu:0"] == pytest.approx(timeline.communication(gpu)[0] / 1e9)
    low_ns, high_ns = timeline.interval_ns()
    assert [expected["step/low_s"], expected["step/high_s"]] == pytest.approx([low_ns / 1e9, high_ns / 1e9])
    assert events.Tags()["run_metadata"] == ["step_3"]
    traced = RunMetadata.FromString(events.RunMetadata("step_3").SerializeToString())
    assert traced == run_metadata(timeline)


def test_the_graph_has_all_nodes_with_their_devices(tmp_path: Path) -> None:
    """A receive depends on its send; what is large is left out and named."""
    parts, timeline, _ = step()
    write_tensorboard(timeline, parts, tmp_path)
    graph = GraphDef.FromString(accumulated(tmp_path).Graph().SerializeToString())
    nodes = {node.name: node for node in graph.node}
    assert sorted(nodes) == sorted(node.name for part in parts.values() for node in part.op_nodes())
    assert {node.name: node.device for node in graph.node} == {
        node.name: device for device, part in parts.items() for node in part.op_nodes()
    }
    recvs = [node for node in graph.node if node.op == "_Recv"]
    assert recvs
    assert all(nodes[node.input[-1].removeprefix("^")].op == "_Send" for node in recvs)
    assert all(name.partition(":")[0].removeprefix("^") in nodes for node in graph.node for name in node.input)
    assert list(nodes["weights0"].attr["_too_large_attrs"].list.s) == [b"value"]
    assert "value" not in nodes["weights0"].attr


def test_a_graph_that_is_not_cut_is_written_too(tmp_path: Path) -> None:
    """As it was before the cut, with the devices that its nodes have."""
    b = GraphBuilder()
    b.op("Neg", b.constant(np.ones((4, 4), np.float32)), name="y", device="/device:CPU:0")
    whole = b.graph()
    write_tensorboard(simulate(cut(b, "cpu:1", fetches=["y"]), "cpu:1"), whole, tmp_path)
    graph = GraphDef.FromString(accumulated(tmp_path).Graph().SerializeToString())
    assert list(graph.node) == list(whole.to_graph_def().node)


@given(timelines(), st.integers(0, 1 << 40))
def test_any_timeline_has_figures(tmp_path_factory: pytest.TempPathFactory, timeline: Timeline, number: int) -> None:
    """Also one by hand, of which neither memory nor hardware is known."""
    folder = tmp_path_factory.mktemp("runs")
    write_tensorboard(timeline, Graph(), folder, number)
    events = accumulated(folder)
    assert [scalar.step for scalar in events.Scalars("step/time_s")] == [number]
    assert len(events.Tags()["scalars"]) == len(dict(scalars(timeline)))


def test_a_folder_that_cannot_be_is_refused_and_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in its place; and of a file that cannot be finished nothing is left."""
    parts, timeline, _ = step()
    (tmp_path / "file").write_text("")
    with pytest.raises(PartitaError, match="file"):
        write_tensorboard(timeline, parts, tmp_path / "file")
    monkeypatch.setattr("partita.graph.formats.event_file.EventFile.add_run_metadata", _full)
    with pytest.raises(OSError, match="full"):
        write_tensorboard(timeline, parts, tmp_path / "runs")
    assert not list((tmp_path / "runs").iterdir())


def _full(*arguments: object) -> None:
    raise OSError("the disk is full")
