"""The attr `_gradient_op_type`: a node's gradient is by the rule that it names, an op's or one that no op has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph import gradients
from partita.graph.analysis.gradient_rules import Forward, Gradients, gradient, table
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Array
from partita.graph.protos import NameAttrList
from partita.graph.structured import while_loop
from tests.function_defs import function_of

X = np.array([1.0, -2.0, 3.0])


@pytest.fixture
def tripled() -> Iterator[str]:
    """The name of a rule that no op has: three times d y."""

    @gradient("Tripled")
    def rule(op: Forward, grad: Tensor) -> Gradients:
        return (grad * 3.0, *[None] * (len(op.input_types) - 1))

    yield "Tripled"
    del table()["Tripled"]


async def slope(b: GraphBuilder, y: Any, x: Tensor) -> Array:
    """d y / d x at X."""
    (name,) = gradients(b, [b.tensor(y)], [x])
    assert name is not None
    async with open_session(b.graph_def()) as session:
        return np.asarray((await session.run(name, {x.name: X}))[0])


def start() -> tuple[GraphBuilder, Tensor]:
    """A builder with x."""
    b = GraphBuilder()
    return b, b.placeholder("x", "float64", X.shape)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Partita>AsIs", np.ones(3)), ("Tripled", np.full(3, 3.0)), ("Neg", -np.ones(3)), ("Square", 2 * X)],
)
async def test_a_node_has_the_rule_that_it_names(tripled: str, name: str, expected: Array) -> None:
    """One of the package, one from outside and those of other ops, in place of the rule of Exp."""
    assert tripled
    b, x = start()
    y = b.op("Exp", x, attrs={"_gradient_op_type": name.encode()})
    np.testing.assert_allclose(await slope(b, y, x), expected)


async def test_the_rule_of_a_flat_op_stops_the_gradient() -> None:
    """As an op without a gradient does."""
    b, x = start()
    y = b.op("Exp", x, attrs={"_gradient_op_type": b"StopGradient"})
    assert gradients(b, [b.tensor(y)], [x]) == [None]


def test_an_unknown_name_is_an_error() -> None:
    """It is never taken for the rule of the op; the message says what to do."""
    b, x = start()
    y = b.op("Exp", x, name="y", attrs={"_gradient_op_type": b"CustomGradient-7"})
    with pytest.raises(NotFoundError, match=r"names the gradient 'CustomGradient-7', which is not known; register it"):
        gradients(b, [b.tensor(y)], [x])


@pytest.mark.parametrize("op", ["Sum", "Cast"])
def test_what_changes_shape_or_type_cannot_pass_its_gradient_as_it_is(op: str) -> None:
    """It would be no gradient of the input."""
    b, x = start()
    attrs = {"_gradient_op_type": b"Partita>AsIs"}
    y = b.op("Sum", x, 0, attrs=attrs) if op == "Sum" else b.op("Cast", x, DstT="float32", attrs=attrs)
    with pytest.raises(InvalidArgumentError, match="differs from its first input in type or shape"):
        gradients(b, [b.tensor(y)], [x])


async def test_a_call_may_name_a_rule(tripled: str) -> None:
    """The call has a known rule as its own; of another, as a tape of TensorFlow leaves it, its function has one."""
    body = GraphBuilder()
    body.op("Square", body.placeholder("a", "float64", None), name="s")
    for name, expected in ((tripled, np.full(3, 3.0)), ("PartitionedCall-12", 2 * X)):
        b, x = start()
        b.function(function_of("square", body.graph_def(), ["a"], ["s"]))
        attrs = {"_gradient_op_type": name.encode()}
        y = b.op("PartitionedCall", [x], Tout=["float64"], f=NameAttrList(name="square"), attrs=attrs)
        np.testing.assert_allclose(await slope(b, y, x), expected)


async def test_a_rule_is_named_inside_of_a_loop(tripled: str) -> None:
    """Twice through a body y = 2 y whose product names the rule: 3 * 3."""
    b, x = start()

    def body(i: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return i + 1, b.op("Mul", y, 2.0, attrs={"_gradient_op_type": tripled.encode()})[0]

    y = while_loop(b, lambda i, _: b.op("Less", i, 2), body, [b.constant(0), x])[1]
    np.testing.assert_allclose(await slope(b, y, x), np.full(3, 9.0))
