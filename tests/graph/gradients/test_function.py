"""The gradient of a function as a function: what its SymbolicGradient node computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.errors import NotFoundError
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array, DataType
from partita.graph.functions.body import FunctionBody
from partita.graph.gradients import gradient_function
from partita.graph.library.function_library import FunctionLibrary
from partita.graph.protos import FunctionDef, FunctionDefLibrary, NameAttrList
from tests.function_defs import func_attr, function_of, library_of
from tests.graph.gradients.programs import NUM_VARIABLES, Statement, derivatives, graph, programs, value
from tests.runs import fetched

INPUTS = [f"x{number}:0" for number in range(NUM_VARIABLES)]


async def call(body: FunctionBody, values: Sequence[Array]) -> list[Array]:
    """What a body gives for these arguments, run as a graph with placeholders for them."""
    graph_def = body.graph.to_graph_def()

    for node in graph_def.node:
        dtype = node.attr["T"].type
        if node.op == "_Arg":
            node.op = "Placeholder"
            node.attr.clear()
            node.attr["dtype"].type = dtype
        elif node.op == "_Retval":
            node.op = "Identity"
            del node.attr["index"]
    fetches = [f"{node.name}:0" for node in body.results]
    return await fetched(
        graph_def, fetches, {f"{node.name}:0": v for node, v in zip(body.arguments, values, strict=True)}
    )


def empty() -> FunctionLibrary:
    return FunctionLibrary(FunctionDefLibrary())


@given(programs, st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=10)
async def test_of_a_function_it_is_that_of_its_body(program: tuple[Statement, ...], seed: int, even: bool) -> None:
    definition = function_of("F", graph(program, (2,)).graph_def(), [*INPUTS, "even:0"], ["y:0"])
    body = gradient_function(FunctionLibrary(library_of(definition)), NameAttrList(name="F"))
    assert body.argument_types == (DataType.DOUBLE,) * 3 + (DataType.BOOL, DataType.DOUBLE)
    assert body.result_types == (DataType.DOUBLE,) * 3 + (DataType.BOOL,)
    rng = np.random.default_rng(seed)
    inputs, flows = list(rng.uniform(-1, 1, (NUM_VARIABLES, 2))), rng.uniform(-1, 1, 2)
    *actual, of_bool = await call(body, [*inputs, np.array(even), flows])
    assert not of_bool
    for ours, theirs in zip(actual, derivatives(lambda at: value(program, at, even), inputs), strict=True):
        np.testing.assert_allclose(ours, theirs * flows, rtol=1e-9, atol=1e-12)


async def test_of_an_op_it_is_by_its_rule_with_zeros_where_nothing_flows_back() -> None:
    kinds = {"T": encode(DataType.FLOAT, "type"), "Tidx": encode(DataType.INT32, "type")}
    body = gradient_function(empty(), NameAttrList(name="Sum", attr=kinds))
    x, axis, flow = np.ones((2, 3), np.float32), np.array([0], np.int32), np.array([1, 2, 3], np.float32)
    dx, d_axis = await call(body, [x, axis, flow])
    np.testing.assert_array_equal(dx, np.broadcast_to(flow, (2, 3)))
    np.testing.assert_array_equal(d_axis, np.array([0], np.int32))


async def test_the_library_is_asked_first() -> None:
    library = FunctionLibrary(library_of(double(), five_times(), gradients={"F": "G"}))
    (dx,) = await call(gradient_function(library, NameAttrList(name="F")), [np.array(2.0), np.array(3.0)])
    assert dx == 15


async def test_functions_called_inside_are_differentiated_too() -> None:
    outer = GraphBuilder()
    a = outer.placeholder("a", DataType.DOUBLE, ())
    types = encode([DataType.DOUBLE], "list(type)")
    outer.op("PartitionedCall", [a * a], name="c", attrs={"Tin": types, "Tout": types, "f": func_attr("F")})
    definition = function_of("H", outer.graph_def(), ["a:0"], ["c:0"])
    body = gradient_function(FunctionLibrary(library_of(double(), definition)), NameAttrList(name="H"))
    (dx,) = await call(body, [np.array(3.0), np.array(1.0)])
    assert dx == 12


def test_the_same_call_has_the_same_body() -> None:
    library = FunctionLibrary(library_of(double()))
    first, second = (gradient_function(library, NameAttrList(name="F")) for _ in range(2))
    assert first is second


def test_what_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="Nothing"):
        gradient_function(empty(), NameAttrList(name="Nothing"))


def double() -> FunctionDef:
    """F(a) = a + a."""
    builder = GraphBuilder()
    builder.op("AddV2", builder.placeholder("a", DataType.DOUBLE, ()), "a:0", name="r")
    return function_of("F", builder.graph_def(), ["a:0"], ["r:0"])


def five_times() -> FunctionDef:
    """G(a, g) = 5 g, which is not the gradient of F, so that the test shows which rule was used."""
    builder = GraphBuilder()
    builder.placeholder("a", DataType.DOUBLE, ())
    builder.op("Mul", builder.placeholder("g", DataType.DOUBLE, ()), np.float64(5), name="r")
    return function_of("G", builder.graph_def(), ["a:0", "g:0"], ["r:0"])
