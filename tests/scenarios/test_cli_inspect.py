"""`partita inspect`: the contents of a graph."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from partita.graph import graph_def_to_graph
from partita.graph.builder import GraphBuilder
from partita.graph.protos import NameAttrList
from partita.scenarios.commands.inspect import findings
from tests.function_defs import calling, function_of
from tests.scenarios.command_line import CPU, CommandLine, GraphFile
from tests.strategies import GraphCase, graph_cases


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(graph_cases())
def test_counts_add_up(case: GraphCase) -> None:
    """Every node is counted once by op and once by device; every placeholder is a feed; fetches have no consumers."""
    report = findings(graph_def_to_graph(case.graph_def), {})
    assert report.ops == dict(Counter(node.op for node in case.graph_def.node))
    assert report.nodes == len(case.graph_def.node) == sum(report.devices.values())
    placeholders = {node.name for node in case.graph_def.node if node.op.startswith("Placeholder")}
    assert {feed.name for feed in report.feeds} == placeholders
    consumed = {text.lstrip("^").partition(":")[0] for node in case.graph_def.node for text in node.input}
    ends = {name.partition(":")[0] for name in report.fetches} | set(report.targets)
    assert ends == {node.name for node in case.graph_def.node} - consumed


def test_json(partita: CommandLine, graph: Path) -> None:
    """One JSON object with all findings."""
    document = json.loads(partita.done("inspect", graph, "--json"))
    assert document["nodes"] == 5
    assert document["ops"] == {"Const": 2, "Placeholder": 1, "MatMul": 1, "AddV2": 1}
    assert document["devices"] == {f"{CPU}0": 3, f"{CPU}1": 2}
    assert document["feeds"] == [{"name": "x", "dtype": "float", "shape": [None, 3], "has_default": False}]
    assert (document["fetches"], document["targets"], document["ops_without_kernel"]) == (["y"], [], {})


def test_text(partita: CommandLine, graph: Path, tmp_path: Path) -> None:
    """The same as text; ops without kernel are listed."""
    text = partita.done("inspect", graph)
    expected = ["5 nodes", "MatMul", "[?,3]", "cpu:1", "fetched by default: y"]
    assert [word for word in expected if word not in text] == []
    odd = GraphFile()
    odd.add("it", "LMDBReader")
    text = partita.done("inspect", odd.write(tmp_path, "odd.pb"))
    assert "ops without kernel: LMDBReader (1)" in text
    assert re.search(r"^it +LMDBReader +- *$", text, re.MULTILINE)


def test_functions_that_may_be_called_are_looked_into(partita: CommandLine, tmp_path: Path) -> None:
    """Missing kernels and shape functions in them are listed, with function and node; calls themselves need none."""
    b = GraphBuilder()
    b.op("ConfigureTPUEmbeddingMemory", b.placeholder("x", "string"), name="contents")
    function = function_of("read", b.graph_def(), ["x"], ["contents"])
    b = calling("PartitionedCall", function, f=NameAttrList(name="read"))
    b.op("read", b.constant(b"", "string"), name="by_name")
    path = tmp_path / "calls.pb"
    path.write_bytes(b.graph_def().SerializeToString())
    document = json.loads(partita.done("inspect", path, "--json"))
    assert document["ops_without_kernel"] == {"ConfigureTPUEmbeddingMemory": 1}
    assert document["nodes_without_kernel"] == [
        {"function": "read", "node": "contents", "op": "ConfigureTPUEmbeddingMemory"}
    ]
    assert not {"PartitionedCall", "read"} & document["ops_without_shape_function"].keys()
    assert re.search(r"^contents +ConfigureTPUEmbeddingMemory +read *$", partita.done("inspect", path), re.MULTILINE)
