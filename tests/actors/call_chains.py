"""Functions that call functions, to any depth, for tests.

A GraphDef whose node `y` calls the first function with the placeholder `x`. The last function adds one; each other one
adds one to the results of its calls, unless told not to. So the result counts the additions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.protos import FunctionDef, GraphDef, NodeDef
from tests.function_defs import func_attr

FLOAT = DataType.FLOAT
WAYS = ("PartitionedCall", "StatefulPartitionedCall", "If", "Case", "own")


def chain(
    depth: int, way: str = "StatefulPartitionedCall", *, calls: int = 1, adds: bool = True, beside: bool = False
) -> GraphDef:
    """`depth` functions, each calling the next `calls` times.

    It calls one after the other, or, `beside`, each with its own argument. `way` is the op that calls, or "own" for the
    function's name as the op.
    """
    b = GraphBuilder()
    b.placeholder("x", FLOAT, ())
    graph_def = b.graph_def()
    for number in range(depth):
        called = f"f{number + 1}" if number + 1 < depth else ""
        graph_def.library.function.append(_function(f"f{number}", called, way, calls, adds or not called, beside))
    graph_def.node.append(_call("y", "f0", "PartitionedCall", "x"))
    return graph_def


def _function(name: str, called: str, way: str, calls: int, adds: bool, beside: bool) -> FunctionDef:
    function = FunctionDef()
    function.signature.name = name
    function.signature.input_arg.add(name="a", type=int(FLOAT))
    function.signature.output_arg.add(name="r", type=int(FLOAT))
    value, terms = "a", []
    if called and way in ("If", "Case"):
        function.node_def.append(_constant("chosen", True if way == "If" else 0))
    for number in range(calls if called else 0):
        function.node_def.append(_call(f"call{number}", called, way, "a" if beside else value))
        value = f"call{number}:{'r' if way == 'own' else 'output'}:0"
        terms.append(value)
    if adds:
        function.node_def.append(_constant("one", 1.0))
        terms = [*(terms if beside and called else [value]), "one:output:0"]
    if len(terms) > 1:
        total = function.node_def.add(name="total", op="AddN", input=terms)
        total.attr["T"].CopyFrom(encode(FLOAT, "type"))
        total.attr["N"].i = len(terms)
        value = "total:sum:0"
    function.ret["r"] = value
    return function


def _constant(name: str, value: float) -> NodeDef:
    b = GraphBuilder()
    dtype = {bool: "bool", int: "int32", float: "float32"}[type(value)]
    b.constant(value, dtype, name=name)
    return b.graph_def().node[0]


def _call(name: str, function: str, way: str, argument: str) -> NodeDef:
    node = NodeDef(name=name, op=function if way == "own" else way)
    if way != "own":
        node.attr["Tin"].CopyFrom(encode([FLOAT], "list(type)"))
        node.attr["Tout"].CopyFrom(encode([FLOAT], "list(type)"))
    if way in ("If", "Case"):
        node.input.append("chosen:output:0")
    node.input.append(argument)
    if way == "If":
        node.attr["Tcond"].CopyFrom(encode(DataType.BOOL, "type"))
        node.attr["then_branch"].CopyFrom(func_attr(function))
        node.attr["else_branch"].CopyFrom(func_attr(function))
    elif way == "Case":
        node.attr["branches"].list.func.add(name=function)
    elif way != "own":
        node.attr["f"].CopyFrom(func_attr(function))
    return node


@contextmanager
def frames_left(count: int) -> Iterator[None]:
    """Lets Python nest at most `count` more calls, so that code which recurses along calls fails early."""
    before, depth, frame = sys.getrecursionlimit(), 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(depth + count)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
