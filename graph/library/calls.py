"""Which node calls what.

Flows in: properties of nodes, and the library of their graph. Flows out: the function a node calls, the functions it
names. Always holds: a call is a node whose outputs are the results of one function; conditionals and loops are none,
they only name functions.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import InvalidArgumentError
from ..attrs import attr_value
from ..ops.properties import NodeProperties, split_entry
from ..protos import NameAttrList
from .function_library import FunctionLibrary
from .named import functions_in

MULTI_DEVICE_ATTR = "_lower_as_multi_device_function"
"""set on the call of a function that must be put into its graph, its nodes on the devices they name"""

_PARTITIONED = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_GRADIENT = "SymbolicGradient"
CONDITIONALS = ("If", "StatelessIf")
CASES = ("Case", "StatelessCase")
LOOPS = ("While", "StatelessWhile")
_OF_ATTR_F = ("RemoteCall", "MapDefun", _GRADIENT)


def is_partitioned_call(node: NodeProperties) -> bool:
    """Whether a node calls the function in its attr `f`, whose nodes may be on many devices."""
    return node.op in _PARTITIONED


def is_call(node: NodeProperties, library: FunctionLibrary) -> bool:
    """Whether a node calls a function: one its attr `f` names, one whose name is its op, or the gradient of one."""
    return node.op in _PARTITIONED or node.op == _GRADIENT or node.op in library


def function_attr(node: NodeProperties, name: str) -> NameAttrList:
    """The function that an attr names; InvalidArgumentError when it names none, NotFoundError when it is not there."""
    function = node.attrs[name]
    if not isinstance(function, NameAttrList):
        raise InvalidArgumentError(f"Attr {name!r} of a node of op {node.op!r} names no function", op=node.op)
    return function


def called_function(node: NodeProperties, library: FunctionLibrary) -> NameAttrList | None:
    """The function that a node calls, with the attrs it gives it; None for gradients and nodes that call none."""
    if node.op in _PARTITIONED:
        return function_attr(node, "f")
    if node.op not in library:
        return None
    used = library.attrs_used_by(node.op)
    return NameAttrList(name=node.op, attr={name: node.attrs.message(name) for name in node.attrs if name in used})


def calls_functions(node: NodeProperties, library: FunctionLibrary) -> bool:
    """Whether a node calls functions of the library."""
    op = node.op_def.name
    return op in (*CONDITIONALS, *CASES, *LOOPS, *_PARTITIONED, *_OF_ATTR_F) or op in library


def calls_gradient(node: NodeProperties) -> bool:
    """Whether what a node calls is the gradient of the function that it names."""
    return node.op_def.name == _GRADIENT


def called_by(node: NodeProperties, library: FunctionLibrary) -> list[NameAttrList]:
    """The functions that a node which calls functions may call."""
    op = node.op_def.name
    if op in CONDITIONALS:
        return [node.attrs["then_branch"], node.attrs["else_branch"]]
    if op in CASES:
        return list(node.attrs["branches"])
    if op in LOOPS:
        return [node.attrs["cond"], node.attrs["body"]]
    if op in _OF_ATTR_F:
        return [node.attrs["f"]]
    called = called_function(node, library)
    assert called is not None  # `calls_functions` holds
    return [called]


def functions_named_by(node: NodeProperties) -> Iterator[str]:
    """Names of all functions that a node calls, or names in its attrs; some may be ops."""
    yield node.op
    for entry in node.entries:
        name, value = split_entry(entry)
        if name in node.op_def.attrs and node.op_def.attrs[name].type not in ("func", "list(func)"):
            continue
        yield from functions_in(attr_value(value))


def flag(node: NodeProperties, name: str) -> bool:
    """Whether a node has that attr, and it is true."""
    return name in node.attrs and node.attrs[name] is True
