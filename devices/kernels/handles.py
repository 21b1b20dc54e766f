"""Handles of resources that have a name on their device: queues, barriers, accumulators, look-up tables, variables.

A handle is a resource tensor or, in the first version of the ops, a reference to two strings. Nodes with one
`container` and `shared_name` share a resource; a node without a name has a resource of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...errors import InvalidArgumentError
from ...graph.dtypes import Array, DataType, is_ref
from ..state import DEFAULT_CONTAINER, ResourceHandle, Variable, handle_array, handle_of
from .registry import Construction

Thing = TypeVar("Thing")
Handle = Array | Variable
Element = tuple[Array, ...]
"""what a queue, a staging area or a dataset gives at once: one tensor per component"""


def handle_for(node: Construction, type_name: str) -> ResourceHandle:
    """The handle of the resource that a node asks for."""
    container = node.attrs["container"].decode() or DEFAULT_CONTAINER
    name = node.attrs["shared_name"].decode() or node.state.private_name(node.name)
    return ResourceHandle(node.device, container, name, type_name)


def handle_value(node: Construction, handle: ResourceHandle) -> Array | Variable:
    """A handle as the one output of `node`."""
    return reference_to(handle) if is_ref(node.output_types[0]) else handle_array(handle)


def reference_to(handle: ResourceHandle) -> Variable:
    """The reference to two strings that represents a handle: its container and its name."""
    strings = np.array([handle.container.encode(), handle.name.encode()], object)
    return Variable(handle.name, DataType.STRING, strings, strings.shape)


def resource_of(
    node: Construction, kind: type[Thing], type_name: str, what: str
) -> Callable[[Array | Variable], Thing]:
    """A function from a handle, in either form, to its resource of class `kind`; `what` describes it in errors.

    The function raises NotFoundError where there is none, InvalidArgumentError for another device's and for a handle of
    another class.
    """
    state, device = node.state, node.device

    def find(value: Array | Variable) -> Thing:
        handle = _referred(value, type_name) if isinstance(value, Variable) else handle_of(value)
        if handle.device != device and handle.device and device:
            raise InvalidArgumentError(
                f"Trying to access resource {handle.name} located in device {handle.device} from device {device}"
            )
        if handle.type_name != type_name:
            raise InvalidArgumentError(
                "Trying to access a handle's resource using the wrong type. The handle points to a resource "
                f"(name '{handle.name}') of type '{handle.type_name}' but you are trying to access it as {what}"
            )
        resource: Any = state.resource(handle.key)
        if not isinstance(resource, kind):
            raise InvalidArgumentError(f"Resource {handle.name} is a {type(resource).__name__}, not {what}")
        return resource

    return find


def _referred(variable: Variable, type_name: str) -> ResourceHandle:
    strings = variable.read()
    if strings.shape != (2,):
        raise InvalidArgumentError(f"handle must be a 2-element vector of strings, but has {strings.size} elements")
    container, name = (text.decode() for text in strings.tolist())
    return ResourceHandle("", container, name, type_name)
