"""Shapes of nodes that call functions; the tables are what TensorFlow 2.21 says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from partita.errors import InvalidArgumentError
from partita.graph import DataType, Graph, infer_shapes
from partita.graph.dtypes import Shape
from partita.graph.protos import NameAttrList

FLOAT = DataType.FLOAT


def shapes_of(
    op: str, inputs: Sequence[Shape], types: Sequence[DataType] | None = None, **attrs: object
) -> list[Shape]:
    """Shapes of the outputs of one node that reads placeholders of these shapes."""
    graph = Graph()
    types = types or [FLOAT] * len(inputs)
    node = graph.add_node("node", op, attrs)
    for port, (shape, dtype) in enumerate(zip(inputs, types, strict=True)):
        source = graph.add_node(f"x{port}", "Placeholder", {"dtype": dtype, "shape": shape})
        graph.add_edge(source, 0, node, port)
    return list(infer_shapes(graph)["node"])


def mapped(arguments: Sequence[Shape], captured: Sequence[Shape], promised: Sequence[Shape]) -> list[Shape]:
    """Shapes of the results of a map over rows."""
    return shapes_of(
        "MapDefun",
        [*arguments, *captured],
        Targuments=[FLOAT] * len(arguments),
        Tcaptured=[FLOAT] * len(captured),
        output_types=[FLOAT] * len(promised),
        output_shapes=list(promised),
        f=NameAttrList(name="f"),
    )


@pytest.mark.parametrize(
    ("arguments", "captured", "promised", "expected"),
    [
        ([(3, 2)], [], [(2,)], [(3, 2)]),
        ([(None, 2)], [], [(2,)], [(None, 2)]),
        ([None], [], [(2,)], [(None, 2)]),
        ([(3, 2), (3,)], [], [(2,), None], [(3, 2), None]),
        ([(None, 2), (4,)], [], [(None, 7)], [(4, None, 7)]),
        ([None, (4,)], [], [(None, 7)], [(4, None, 7)]),
        ([(None,), (None,)], [], [(), (5,)], [(None,), (None, 5)]),
        ([(3,)], [(7, 7)], [()], [(3,)]),
        ([(3,)], [()], [()], [(3,)]),
        ([(0, 2)], [], [(2,)], [(0, 2)]),
    ],
)
def test_a_map_gives_a_row_for_every_row(
    arguments: list[Shape], captured: list[Shape], promised: list[Shape], expected: list[Shape]
) -> None:
    """`output_shapes` are those of one call; the number of rows comes first."""
    assert mapped(arguments, captured, promised) == expected


@pytest.mark.parametrize(
    ("arguments", "promised", "says"),
    [
        ([()], [(2,)], "Arguments must have rank at least 1. Input 0 has rank of 0"),
        ([(3, 2), (4,)], [(2,)], "Arguments must have the same dimension 0"),
    ],
)
def test_what_cannot_be_mapped_over_is_refused(arguments: list[Shape], promised: list[Shape], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        mapped(arguments, [], promised)


def test_the_gradient_of_a_function_has_the_shapes_of_its_arguments() -> None:
    """For a resource the shape is unknown: the gradient is that of its value."""
    types, function = [FLOAT, DataType.RESOURCE, FLOAT], NameAttrList(name="f")
    shapes = shapes_of("SymbolicGradient", [(3, None), (), (7,)], types, Tin=types, Tout=[FLOAT, FLOAT], f=function)
    assert shapes == [(3, None), None]


def test_a_data_set_is_a_scalar_whatever_its_elements_are() -> None:
    """`output_shapes` of a data set or an iterator describe its elements; of an op that takes one out, its outputs."""
    elements: dict[str, Any] = {"output_types": [FLOAT], "output_shapes": [(2, 3)]}
    assert shapes_of("IteratorV2", [], shared_name=b"", container=b"", **elements) == [()]
    assert shapes_of("TakeDataset", [(), ()], [DataType.VARIANT, DataType.INT64], **elements) == [()]
    assert shapes_of("IteratorGetNext", [()], [DataType.RESOURCE], **elements) == [(2, 3)]
