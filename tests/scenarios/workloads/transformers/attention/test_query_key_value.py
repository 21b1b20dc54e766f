"""Queries, keys and values by one product: columns of heads, the initial numbers of three, and few ops."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from partita.actors import BlockingSession
from partita.graph.builder.builder import GraphBuilder
from partita.graph.dtypes import Array
from partita.graph.gradients.backward import gradients
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.rank_program import RankProgram
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.transformers.attention.core import AttentionKind
from partita.scenarios.workloads.transformers.attention.query_key_value import (
    apart,
    joint_columns,
    query_key_value,
)
from partita.scenarios.workloads.transformers.network import RankNetwork, RankSizes
from partita.scenarios.workloads.transformers.parameters import RankParameters

HIDDEN, ROWS = 6, 5
KINDS = {
    "as many heads": AttentionKind(3, 3, 2, 2, causal=True),
    "groups": AttentionKind(6, 3, 2, 4, causal=True),
    "one head": AttentionKind(4, 1, 2, 2, causal=True),
}


def test_a_key_value_head_stands_behind_its_queries() -> None:
    """4 heads of 1 share 2 heads, whose values have 2 elements: queries are numbers 0 to 3, keys 4 and 5."""
    kind = AttentionKind(4, 2, 1, 2, causal=True)
    assert joint_columns(kind).tolist() == [0, 1, 4, 6, 7, 2, 3, 5, 8, 9]
    parts = {name: part.tolist() for name, part in apart(joint_columns(kind), kind).items()}
    assert parts == {"query": [0, 1, 2, 3], "key": [4, 5], "value": [6, 7, 8, 9]}


def network_of(b: GraphBuilder, mesh: Mesh, split: Split) -> RankNetwork:
    """A network of the first rank."""
    program = RankProgram(b, mesh)
    devices = ("/device:CPU:0",)
    return RankNetwork(program, RankParameters(program, "float64"), split, RankSizes(1, 1, ROWS, devices))


@pytest.mark.parametrize("name", KINDS)
def test_heads_are_products_with_their_columns(name: str) -> None:
    """Each of the three is x times its part of the weights, plus that of the bias."""
    b, kind = GraphBuilder(), KINDS[name]
    network = network_of(b, Mesh(), Split())
    x = np.random.default_rng(0).standard_normal((ROWS, HIDDEN))
    made = query_key_value(network, HIDDEN, kind, kind, bias=True)
    heads = made.heads(made.products(b.constant(x)))
    weights, bias = network.parameters.all
    given = np.random.default_rng(1).standard_normal(bias.part)
    with BlockingSession(b.graph_def()) as session:
        session.run([], targets=[node.name for _, node in network.parameters.assignments])
        *found, drawn = session.run([*(head.name for head in heads), weights.read.name], {bias.read.name: given})
    shapes = [(kind.heads, kind.size), (kind.kv_heads, kind.size), (kind.kv_heads, kind.value_size)]
    parts = zip(found, apart(drawn, kind).values(), apart(given, kind).values(), shapes, strict=True)
    for head, part, offset, shape in parts:
        np.testing.assert_allclose(head, (x @ part + offset).reshape(ROWS, 1, *shape), 1e-12, 1e-12)


def starts(kv_heads: int, tp: int) -> dict[str, Array]:
    """The initial weights of the first rank of tp, joint ones apart."""
    b = GraphBuilder()
    network = network_of(b, Mesh(tp=tp), Split(tp=tp))
    kind = AttentionKind(4, kv_heads, 2, 2, causal=True)
    own = kind._replace(heads=4 // tp, kv_heads=max(1, kv_heads // tp))
    query_key_value(network, HIDDEN, kind, own, bias=False)
    with BlockingSession(b.graph_def()) as session:
        session.run([], targets=[node.name for _, node in network.parameters.assignments])
        values = session.run([weight.read.name for weight in network.parameters.all])
    if len(values) == 1:
        return apart(values[0], own)
    return dict(zip(("query", "key", "value"), values, strict=True))


def test_both_ways_start_from_the_same_numbers() -> None:
    """Two ranks have a half of the columns each; four, with two heads of keys, have whole keys and values."""
    one, two, four = (starts(2, tp) for tp in (1, 2, 4))
    for name, width in ("query", 4), ("key", 2), ("value", 2):
        np.testing.assert_array_equal(two[name], one[name][:, :width], err_msg=name)
    np.testing.assert_array_equal(four["query"], one["query"][:, :2])
    for name in ("key", "value"):
        np.testing.assert_array_equal(four[name], one[name], err_msg=name)


def test_one_product_and_one_split() -> None:
    """Forwards and backwards, in place of three products each way."""
    b, kind = GraphBuilder(), KINDS["as many heads"]
    network = network_of(b, Mesh(), Split())
    x = b.placeholder("x", "float64", (ROWS, HIDDEN))
    made = query_key_value(network, HIDDEN, kind, kind, bias=False)
    heads = made.heads(made.products(x))
    gradients(b, list(heads), [x, network.parameters.all[0].read], [b.op("OnesLike", head)[0] for head in heads])
    ops = Counter(node.op for node in b.graph().op_nodes())
    assert (ops["MatMul"], ops["SplitV"], ops["Reshape"]) == (3, 1, 2)
    assert ops["ConcatV2"] == 2  # of the gradients, and of the initial numbers
