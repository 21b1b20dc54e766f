"""Recurrent layers keep their outputs in tensor lists: the shape of what is fed tells all that they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.devices import cut
from partita.devices.timing import Timeline, simulate
from partita.graph import GraphDef, load_saved_model
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array, Shape
from tests.conformance.corpus import Case, cases
from tests.function_defs import LOWER, func_attr, function_of

ROWS, STEPS, UNITS = 3, 5, 4
ELEMENT = np.array([-1, UNITS], np.int32)
FLOAT: dict[str, Any] = {"element_dtype": "float32"}  # Any: keyword arguments of several types


def body() -> GraphBuilder:
    """One step of the layer: state = tanh(state @ w + input of the step), which is an output too."""
    b = GraphBuilder()
    i, outputs = b.placeholder("i", "int32", ()), b.placeholder("outputs", "variant", ())
    state, inputs = b.placeholder("state", "float32"), b.placeholder("inputs", "variant", ())
    product = b.op("MatMul", state, np.ones((UNITS, UNITS), np.float32))
    item = b.op("TensorListGetItem", inputs, i, ELEMENT, **FLOAT)
    b.op("Tanh", b.op("AddV2", product, item), name="following")
    b.op("TensorListSetItem", outputs, i, b.op("Identity", "following:0"), name="written", **FLOAT)
    b.op("AddV2", i, 1, name="next")
    return b


def layer(*, lowered: bool) -> GraphDef:
    """A function whose loop reads one list and writes another, called with x of an unknown number of rows."""
    inner = GraphBuilder()
    variables = ["i:0", "outputs:0", "state:0", "inputs:0"]
    results = ["next:0", "written:0", "following:0", "inputs:0"]
    step = function_of("step", body().graph_def(), variables, results)
    goes_on = GraphBuilder()
    for name, dtype in zip(variables, ("int32", "variant", "float32", "variant"), strict=True):
        goes_on.placeholder(name.removesuffix(":0"), dtype, ())
    goes_on.op("Less", "i:0", STEPS, name="less")
    condition = function_of("goes_on", goes_on.graph_def(), variables, ["less:0"])
    x = inner.placeholder("x", "float32", (None, STEPS, UNITS))
    by_step = inner.op("Transpose", x, np.array([1, 0, 2], np.int32))
    inputs = inner.op("TensorListFromTensor", by_step, ELEMENT, **FLOAT)[0]
    outputs = inner.op("TensorListReserve", ELEMENT, np.int32(STEPS), **FLOAT)[0]
    state = inner.op("Sum", x, np.array([1], np.int32))
    arguments = [inner.constant(0), outputs, state, inputs]
    attrs = {"cond": func_attr("goes_on"), "body": func_attr("step"), LOWER: encode(lowered, "bool")}
    loop = inner.op("While", arguments, attrs={"T": ["int32", "variant", "float32", "variant"], **attrs}, name="loop")
    stack = inner.op("TensorListStack", loop[1], ELEMENT, num_elements=STEPS, **FLOAT)
    inner.op("Transpose", stack, np.array([1, 0, 2], np.int32), name="y")
    b = GraphBuilder()
    for function in (step, condition, function_of("layer", inner.graph_def(), ["x:0"], ["y:0"])):
        b.function(function)
    x = b.placeholder("x", "float32", (None, STEPS, UNITS))
    types = {"Tin": ["float32"], "Tout": ["float32"]}
    b.identity(b.op("StatefulPartitionedCall", [x], attrs={**types, "f": func_attr("layer")})[0], name="y")
    return b.graph_def()


def timeline(graph_def: GraphDef, shapes: dict[str, Shape | Array], fetch: str, *, inline: bool) -> Timeline:
    return simulate(cut(graph_def, "cpu:1", feeds=[*shapes], fetches=[fetch], inline=inline), "cpu:1", feeds=shapes)


@pytest.mark.parametrize("lowered", [False, True])
def test_a_layer_costs_what_the_shape_of_its_input_says(lowered: bool) -> None:
    """Called or inlined, its loop lowered or not."""
    shapes: dict[str, Shape | Array] = {"x": (ROWS, STEPS, UNITS)}
    called, inlined = (timeline(layer(lowered=lowered), shapes, "y", inline=inline) for inline in (False, True))
    products = [event for event in called.events if event.op == "MatMul"]
    assert sum(event.flops * event.runs for event in products) == STEPS * 2 * ROWS * UNITS * UNITS
    assert (called.flops, called.makespan_ns) == (inlined.flops, inlined.makespan_ns)


KERAS = [case for case in cases("saved_model") if "keras" in case.path]  # recurrent ones in the whole corpus only


@pytest.mark.parametrize("case", KERAS, ids=lambda case: case.path)
def test_models_of_keras_need_the_shape_of_their_input_only(case: Case) -> None:
    """Called or inlined."""
    saved = load_saved_model(case.folder / case.info["dir"])
    signature = saved.signatures["serving_default"]
    ((fed, shape),) = [(info.tensor, info.shape) for info in signature.inputs.values()]
    (fetch,) = [info.tensor for info in signature.outputs.values()]
    shapes: dict[str, Shape | Array] = {fed: (ROWS, *(size for size in (shape or ())[1:] if size is not None))}
    called, inlined = (timeline(saved.graph_def, shapes, fetch, inline=inline) for inline in (False, True))
    assert called.flops > 0
    assert (called.flops, called.makespan_ns) == (inlined.flops, inlined.makespan_ns)
