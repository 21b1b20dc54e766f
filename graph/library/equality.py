"""Whether two FunctionDefs define the same function, by TensorFlow's rules.

Ignored are the order of nodes, of control inputs and of declared attrs, the encoding of tensors, ":0" in an input, node
attrs that begin with "_", and debug information. Everything else counts, attrs with default values too.

    node_def: a = Mul(x, y, ^b), b = NoOp()        and        b = NoOp(), a = Mul(x:0, y, ^b)        are equal
"""

from __future__ import annotations

from collections.abc import Hashable

from ..ops.op_def_equality import op_def_meaning, value_meaning
from ..protos import FunctionDef, NodeDef


def same_function(a: FunctionDef, b: FunctionDef) -> bool:
    """Whether two definitions mean the same function."""
    return a == b or _meaning(a) == _meaning(b)


def _meaning(function: FunctionDef) -> Hashable:
    """The parts of a definition that count. Nodes of one name are all kept: such a function is malformed."""
    return (
        op_def_meaning(function.signature),
        frozenset((name, value_meaning(value)) for name, value in function.attr.items() if value.WhichOneof("value")),
        tuple(sorted(map(_node, function.node_def), key=lambda node: node[0])),
        frozenset(function.ret.items()),
        frozenset(function.control_ret.items()),
    )


def _node(node: NodeDef) -> tuple[str, Hashable]:
    data = tuple(name.removesuffix(":0") for name in node.input if name[:1] != "^")
    control = frozenset(name for name in node.input if name[:1] == "^")
    attrs = frozenset((name, value_meaning(value)) for name, value in node.attr.items() if name[:1] != "_")
    return node.name, (node.op, node.device, len(node.input), data, control, attrs)
