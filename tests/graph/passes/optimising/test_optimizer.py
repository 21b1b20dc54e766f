"""The optimiser as a whole: it leaves the nodes that TensorFlow's leaves, and does what a session's options ask for.

`data/optimised.json.gz` holds random graphs and what TensorFlow 2.21 made of them at level L1, with and without
`do_function_inlining`: the partition graphs that a session returns are those after its optimiser. (None of them has a
folded constant that equals another: TensorFlow's XLA passes mark the nodes of a user's graph with an attr of theirs,
`_XlaHasReferenceVars`, which keeps the two apart.)
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.partition.options import PartitionOptions
from partita.graph.partition.split import split_graph
from partita.graph.passes.client_graph import client_graph
from partita.graph.passes.client_request import ClientRequest
from partita.graph.passes.optimising.optimizer import optimize
from partita.graph.passes.selection import Passes
from partita.graph.protos import GraphOptions, OptimizerOptions
from tests.graph.passes.evaluator import CountingEvaluator, nodes_of
from tests.strategies import cpu

_CASES = json.loads(gzip.decompress((Path(__file__).parent / "data" / "optimised.json.gz").read_bytes()))


def _level_1(inlining: bool = False) -> Passes:
    """The passes of TensorFlow's level L1."""
    return Passes.of(GraphOptions(optimizer_options=OptimizerOptions(do_function_inlining=inlining)))


@pytest.mark.parametrize("number", range(len(_CASES)))
def test_the_nodes_left_are_those_that_tensorflow_leaves(number: int) -> None:
    """Names, ops, inputs and control inputs agree."""
    case: dict[str, Any] = _CASES[number]  # Any: parsed JSON
    graph = graph_def_to_graph(base64.b64decode(case["graph"]), add_default_attrs=True)
    request = client_graph(graph, ClientRequest(("x:0",), case["fetches"], device=cpu(0)))
    request.assign_devices(np.full(request.num_node_ids, request.intern_device(cpu(0))))
    (partition,) = split_graph(request, PartitionOptions()).values()
    optimised = optimize(partition, _level_1(case["inlining"]), CountingEvaluator())
    expected = {name: [text.removesuffix(":0") for text in node] for name, node in case["expected"].items()}
    assert nodes_of(optimised) == expected


def test_a_graph_with_nothing_to_gain_is_given_back_as_it_is() -> None:
    """Nothing is copied, and nothing evaluated."""
    b = GraphBuilder()
    b.op("Neg", b.placeholder("x", "float32", ()), name="y")
    graph, evaluator = b.graph(), CountingEvaluator()
    assert optimize(graph, _level_1(inlining=True), evaluator) is graph
    assert not evaluator.asked


def test_the_argument_is_left_alone_and_the_result_has_dense_ids() -> None:
    """Two equal sums of constants become one constant."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    sums = [b.constant(1.0, name="a") + b.constant(2.0, name="b") for _ in range(2)]
    b.op("AddN", [x, *sums], name="y")
    graph = b.graph()
    before = nodes_of(graph)
    optimised = optimize(graph, _level_1(), CountingEvaluator())
    assert nodes_of(graph) == before
    assert list(optimised.node_ids()) == list(range(optimised.num_nodes))
    assert nodes_of(optimised)["y"] == ["AddN", "x", "AddV2/_0__cf__", "AddV2/_0__cf__"]


def test_without_passes_the_graph_stays_as_it_is() -> None:
    """Even if it could be optimised."""
    b = GraphBuilder()
    _ = b.constant(1.0) + b.constant(2.0)
    graph = b.graph()
    assert optimize(graph, Passes(), CountingEvaluator()) is graph
