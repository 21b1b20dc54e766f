"""`--tensorboard DIR`: what a command writes for TensorBoard, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from partita.graph.protos import Event
from tests.graph.formats.test_record_file import records
from tests.scenarios.command_line import CommandLine, GraphFile, assert_one_clear_line


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A product on one device whose result goes to another."""
    graph = GraphFile()
    graph.add("x", "Placeholder", dtype=1, shape=(64, 64))
    graph.add("y", "MatMul", ["x", "x"], device="/cpu:0", T=1)
    graph.add("z", "Neg", ["y"], device="/cpu:1", T=1)
    return graph.write(tmp_path)


def events(folder: Path) -> list[Event]:
    """The events of the one file in a folder."""
    (file,) = folder.iterdir()
    return [Event.FromString(record) for record in records(file.read_bytes())]


def test_a_step_for_tensorboard(partita: CommandLine, graph: Path, tmp_path: Path) -> None:
    """The folder is made; with --json the makespan printed is the scalar written; how to look at it is said."""
    folder = tmp_path / "runs" / "a"
    printed = json.loads(partita.done("simulate", graph, "--devices", "cpu:2", "--tensorboard", folder, "--json"))
    _, drawn, figures, traced = events(folder)
    values = {value.tag: value.simple_value for value in figures.summary.value}
    assert values["step/time_s"] == pytest.approx(printed["makespan_ns"] / 1e9)
    assert drawn.WhichOneof("what") == "graph_def"
    assert traced.tagged_run_metadata.tag == "step_0"
    said = partita.done("simulate", graph, "--devices", "cpu:2", "--tensorboard", tmp_path / "runs" / "b")
    assert f"tensorboard --logdir {tmp_path}/runs/b" in said


def test_run_and_workload_write_it_too(partita: CommandLine, graph: Path, tmp_path: Path) -> None:
    """As simulate does."""
    np.save(tmp_path / "x.npy", np.ones((64, 64), np.float32))
    partita.done("run", graph, "--feed", f"x={tmp_path}/x.npy", "--devices", "cpu:2", "--tensorboard", tmp_path / "ran")
    words = ("workload", "reduction", "--set", "gpus=2", "--simulate", "--tensorboard", tmp_path / "built")
    assert "simulated step time" in partita(*words).out
    assert len(events(tmp_path / "ran")) == len(events(tmp_path / "built")) == 4


def test_what_is_no_folder_is_refused_before_anything_is_read(partita: CommandLine, tmp_path: Path) -> None:
    """By each of the commands."""
    (tmp_path / "file").write_text("")
    for words in (("simulate", "no.pb"), ("run", "no.pb"), ("workload", "mlp", "--simulate")):
        for folder in ("file", "file/inside"):
            refused = partita(*words, "--tensorboard", tmp_path / folder)
            assert_one_clear_line(refused, 2, "--tensorboard", "give a folder")
