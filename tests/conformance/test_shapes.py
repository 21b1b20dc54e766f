"""Inferred shapes and element types equal TensorFlow's; where Partita knows more, a run confirms it.

The folder `shapes` of the corpus has, for each node of a graph, the shapes that TensorFlow inferred when it imported
the graph. An import sees the Merge of a loop before its back edge and leaves the loop, and everything after it,
unknown; Partita also infers the body. It also follows numbers past unknown ones (the sizes of a Reshape), and knows the
rows of a segment sum whose segment numbers are constants.
"""

from __future__ import annotations

import numpy as np
import pytest

from partita.actors.sessions.local_session import open_session
from partita.graph.dtypes import Array, DataType, Shape, base_type, numpy_dtype
from partita.graph.graph import Graph
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.ops.record import NodeClass
from partita.graph.protos import GraphDef
from partita.graph.shape_inference.infer import Shapes, infer_shapes
from tests.conformance.corpus import Case, ShapeCase, shape_cases
from tests.conformance.test_values import CASES as WITH_VALUES, fed
from tests.runs import cpus, run_one

_NAMES = {"float32": DataType.FLOAT, "float64": DataType.DOUBLE, "float16": DataType.HALF}
_ENDS_OF_LOOPS = (NodeClass.ENTER, NodeClass.NEXT_ITERATION)


CASES = shape_cases()


def dtype_text(dtype: DataType) -> str:
    """The name of an element type in TensorFlow's Python."""
    return next((name for name, value in _NAMES.items() if value == dtype), dtype.name.lower())


def after_loops(graph: Graph) -> set[str]:
    """Names of the nodes of loop state and of all nodes that depend on a loop."""
    reached: set[str] = set()
    queue = [node for node in graph.op_nodes() if node.node_class in _ENDS_OF_LOOPS]
    while queue:
        node = queue.pop()
        if node.name not in reached:
            reached.add(node.name)
            queue += [edge.dst for edge in node.out_edges() if not edge.is_control]
    return reached


def fits(known: Shape, actual: Shape) -> bool:
    """Whether `actual` agrees with all known sizes of `known`."""
    if known is None:
        return True
    return (
        actual is not None
        and len(known) == len(actual)
        and all(k in (None, a) for k, a in zip(known, actual, strict=True))
    )


def told(case: ShapeCase) -> dict[str, Shapes]:
    """TensorFlow's shapes by node name, in Partita's form."""
    expected = case.expected["shapes"].items()
    return {name: tuple(None if shape is None else tuple(shape) for shape in shapes) for name, shapes in expected}


def known_better(case: ShapeCase) -> dict[str, Shapes]:
    """Names and shapes of nodes outside loops where Partita knows more; AssertionError if it knows less."""
    graph, expected = graph_def_to_graph(case.graph_def()), told(case)
    inferred, loops = infer_shapes(graph), after_loops(graph)
    assert inferred.keys() >= expected.keys()
    for name, shapes in expected.items():
        assert len(shapes) == len(inferred[name]), name
        assert all(fits(*pair) for pair in zip(shapes, inferred[name], strict=True)), (name, inferred[name], shapes)
    return {name: inferred[name] for name, shapes in expected.items() if inferred[name] != shapes and name not in loops}


def runnable(case: ShapeCase) -> tuple[GraphDef, dict[str, Array]]:
    """The graph without devices, and a feed of zeros for each placeholder; unknown sizes are two."""
    graph_def = case.graph_def()
    for node in graph_def.node:
        node.device = ""
    graph = graph_def_to_graph(graph_def)
    empty = [node for node in graph.op_nodes() if node.op == "Placeholder"]
    sizes = {node.name: tuple(2 if size is None else size for size in node.attr("shape") or ()) for node in empty}
    return graph_def, {f"{node.name}:0": np.zeros(sizes[node.name], numpy_dtype(node.attr("dtype"))) for node in empty}


async def shapes_of_a_run(graph_def: GraphDef, feeds: dict[str, Array], names: list[str]) -> list[tuple[int, ...]]:
    """The shapes of the first outputs of these nodes in a run."""
    async with open_session(graph_def, cpus(1)) as session:
        return [value.shape for value in await run_one(session, feeds, [f"{name}:0" for name in names], ())]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
async def test_shapes_are_those_that_tensorflow_infers(case: ShapeCase) -> None:
    """Never less; where more is known outside loops, a run has that shape."""
    better = known_better(case)
    if better:
        actual = await shapes_of_a_run(*runnable(case), list(better))
        for (name, shapes), shape in zip(better.items(), actual, strict=True):
            assert fits(shapes[0], shape), name


def test_more_is_known_in_few_places() -> None:
    """Outside loops nearly every output has exactly TensorFlow's shape."""
    assert sum(len(known_better(case)) for case in CASES) < sum(len(told(case)) for case in CASES) / 200


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_element_types_are_those_of_tensorflow(case: ShapeCase) -> None:
    """Every output of every node, with reference types."""
    graph = graph_def_to_graph(case.graph_def())
    for name, types in case.expected["dtypes"].items():
        node = graph.find_node(name)
        assert node is not None, name
        bases = [name.removesuffix("_ref") for name in types]
        assert [dtype_text(base_type(dtype)) for dtype in node.output_types] == bases, name


@pytest.mark.parametrize("case", WITH_VALUES, ids=lambda case: case.path)
def test_what_runs_gave_has_the_inferred_shape(case: Case) -> None:
    """TensorFlow's fetched values, also from loops, have the inferred shapes and types."""
    graph = graph_def_to_graph(case.graph_def())
    for step in case.steps():
        inferred = infer_shapes(graph, {name: value.shape for name, value in fed(case, step).items()})
        for tensor, key in zip(step.fetches, step.expected, strict=True):
            name, _, output = tensor.partition(":")
            value, node = case.expected[key], graph.find_node(name)
            assert node is not None
            assert value.dtype == numpy_dtype(base_type(node.output_types[int(output or 0)])), tensor
            assert fits(inferred[name][int(output or 0)], value.shape), tensor


def test_the_corpus_of_shapes_is_no_empty_shell() -> None:
    """It has thousands of outputs, nearly all with fully known shapes."""
    shapes = [shape for case in CASES for node in told(case).values() for shape in node]
    assert len(shapes) > 2000
    assert sum(shape is not None and None not in shape for shape in shapes) > len(shapes) / 2
