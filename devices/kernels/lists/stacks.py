"""Stacks, which keep values of a loop's forward pass for its gradient: last in, first out.

A stack exists as long as a tensor carries it, so never longer than its step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array, DataType
from ...state import Variable
from ..carried import carried, handle_carrying
from ..registry import Construction, Kernel, kernel

_UNLIMITED = np.array(-1, np.int32)


@dataclass(slots=True)
class Stack:
    """`limit` is the largest number of elements, unlimited if negative."""

    name: str
    dtype: DataType
    limit: int
    items: list[Array] = field(default_factory=list)
    closed: bool = False

    def check(self, dtype: DataType) -> None:
        """InvalidArgumentError unless the elements are of that type."""
        if dtype != self.dtype:
            raise InvalidArgumentError(f"Must have type {self.dtype:d} but got {dtype:d}")

    def check_open(self) -> None:
        """InvalidArgumentError once the stack is closed."""
        if self.closed:
            raise InvalidArgumentError(f"Stack[{self.name}] has already been closed.")


def _stack_of(handle: Array | Variable) -> Stack:
    return carried(handle, Stack, "a stack")


@kernel("Stack", "StackV2")
def stack(node: Construction) -> Kernel:
    """A new stack that holds up to `max_size` elements; the first version has no limit."""
    name, dtype = node.attrs["stack_name"].decode() or node.name, node.attrs["elem_type"]

    def make(limit: Array = _UNLIMITED) -> Array | Variable:
        if limit.ndim:
            raise InvalidArgumentError("Stack size must be a scalar")
        return handle_carrying(Stack(name, dtype, int(limit)), node.output_types[0], "_stacks", name)

    return make


@kernel("StackPush", "StackPushV2")
def stack_push(node: Construction) -> Kernel:
    """Pushes a tensor, and passes it on."""
    dtype = node.input_types[1]

    def push(handle: Array, value: Array) -> Array:
        stack = _stack_of(handle)
        stack.check(dtype)
        stack.check_open()
        if 0 <= stack.limit <= len(stack.items):
            raise InvalidArgumentError(f"Stack[{stack.name}] overflowed its max_size ({stack.limit})")
        stack.items.append(value)
        return value

    return push


@kernel("StackPop", "StackPopV2")
def stack_pop(node: Construction) -> Kernel:
    """Removes the last element and gives it."""
    dtype = node.output_types[0]

    def pop(handle: Array) -> Array:
        stack = _stack_of(handle)
        stack.check_open()
        if not stack.items:
            raise InvalidArgumentError(f"Stack[{stack.name}] is empty when calling Pop().")
        stack.check(dtype)
        return stack.items.pop()

    return pop


@kernel("StackClose", "StackCloseV2")
def stack_close(node: Construction) -> Kernel:
    """Removes all elements; afterwards neither push nor pop is allowed."""

    def close(handle: Array) -> None:
        stack = _stack_of(handle)
        stack.closed = True
        stack.items.clear()

    return close
