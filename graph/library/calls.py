"""Which nodes call functions, and which functions.

A call is a node whose outputs are the results of one function. Conditionals and loops only name functions in their
attrs, so they are no calls.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import InvalidArgumentError
from ..attrs import attr_value
from ..ops.properties import NodeProperties, split_entry
from ..ops.record import Calls
from ..protos import NameAttrList
from .function_library import FunctionLibrary, functions_in

MULTI_DEVICE_ATTR = "_lower_as_multi_device_function"
"""set on calls whose body must be inlined, its nodes placed on the devices that they request"""


def is_partitioned_call(node: NodeProperties) -> bool:
    """Whether a node calls the function in its attr `f`, whose nodes may be on several devices."""
    return node.op_def.record.calls is Calls.CALL


def is_call(node: NodeProperties, library: FunctionLibrary) -> bool:
    """Whether a node calls a function: the one in its attr `f`, the one its op names, or a function's gradient."""
    return node.op_def.record.calls in (Calls.CALL, Calls.GRADIENT) or node.op in library


def function_attr(node: NodeProperties, name: str) -> NameAttrList:
    """The function that an attr names; InvalidArgumentError if its value is none, NotFoundError if it is missing."""
    function = node.attrs[name]
    if not isinstance(function, NameAttrList):
        raise InvalidArgumentError(f"Attr {name!r} of a node of op {node.op!r} names no function", op=node.op)
    return function


def called_function(node: NodeProperties, library: FunctionLibrary) -> NameAttrList | None:
    """The function that a node calls, with the attrs of the call; None for gradients and nodes that call none."""
    if node.op_def.record.calls is Calls.CALL:
        return function_attr(node, "f")
    if node.op not in library:
        return None
    used = library.attrs_used_by(node.op)
    return NameAttrList(name=node.op, attr={name: node.attrs.message(name) for name in node.attrs if name in used})


def calls_functions(node: NodeProperties, library: FunctionLibrary) -> bool:
    """Whether a node calls functions of the library."""
    return node.op_def.record.calls is not None or node.op in library


def calls_gradient(node: NodeProperties) -> bool:
    """Whether a node computes the gradient of the function that it names."""
    return node.op_def.record.calls is Calls.GRADIENT


def called_by(node: NodeProperties, library: FunctionLibrary) -> list[NameAttrList]:
    """All functions that a node may call."""
    match node.op_def.record.calls:
        case Calls.IF:
            return [node.attrs["then_branch"], node.attrs["else_branch"]]
        case Calls.CASE:
            return list(node.attrs["branches"])
        case Calls.WHILE:
            return [node.attrs["cond"], node.attrs["body"]]
        case Calls.FOR:
            return [node.attrs["body"]]
        case Calls.REMOTE | Calls.MAP | Calls.GRADIENT:
            return [node.attrs["f"]]
    called = called_function(node, library)
    assert called is not None  # `calls_functions` holds
    return [called]


def inputs_before_arguments(calls: Calls | None) -> int:
    """How many inputs of a node are no arguments of the functions that it calls: they say which one, or how often."""
    if calls is Calls.FOR:
        return 3
    return int(calls in (Calls.IF, Calls.CASE, Calls.REMOTE))


def arguments_of_its_own(calls: Calls | None) -> int:
    """How many arguments a node gives to a function besides its inputs, before these: a For the number of the turn."""
    return int(calls is Calls.FOR)


def functions_named_by(node: NodeProperties) -> Iterator[str]:
    """Names of all functions that a node calls or names in its attrs; ops may be among them."""
    yield node.op
    for entry in node.entries:
        name, value = split_entry(entry)
        if name in node.op_def.attrs and node.op_def.attrs[name].type not in ("func", "list(func)"):
            continue
        yield from functions_in(attr_value(value))


def flag(node: NodeProperties, name: str) -> bool:
    """Whether a node has that attr with the value true."""
    return name in node.attrs and node.attrs[name] is True
