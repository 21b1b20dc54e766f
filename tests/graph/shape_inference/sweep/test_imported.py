"""Shapes of look-up tables and of variables in parts are those that TensorFlow 2.21 infers at import."""

from __future__ import annotations

import pytest

from partita.graph import Graph, infer_shapes
from partita.graph.checked_import import import_graph_def
from partita.graph.tensor_id import parse_tensor_name
from tests.graph.shape_inference.sweep.cases import Shapes, read_cases

CASES = read_cases()


@pytest.mark.parametrize(("graph_def", "theirs"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_shapes_are_tensorflows(graph_def: bytes, theirs: Shapes) -> None:
    """Of every tensor of the graph."""
    graph = Graph()
    import_graph_def(graph_def, graph)
    shapes = infer_shapes(graph)
    ours: Shapes = {}
    for name in theirs:
        tensor = parse_tensor_name(name)
        shape = shapes[tensor.node][tensor.index]
        ours[name] = None if shape is None else list(shape)
    assert ours == theirs


def test_all_kinds_are_there() -> None:
    """Tables of all ops, by themselves, in functions and in branches; variables of both kinds, by five partitioners."""
    assert (len(CASES), sum(len(shapes) for _, _, shapes in CASES)) == (47, 1643)
    assert sum("in parts" in name for name, _, _ in CASES) == 10
