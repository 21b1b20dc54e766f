"""The command line on graphs whose nodes stand for those of several ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partita.devices import parse_cluster
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.write_out import as_representatives
from tests.devices.timing.representatives.steps import gpus, graph_of, summed
from tests.scenarios.command_line import CommandLine, assert_one_clear_line

CLUSTER = '[[device]]\njob = "w"\nspec = "H100-SXM"\ncount = 4\n'


@pytest.fixture
def call(tmp_path: Path) -> list[str]:
    """The arguments that say which step of four ranks on which cluster."""
    graph, (target,) = graph_of(summed("tp"), Mesh(tp=4), gpus(parse_cluster(CLUSTER)))
    (tmp_path / "g.pb").write_bytes(as_representatives(graph, Mesh(tp=4)).to_graph_def().SerializeToString())
    (tmp_path / "c.toml").write_text(CLUSTER)
    return [str(tmp_path / "g.pb"), "--target", target, "--cluster", str(tmp_path / "c.toml")]


def test_json_counts_the_devices(call: list[str], partita: CommandLine) -> None:
    """`simulate --json` lists representatives, with the mesh and how many devices each stands for."""
    told = json.loads(partita.done("simulate", *call, "--json"))
    assert told["mesh"] == "pp:1,dp:1,cp:1,tp:4"
    assert [row["stands_for"] for row in told["devices"]] == [4]
    assert [total["runs"] for total in told["ops"] if total["op"] == "MatMul"] == [4]


def test_a_table_says_for_how_many_a_device_stands(call: list[str], partita: CommandLine) -> None:
    """`simulate` has a column for it, and a bar names the number."""
    text = partita.done("simulate", *call)
    assert "stands for" in text.splitlines()[2]
    assert "stands for 4 devices" in text


def test_run_refuses_them(call: list[str], partita: CommandLine) -> None:
    """`run` says in one line what the graph is for."""
    result = partita("run", *call)
    assert_one_clear_line(result, result.code, "stands for the nodes of 4 ranks", "simulate this graph")
    assert result.code != 0
