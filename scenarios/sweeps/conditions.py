"""Conditions on the values of a point, as texts: which points of a product are left in.

    holds = parsed_condition("split.tp * split.pp <= gpus and zero != 2", ["split.tp", "split.pp", "gpus", "zero"])
    holds({"split.tp": 4, "split.pp": 2, "gpus": 8, "zero": 1})       True

Names are those of axes, with `_` for `-`. There are numbers, texts, lists, + - * / // %, comparisons, `in`, `and`,
`or`, `not`, and conditional expressions, all as in Python, and nothing else: no call, no attribute, so a text runs no
code.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import InvalidArgumentError, shown
from ...graph.suggestions import suggestion

PointCondition = Callable[[Mapping[str, object]], bool]
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {  # Any: values of axes
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {  # Any: likewise
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {  # Any: likewise
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
_NODES = (ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp)


def parsed_condition(text: str, axes: Sequence[str]) -> PointCondition:
    """The condition; InvalidArgumentError for a text that is none, with the nearest axis for a name that is none."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidArgumentError(f"condition {shown(text)} cannot be read: {error}") from None
    names = {_spelled(axis): axis for axis in axes}
    _check(tree, names, text)

    def holds(point: Mapping[str, object]) -> bool:
        try:
            return bool(_value(tree, names, point))
        except (TypeError, ValueError, ArithmeticError) as error:
            at = ", ".join(f"{name}={shown(value)}" for name, value in point.items())
            raise InvalidArgumentError(f"condition {shown(text)} has no value at {at}: {error}") from None

    return holds


def _spelled(axis: str) -> str:
    """An axis as conditions write it."""
    return axis.replace("-", "_")


def _name(node: ast.expr) -> str | None:
    """A name, also one with dots; None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _name(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None


def _check(node: ast.expr, names: Mapping[str, str], text: str) -> None:
    name = _name(node)
    if name is not None:
        if name not in names:
            raise InvalidArgumentError(f"condition {shown(text)}: there is no axis {name!r}{suggestion(name, names)}")
        return
    known = isinstance(node, _NODES)
    if isinstance(node, ast.BinOp):
        known = type(node.op) in _BINARY
    elif isinstance(node, ast.UnaryOp):
        known = type(node.op) in _UNARY
    elif isinstance(node, ast.Compare):
        known = all(type(compared) in _COMPARED for compared in node.ops)
    elif isinstance(node, ast.Constant):
        known = isinstance(node.value, int | float | str | None)
    if not known:
        raise InvalidArgumentError(f"condition {shown(text)}: {ast.unparse(node)!r} is more than a condition can say")
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            _check(child, names, text)


def _value(node: ast.expr, names: Mapping[str, str], point: Mapping[str, object]) -> Any:  # Any: values of axes
    def of(child: ast.expr) -> Any:  # Any: likewise
        return _value(child, names, point)

    match node:
        case ast.Name() | ast.Attribute():
            return point[names[_name(node) or ""]]
        case ast.Constant(value=value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [of(item) for item in items]
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](of(left), of(right))
        case ast.UnaryOp(op=unary, operand=operand):
            return _UNARY[type(unary)](of(operand))
        case ast.BoolOp(op=ast.And(), values=values):
            return all(of(value) for value in values)
        case ast.BoolOp(values=values):
            return any(of(value) for value in values)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return of(body) if of(test) else of(orelse)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            values = [of(item) for item in (left, *comparators)]
            pairs = zip(ops, values, values[1:], strict=False)
            return all(_COMPARED[type(compared)](a, b) for compared, a, b in pairs)
    raise AssertionError(ast.dump(node))  # which `_check` has refused
