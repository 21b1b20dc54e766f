"""A graph may say which sizes to take on the clock where they depend on values: `_assumed_shapes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from partita.graph import Graph, GraphBuilder
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.attrs import encode
from partita.graph.dtypes import Shape
from partita.graph.gradients import gradients
from partita.graph.shape_inference.infer import infer_joined, infer_shapes


def exchange(shapes: Sequence[Shape], sent: Sequence[Shape] = ((8, 4), (2,))) -> GraphBuilder:
    """Rows that go to other members by counts, and what becomes of them."""
    b = GraphBuilder()
    rows, counts = b.placeholder("rows", "float32", (8, 4)), b.placeholder("counts", "int32", (2,))
    attrs: dict[str, Any] = {  # attr values of several types
        "_assumed_shapes": encode(shapes, "list(shape)"),
        "_assumed_sent_shapes": encode(sent, "list(shape)"),
    }
    received = b.op("Partita>AllToAllV", rows, counts, 2, 1, 1, [], name="received", attrs=attrs)
    b.op("Neg", received[0], name="after")
    return b


def in_step(graph: Graph) -> dict[str, Any]:
    return infer_joined(JoinedGraph({"": graph})).by_name()


def test_sizes_that_depend_on_values_are_taken_as_assumed() -> None:
    """In one step without values, through all that follows; not as a truth of any run."""
    graph = exchange([(12, 4), (2,)]).graph()
    assert in_step(graph)["received"] == ((12, 4), (2,))
    assert in_step(graph)["after"] == ((12, 4),)
    assert infer_shapes(graph)["after"] == ((None, 4),)


def test_assumed_sizes_are_told() -> None:
    """One by one, and in a sentence."""
    inferred = infer_joined(JoinedGraph({"": exchange([(12, 4), (2,)]).graph()}))
    assert [tuple(shape) for shape in inferred.assumed] == [("received", "shape of output 0", (12, 4))]
    (sentence,) = inferred.assumptions
    assert sentence == "sizes that depend on values were taken as _assumed_shapes says: 1 x Partita>AllToAllV"


def test_known_sizes_and_ranks_are_stronger() -> None:
    """An assumption of another rank, or of another known size, is passed over."""
    for other in [(12, 4, 1), (12, 5)]:
        assert in_step(exchange([other, (2,)]).graph())["received"] == ((None, 4), (2,))


def test_one_shape_for_each_output_must_be_assumed() -> None:
    """Here there are two."""
    with pytest.raises(InvalidArgumentError, match="_assumed_shapes of a Partita>AllToAllV must have a shape for each"):
        in_step(exchange([(12, 4)]).graph())


def test_the_gradient_of_an_exchange_gets_back_as_many_rows_as_were_sent() -> None:
    """The rows that it sends are those that were received."""
    b = exchange([(12, 4), (2,)])
    (name,) = gradients(b, ["after"], ["rows"])
    assert name is not None
    shapes = in_step(b.graph())
    assert shapes[name.removesuffix(":0")] == ((8, 4), (2,))
    assert np.prod(shapes["after"][0]) == 48
