"""What a call or a loop takes has a gradient, zeros where its functions do not use it; conditionals give none.

So it is in TensorFlow, whose gradient of a call is one node with a result per argument.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.gradients import gradients
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.passes.lower_functional import lower_functional
from partita.graph.protos import FunctionDef, GraphDef, NameAttrList
from tests.function_defs import function_of
from tests.runs import fetched

X, U = np.array([1, 2], np.float32), np.array([3, 4], np.float32)


def function(name: str, results: Sequence[str] = ("double",)) -> FunctionDef:
    """double = 2 a0, less = False, of two arguments."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (2,))
    b.placeholder("u", "float32", (2,))
    b.op("Mul", x, np.float32(2), name="double")
    b.op("Identity", b.constant(np.bool_(False)), name="less")
    return function_of(name, b.graph_def(), ["x:0", "u:0"], [f"{result}:0" for result in results])


def calling(op: str, *, product: bool = False, twice: bool = False) -> GraphDef:
    """y, which calls functions of x and u, or of x and 5 u, that use x alone."""
    b = GraphBuilder()
    for definition in (function("f"), function("body", ("double", "u")), function("cond", ("less",))):
        b.function(definition)
    x, u = b.placeholder("x", "float32", (2,)), b.placeholder("u", "float32", (2,))
    given = b.op("Mul", u, np.float32(5))[0] if product else u
    result = call(b, op, x, given)
    b.identity(call(b, op, result, given) if twice else result, name="y")
    return b.graph_def()


def call(b: GraphBuilder, op: str, x: Tensor, u: Tensor) -> Tensor:
    types, f = {"Tin": ["float32"] * 2, "Tout": ["float32"]}, NameAttrList(name="f")
    if op == "f":
        return b.op("f", x, u)[0]
    if op.endswith("If"):
        attrs = types | {"then_branch": f, "else_branch": f}
        return b.op(op, b.constant(np.bool_(True)), [x, u], attrs=attrs)[0]
    if op.endswith("Case"):
        return b.op(op, b.constant(np.int32(0)), [x, u], attrs=types | {"branches": [f]})[0]
    if op.endswith("While"):
        functions = {"cond": NameAttrList(name="cond"), "body": NameAttrList(name="body")}
        return b.op(op, [x, u], attrs={"T": ["float32"] * 2, **functions})[0]
    return b.op(op, [x, u], attrs=types | {"f": f})[0]


@pytest.mark.parametrize("product", [False, True])
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("op", ["PartitionedCall", "StatefulPartitionedCall", "f", "While", "StatelessWhile"])
async def test_an_argument_that_is_not_used_has_a_gradient_of_zeros(op: str, *, twice: bool, product: bool) -> None:
    """Also what it is computed from, and with two calls of one function."""
    graph = graph_def_to_graph(calling(op, product=product, twice=twice))
    names = [name for name in gradients(graph, ["y:0"], ["x:0", "u:0"]) if name is not None]
    assert len(names) == 2
    lowered = lower_functional(graph, inline_calls=True).to_graph_def()
    of_x, of_u = await fetched(lowered, names, {"x:0": X, "u:0": U})
    factor = 1 if op.endswith("While") else 2
    np.testing.assert_array_equal(of_x, np.full(2, factor ** (1 + twice), np.float32))
    np.testing.assert_array_equal(of_u, np.zeros(2, np.float32))


@pytest.mark.parametrize("op", ["If", "StatelessIf", "Case", "StatelessCase"])
def test_a_conditional_gives_none_for_what_no_branch_uses(op: str) -> None:
    of_x, of_u = gradients(graph_def_to_graph(calling(op)), ["y:0"], ["x:0", "u:0"])
    assert of_x is not None
    assert of_u is None


def test_what_no_call_takes_has_no_gradient() -> None:
    graph_def = calling("PartitionedCall")
    graph = graph_def_to_graph(graph_def)
    b = GraphBuilder()
    b.placeholder("other", "float32", (2,))
    graph = graph_def_to_graph(GraphDef(node=[*graph_def.node, *b.graph_def().node], library=graph_def.library))
    assert gradients(graph, ["y:0"], ["other:0"]) == [None]
