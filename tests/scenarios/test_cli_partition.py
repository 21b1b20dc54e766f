"""`partita partition`: the graph of every device, as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partita.scenarios.commands.partition import file_name
from tests.conformance.compare import compare
from tests.conformance.corpus import Case, cases, device_of_file, load_partitions
from tests.scenarios.command_line import CPU, CommandLine, GraphFile, assert_one_clear_line

EVERY = 4  # the suite of the partitioner compares all cases; this test is about files
CASES = [case for family in ("elementary", "random") for case in cases(family)[::EVERY] if not case.has_loop]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_files_hold_what_tensorflow_makes(case: Case, partita: CommandLine, tmp_path: Path) -> None:
    """The first step of the case is cut as TensorFlow cuts it."""
    step = case.steps()[0]
    flags = [("--feed", name) for name in step.feeds] + [("--fetch", name) for name in step.fetches]
    flags += [("--target", name) for name in step.targets]
    devices = f"cpu:{len(case.devices)}"
    words = [word for flag in flags for word in flag]
    text = partita.done(
        "partition", case.folder / "graph.pb", *words, "--devices", devices, "--out", tmp_path, "--json"
    )
    ours, theirs = load_partitions(tmp_path), step.raw()
    result = compare(theirs, ours, {node.name for node in case.graph_def().node})
    assert result.agrees(case.level), result.report(case.level)
    assert [name for name in ours if name not in text] == []


def test_files_are_named_after_devices() -> None:
    """Names are short on the local task, have the task elsewhere, and determine the device."""
    assert file_name(f"{CPU}0") == "cpu0.pb"
    far = "/job:worker/replica:0/task:1/device:GPU:2"
    assert file_name(far) == "worker_r0_t1_gpu2.pb"
    assert [device_of_file(file_name(name)) for name in (f"{CPU}3", far)] == [f"{CPU}3", far]


def test_feeds_need_no_value(partita: CommandLine, graph: Path, tmp_path: Path) -> None:
    """A name is enough to cut; a placeholder that is not fed stays in the graph."""
    partita.done("partition", graph, "--feed", "x", "--devices", "cpu:2", "--out", tmp_path / "new" / "folder")
    parts = load_partitions(tmp_path / "new" / "folder")
    assert sorted(parts) == [f"{CPU}0", f"{CPU}1"]
    assert "_Arg" in {node.op for node in parts[f"{CPU}0"].node}
    partita.done("partition", graph, "--devices", "cpu:2", "--out", tmp_path / "unfed")
    assert "Placeholder" in {node.op for node in load_partitions(tmp_path / "unfed")[f"{CPU}0"].node}


def test_a_cluster_file_names_tasks(partita: CommandLine, tmp_path: Path) -> None:
    """File names have the task of a worker's device; with soft placement a node goes to another device of its task."""
    drawn = GraphFile()
    drawn.add("a", "Const", dtype=1, value=np.float32(1))
    drawn.add("y", "Neg", ["a"], device="/job:worker/task:1/device:GPU:7", T=1)
    graph = drawn.write(tmp_path)
    (tmp_path / "c.toml").write_text("[[device]]\njob = 'worker'\ntask = 1\nspec = 'generic-cpu'\n")
    flags = ["--fetch", "y", "--cluster", tmp_path / "c.toml", "--out", tmp_path / "parts"]
    assert_one_clear_line(partita("partition", graph, *flags), 2, "GPU:7", "c.toml", "--soft-placement")
    partita.done("partition", graph, *flags, "--soft-placement")
    assert [file.name for file in (tmp_path / "parts").iterdir()] == ["worker_r0_t1_cpu0.pb"]


def test_a_folder_that_cannot_be_made(partita: CommandLine, graph: Path) -> None:
    """--out must be a folder or become one."""
    assert_one_clear_line(partita("partition", graph, "--devices", "cpu:2", "--out", graph), 2, "--out", graph.name)


def test_receives_are_scheduled_on_request(partita: CommandLine, tmp_path: Path) -> None:
    """Triggers are in the files and in the text, and the simulated step accepts them."""
    drawn = GraphFile()
    drawn.add("x", "Placeholder", dtype=1, shape=(2,), device="0")
    for k in range(20):
        drawn.add(f"n{k}", "Neg", [f"n{k - 1}" if k else "x"], device="1", T=1)
    drawn.add("y", "AddV2", ["x", "n19"], device="0", T=1)
    request = (drawn.write(tmp_path), "--feed", "x", "--fetch", "y", "--devices", "cpu:2", "--recv-epochs")
    partita.done("partition", *request, "--out", tmp_path / "parts")
    ops = [node.op for part in load_partitions(tmp_path / "parts").values() for node in part.node]
    assert ops.count("ControlTrigger") > 2
    assert partita.done("show", *request).count("ControlTrigger") == ops.count("ControlTrigger")
    assert "simulated step time" in partita.done("simulate", *request)
    assert_one_clear_line(partita("run", *request), 2, "--recv-epochs")
