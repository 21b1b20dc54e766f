"""Shapes and slopes of layer normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.gradients import gradients
from tests.devices.kernels.harness import shapes
from tests.graph.gradients.numeric import Example, example, normal

ROWS = normal(2, 3, 4), normal(4), normal(4, seed=1)
EXAMPLES: dict[str, Example] = {
    "norm": example(lambda b, *xs: b.op("Partita>LayerNorm", *xs, U="double")[0], *ROWS),
    "large epsilon": example(lambda b, *xs: b.op("Partita>LayerNorm", *xs, U="double", epsilon=0.5)[0], *ROWS),
    "open": example(lambda b, *xs: b.op("Partita>LayerNorm", *xs, U="double")[0], *ROWS, open_shapes=True),
}


@pytest.mark.parametrize("name", EXAMPLES)
async def test_slopes(name: str) -> None:
    """The gradients say what small steps of the inputs do to the outputs."""
    await EXAMPLES[name].check()


def test_shapes_as_far_as_they_are_known() -> None:
    """From x, and from gain and offset where it is open."""
    assert shapes("Partita>LayerNorm", (2, 3, 4), (4,), (4,)) == [(2, 3, 4), (2, 3), (2, 3)]
    assert shapes("Partita>LayerNorm", (2, None), (None,), (4,)) == [(2, 4), (2,), (2,)]
    assert shapes("Partita>LayerNorm", None, (4,), None) == [None, None, None]
    assert shapes("Partita>LayerNormGrad", (2, 4), (None,), None, None, None) == [(2, 4), (4,), (4,)]
    assert shapes("Partita>LayerNormGrad", None, (4,), None, None, None) == [None, (4,), (4,)]


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("LayerNorm", [(2, 3), (4,), (4,)], {}, r"x has the shape \[2,3\] and gain \[4\]; .* as long as gain"),
        ("LayerNorm", [(2, 3), (3,), (4,)], {}, r"x has the shape \[2,3\] and offset \[4\]"),
        ("LayerNorm", [None, (3,), (4,)], {}, "gain has 3 elements and offset 4; give as many"),
        ("LayerNorm", [(), (3,), (3,)], {}, "the last axis of x must be as long as gain"),
        ("LayerNorm", [(2, 3), (3,), (3,)], {"T": DataType.DOUBLE}, "has U = double, not float: set the attr U"),
        ("LayerNormGrad", [(2, 3), (3,), (3,), (2,), (2, 3)], {}, r"mean has the shape \[3\], but by x it is \[2\]"),
        ("LayerNormGrad", [(2, 3), (3,), (2,), (2,), (2, 4)], {}, r"d_y has the shape \[2,4\], but by x it is \[2,3\]"),
    ],
)
def test_what_does_not_fit_is_refused(op: str, inputs: list[Any], attrs: dict[str, Any], message: str) -> None:
    """Before a run, with the input by name and what was expected."""
    with pytest.raises(InvalidArgumentError, match=message):
        shapes(f"Partita>{op}", *inputs, **attrs)


def test_no_second_gradient() -> None:
    """The gradient of the gradient is refused by name."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (3, 4))
    y = b.op("Partita>LayerNorm", x, *[b.constant(np.ones(4, np.float32))] * 2)
    graph = b.graph()
    (once,) = gradients(graph, [y[0].name], [x.name])
    assert once is not None
    with pytest.raises(NotFoundError, match="Partita>LayerNormGrad"):
        gradients(graph, [once], [x.name])


def test_the_mean_of_a_row_has_no_gradient() -> None:
    """It is there for the gradient of y; to compute it apart is what to do."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (3, 4))
    y = b.op("Partita>LayerNorm", x, *[b.constant(np.ones(4, np.float32))] * 2)
    with pytest.raises(UnimplementedError, match="has a gradient by y alone; compute the mean"):
        gradients(b.graph(), [y[1].name], [x.name])
