"""The gradient of a function or of an op as a function body: what a SymbolicGradient node computes.

    f(x, y) -> z            gradient(x, y, dz) -> dx, dy

It takes the arguments and the gradients of the results, and returns the gradients of the arguments: zeros where there
is none, of type float for a resource. The gradient comes from the first of: a gradient function that the library names,
the definition of the function, the rule of the op (through a body with that one node).
"""

from __future__ import annotations

from ..attrs import decode
from ..builder.extension import Extension
from ..builder.handles import Tensor
from ..dtypes import DataType, base_type
from ..functions.body import FunctionBody, instantiate, instantiate_call, kept_body
from ..graph import Graph
from ..library.function_library import FunctionLibrary
from ..node import Node
from ..ops.type_inference import input_output_types
from ..protos import NameAttrList
from .backward import gradients
from .forward import DIFFERENTIABLE


def gradient_function(library: FunctionLibrary, function: NameAttrList) -> FunctionBody:
    """The gradient of `function`; the same body for the same call.

    Raises NotFoundError for a name that is neither a function nor an op, and for an op without a gradient; and the
    errors of instantiating and differentiating.
    """
    named = library.gradient_of(function.name)
    if named:
        return instantiate(library, named, function.attr)

    def differentiate() -> FunctionBody:
        is_function = function.name in library
        return _differentiated(instantiate_call(library, function) if is_function else _body_of_op(library, function))

    return kept_body(library, f"gradient of {function.name}", function.attr, differentiate)


def _body_of_op(library: FunctionLibrary, function: NameAttrList) -> FunctionBody:
    """An op as a function: arguments, one node, results."""
    attrs = {key: decode(value) for key, value in function.attr.items()}
    inputs, outputs = input_output_types(library.lookup(function.name), attrs)
    graph = Graph()
    graph.functions = library
    node = graph.add_node(function.name, function.name, dict(function.attr))
    arguments = [_argument(graph, f"x{k}", k, dtype) for k, dtype in enumerate(inputs)]
    for port, argument in enumerate(arguments):
        graph.add_edge(argument, 0, node, port)
    results = [_result(graph, f"y{port}", port, node, port) for port in range(len(outputs))]
    graph.fix_source_and_sink_edges()
    return FunctionBody(function.name, graph, tuple(arguments), tuple(results), (), {})


def _argument(graph: Graph, name: str, index: int, dtype: DataType) -> Node:
    return graph.add_node(name, "_Arg", {"T": base_type(dtype), "index": index})


def _result(graph: Graph, name: str, index: int, source: Node, port: int) -> Node:
    node = graph.add_node(name, "_Retval", {"T": base_type(source.output_types[port]), "index": index})
    graph.add_edge(source, port, node, 0)
    return node


def _differentiated(body: FunctionBody) -> FunctionBody:
    """The gradient of a body: a copy of it without its results, extended by the gradients."""
    graph = body.graph.clone()
    arguments = [graph.node(node.id) for node in body.arguments]
    results = [graph.node(node.id) for node in body.results]
    result_grads = [
        _argument(graph, graph.new_name("gradient_of_result"), len(arguments) + k, node.input_types[0])
        for k, node in enumerate(results)
    ]
    pairs = [(_kept(graph, result), grad.name) for result, grad in zip(results, result_grads, strict=True)]
    pairs = [(y, grad) for (y, grad), kind in zip(pairs, body.result_types, strict=True) if kind in DIFFERENTIABLE]
    names = gradients(
        graph,
        [f"{y}:0" for y, _ in pairs],
        [f"{argument.name}:0" for argument in arguments],
        [f"{grad}:0" for _, grad in pairs],
    )
    g = Extension(graph)
    tensors = [
        _zeros(g, g.tensor(f"{argument.name}:0")) if name is None else g.tensor(name)
        for argument, name in zip(arguments, names, strict=True)
    ]
    g.flush()
    backs = [
        _result(graph, graph.new_name("gradient"), k, graph.node(g.id_of(tensor.node)), tensor.port)
        for k, tensor in enumerate(tensors)
    ]
    graph.fix_source_and_sink_edges()
    return FunctionBody(f"gradient of {body.name}", graph, (*arguments, *result_grads), tuple(backs), (), {})


def _kept(graph: Graph, result: Node) -> str:
    """Replaces a result by an Identity, whose name exists whatever becomes of the node that computes it."""
    edge = result.input_edge(0)
    kept = graph.add_node(graph.new_name("result"), "Identity", {"T": base_type(result.input_types[0])})
    graph.add_edge(edge.src, edge.src_output, kept, 0)
    graph.remove_node(result)
    return kept.name


def _zeros(g: Extension, argument: Tensor) -> Tensor:
    if argument.dtype is not DataType.RESOURCE:
        return g.op("ZerosLike", argument)[0]
    return g.op("Fill", g.op("VariableShape", argument), g.constant(0, DataType.FLOAT))[0]
