"""Graphs with a loop of functions, alone or around another one, which are lowered to nodes or not.

Each iteration counts and adds, as the loop of `bench_loops.loop` does; that around another loop adds ten times in it.
"""

from __future__ import annotations

from typing import Any

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.protos import AttrValue, FunctionDef, NameAttrList, NodeDef
from partita.graph.protos.types_pb2 import DT_BOOL, DT_FLOAT, DT_INT32

from .workloads import Workload

_TYPES = {"count": DT_INT32, "limit": DT_INT32, "total": DT_FLOAT, "term": DT_FLOAT}
_INNER_ITERATIONS = 10


def loop_of_functions(iterations: int, *, lowered: bool, nested: bool = False) -> Workload:
    """Adds the fed number so many times; `nested`, ten times in each iteration."""
    b = GraphBuilder()
    functions = [_condition(), _body("step", [])]
    if nested:
        functions.append(_body("outer_step", _inner_loop(lowered=lowered)))
    for function in functions:
        b.function(function)
    x = b.placeholder("x", "float32", ())
    arguments = [b.constant(0, "int32"), b.constant(iterations, "int32"), x, x]
    loop = b.op("While", arguments, attrs=_attrs(functions[-1].signature.name, lowered=lowered))
    summed: Tensor = loop[2]
    b.identity(summed, name="sum")
    data = b.graph_def().SerializeToString(deterministic=True)
    return Workload(f"loop {iterations} {lowered} {nested}", data, iterations, {"x:0": ()}, ("sum:0",))


def _attrs(body: str, *, lowered: bool) -> dict[str, Any]:  # Any: as the builder takes attrs
    return {
        "T": ["int32", "int32", "float32", "float32"],
        "cond": NameAttrList(name="goes_on"),
        "body": NameAttrList(name=body),
        "_lower_using_switch_merge": AttrValue(b=lowered),
    }


def _condition() -> FunctionDef:
    function = _function("goes_on")
    function.signature.output_arg.add(name="result", type=DT_BOOL)
    _add(function, "less", "Less", DT_INT32, "count", "limit")
    function.ret["result"] = "less:z:0"
    return function


def _body(name: str, inner: list[NodeDef]) -> FunctionDef:
    """A body that adds the term to the total, by the nodes of an `inner` loop if there are any."""
    function = _function(name)
    for argument, dtype in _TYPES.items():
        function.signature.output_arg.add(name=f"next_{argument}", type=dtype)
        function.ret[f"next_{argument}"] = argument
    function.node_def.append(_constant("one", 1))
    _add(function, "counted", "AddV2", DT_INT32, "count", "one:output:0")
    function.ret["next_count"] = "counted:z:0"
    if inner:
        function.node_def.extend(inner)
        function.ret["next_total"] = "inner:output:2"
    else:
        _add(function, "added", "AddV2", DT_FLOAT, "total", "term")
        function.ret["next_total"] = "added:z:0"
    return function


def _inner_loop(*, lowered: bool) -> list[NodeDef]:
    b = GraphBuilder()
    starts = [b.constant(0, "int32"), b.constant(0, "int32"), b.constant(0.0), b.constant(0.0)]
    b.op("While", starts, name="inner", attrs=_attrs("step", lowered=lowered))
    inner = next(node for node in b.graph_def().node if node.name == "inner")
    inner.input[:] = ["zero:output:0", "ten:output:0", "total", "term"]
    return [_constant("zero", 0), _constant("ten", _INNER_ITERATIONS), inner]


def _function(name: str) -> FunctionDef:
    function = FunctionDef()
    function.signature.name = name
    for argument, dtype in _TYPES.items():
        function.signature.input_arg.add(name=argument, type=dtype)
    return function


def _add(function: FunctionDef, name: str, op: str, dtype: int, *inputs: str) -> None:
    node = function.node_def.add(name=name, op=op, input=inputs)
    node.attr["T"].type = dtype  # type: ignore[assignment]  # the stubs have a class for the values of this enum


def _constant(name: str, value: int) -> NodeDef:
    b = GraphBuilder()
    b.constant(value, "int32", name=name)
    return b.graph_def().node[0]
