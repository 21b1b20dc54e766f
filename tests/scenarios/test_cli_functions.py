"""Graphs with functions on the command line: run, simulated, partitioned and looked at as they are lowered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from partita.graph.protos import AttrValue, FunctionDef
from tests.function_defs import LOWER, func_attr, function_of
from tests.scenarios.command_line import CommandLine


def unary(name: str, op: str) -> FunctionDef:
    """A function of one float on the second device."""
    b = GraphBuilder()
    b.op(op, b.placeholder("x", "float32"), name="y", device="/device:CPU:1")
    return function_of(name, b.graph_def(), ["x:0"], ["y:0"])


@pytest.fixture
def conditional(tmp_path: Path) -> Path:
    """A graph that negates or squares `x`, as `taken` says."""
    b = GraphBuilder()
    b.function(unary("T", "Neg"))
    b.function(unary("F", "Square"))
    taken, x = b.placeholder("taken", "bool", ()), b.placeholder("x", "float32", (3,))
    branches = {"then_branch": func_attr("T"), "else_branch": func_attr("F"), LOWER: AttrValue(b=True)}
    c = b.op("StatelessIf", taken, [x], name="c", Tout=["float32"], attrs=branches)
    b.op("Identity", c[0], name="out")
    path = tmp_path / "conditional.pb"
    path.write_bytes(b.graph_def().SerializeToString())
    return path


@pytest.fixture
def feeds(tmp_path: Path) -> list[str]:
    """Flags that feed the graph."""
    np.save(tmp_path / "taken.npy", np.array(False))
    np.save(tmp_path / "x.npy", np.array([1, 2, 3], np.float32))
    return ["--feed", f"taken={tmp_path / 'taken.npy'}", "--feed", f"x={tmp_path / 'x.npy'}", "--devices", "cpu:2"]


def test_run_fetches_the_ends_of_the_graph_as_written(
    partita: CommandLine, conditional: Path, feeds: list[str]
) -> None:
    """What lowering leaves behind is no end: it may belong to the branch that is not taken."""
    text = partita.done("run", conditional, *feeds)
    assert "1 values fetched" in text or "1 value fetched" in text
    assert "out  float [3] 1, 4, 9" in text


def test_partition_and_simulate_see_the_lowered_graph(
    partita: CommandLine, conditional: Path, feeds: list[str], tmp_path: Path
) -> None:
    """Branches go to their devices, and what they take is counted."""
    partita.done("partition", conditional, "--devices", "cpu:2", "--out", tmp_path / "parts")
    assert {path.name for path in (tmp_path / "parts").iterdir()} == {"cpu0.pb", "cpu1.pb"}
    assert "device:CPU:1" in partita.done("simulate", conditional, *feeds)


def test_inspect_tells_what_runs(partita: CommandLine, conditional: Path) -> None:
    """The nodes are those of the file; what has no kernel is told of the nodes that run in their place."""
    text = partita.done("inspect", conditional)
    assert "4 nodes" in text
    assert "2 functions" in text
    assert "ops without kernel: none" in text
    assert "fetched by default: out" in text
