"""Functions for tests: makes a FunctionDef of a graph, and graphs that call it.

The function computes from its arguments what the graph computes when those tensors are fed. A calling graph has one
node `c`, fed through placeholders `x0`, `x1`, ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType, base_type
from partita.graph.graph import Graph
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.ops.registry import lookup_op
from partita.graph.ops.type_inference import name_ranges
from partita.graph.protos import AttrValue, FunctionDef, FunctionDefLibrary, GraphDef, NameAttrList
from partita.graph.tensor_id import parse_tensor_name

LOWER = "_lower_using_switch_merge"


def inner_name(graph: Graph, tensor: str) -> str:
    """The name of a tensor inside a function: "node:output:k"."""
    parsed = parse_tensor_name(tensor)
    node = graph.find_node(parsed.node)
    assert node is not None, tensor
    for output, ports in name_ranges(node.op_def, node.attrs)[1].items():
        if parsed.index in ports:
            return f"{parsed.node}:{output}:{parsed.index - ports.start}"
    raise AssertionError(f"{tensor} does not exist")


def types_of(graph_def: GraphDef, tensors: Sequence[str]) -> list[DataType]:
    graph = graph_def_to_graph(graph_def)
    nodes = [(graph.find_node(parsed.node), parsed.index) for parsed in map(parse_tensor_name, tensors)]
    return [base_type(node.output_types[port]) for node, port in nodes if node is not None]


def function_of(
    name: str, graph_def: GraphDef, arguments: Sequence[str], results: Sequence[str], control: Sequence[str] = ()
) -> FunctionDef:
    """The function `name` whose arguments `a0`, ... take the place of tensors and whose results `r0`, ... are tensors.

    `control` are nodes that must run whenever the function does.
    """
    graph = graph_def_to_graph(graph_def)
    function = FunctionDef()
    function.signature.name = name
    replaced = {parse_tensor_name(text): f"a{k}" for k, text in enumerate(arguments)}
    dropped = {tensor.node: arg for tensor, arg in replaced.items() if _op(graph, tensor.node) == "Placeholder"}
    for k, dtype in enumerate(types_of(graph_def, arguments)):
        function.signature.input_arg.add(name=f"a{k}", type=int(dtype))
    for node in graph_def.node:
        if node.name in dropped:
            continue
        copy = function.node_def.add()
        copy.CopyFrom(node)
        del copy.input[:]
        for text in node.input:
            if text.startswith("^"):
                copy.input.append(f"^{dropped.get(text[1:], text[1:])}")
            else:
                copy.input.append(replaced.get(parse_tensor_name(text)) or inner_name(graph, text))
    for k, (text, dtype) in enumerate(zip(results, types_of(graph_def, results), strict=True)):
        function.signature.output_arg.add(name=f"r{k}", type=int(dtype))
        function.ret[f"r{k}"] = replaced.get(parse_tensor_name(text)) or inner_name(graph, text)
    for node_name in control:
        function.control_ret[node_name] = dropped.get(node_name, node_name)
        function.signature.control_output.append(node_name)
    return function


def _op(graph: Graph, name: str) -> str:
    node = graph.find_node(name)
    return "" if node is None else node.op


def library_of(*functions: FunctionDef, gradients: Mapping[str, str] | None = None) -> FunctionDefLibrary:
    """A library of functions; `gradients` maps functions to those that compute their gradients."""
    message = FunctionDefLibrary(function=functions)
    for name, gradient in (gradients or {}).items():
        message.gradient.add(function_name=name, gradient_func=gradient)
    return message


def func_attr(name: str, **attrs: AttrValue) -> AttrValue:
    """An attr that names a function."""
    return AttrValue(func=NameAttrList(name=name, attr=attrs))


def calling(
    op: str, function: FunctionDef, *others: FunctionDef, first: Sequence[DataType] = (), **attrs: Any
) -> GraphBuilder:
    """A graph with one node `c` of op `op`, whose inputs are placeholders `x0`, ... of the function's types.

    `first` are types of inputs before the function's (a condition); `attrs` are the node's own, besides Tin and Tout.
    """
    b = GraphBuilder()
    for definition in (function, *others):
        b.function(definition)
    inputs = [DataType(arg.type) for arg in function.signature.input_arg]
    outputs = [DataType(arg.type) for arg in function.signature.output_arg]
    fed = [b.placeholder(f"x{k}", dtype) for k, dtype in enumerate([*first, *inputs])]
    rest = fed[len(first) :]
    types = {"Tin": encode(inputs, "list(type)"), "Tout": encode(outputs, "list(type)")}
    declared = {name: value for name, value in types.items() if name in lookup_op(op).attrs}  # a While calls them T
    b.op(op, *fed[: len(first)], rest, name="c", attrs={**declared, **attrs})
    return b
