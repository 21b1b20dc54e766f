"""Shapes go through calls: the results of a call have the shapes that its function gives them."""

from __future__ import annotations

import pytest

from partita.errors import InvalidArgumentError
from partita.graph import infer_shapes
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Shape
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.protos import FunctionDef
from tests.function_defs import calling, func_attr, function_of


def product() -> FunctionDef:
    """(x, y) -> x @ y."""
    b = GraphBuilder()
    b.op("MatMul", b.placeholder("x", "float32"), b.placeholder("y", "float32"), name="m")
    return function_of("F", b.graph_def(), ["x:0", "y:0"], ["m:0"])


def shapes_of(b: GraphBuilder, **feeds: Shape) -> dict[str, tuple[Shape, ...]]:
    """All shapes of a graph for fed shapes."""
    return infer_shapes(graph_def_to_graph(b.graph_def(), add_default_attrs=True), feeds)


@pytest.mark.parametrize("op", ["PartitionedCall", "F"])
def test_results_have_the_shapes_of_the_body(op: str) -> None:
    """A function infers from the shapes it is called with, through whichever op it is called."""
    if op == "F":
        b = GraphBuilder()
        b.function(product())
        b.op("F", b.placeholder("x0", "float32"), b.placeholder("x1", "float32"), name="c")
    else:
        b = calling(op, product(), f=func_attr("F"))
    assert shapes_of(b, x0=(2, 3), x1=(3, None))["c"] == ((2, None),)
    assert shapes_of(b)["c"] == ((None, None),)
    with pytest.raises(InvalidArgumentError, match=r"Dimensions must be equal, but are 3 and 4.*'m'"):
        shapes_of(b, x0=(2, 3), x1=(4, 5))


def test_variables_are_known_inside() -> None:
    """A function knows the shape behind a handle that is passed to it."""
    inner = GraphBuilder()
    handle = inner.placeholder("v", "resource")
    inner.op("ReadVariableOp", handle, name="value", dtype="float32")
    b = GraphBuilder()
    b.function(function_of("F", inner.graph_def(), ["v:0"], ["value:0"]))
    variable = b.op("VarHandleOp", name="v", dtype="float32", shape=(4, 2))
    b.op("PartitionedCall", [variable], name="c", Tout=["float32"], f=func_attr("F"))
    assert shapes_of(b)["c"] == ((4, 2),)


def test_a_function_that_calls_itself_ends() -> None:
    """Results of the recursive call have unknown shapes."""
    function = product()
    node = function.node_def.add(name="again", op="PartitionedCall", input=["a0", "a1"])
    node.attr["f"].CopyFrom(func_attr("F"))
    node.attr["Tin"].CopyFrom(encode(["float32"] * 2, "list(type)"))
    node.attr["Tout"].CopyFrom(encode(["float32"], "list(type)"))
    function.ret["r0"] = "again:output:0"
    assert shapes_of(calling("PartitionedCall", function, f=func_attr("F")))["c"] == (None,)
