"""Ops that only tests use: Error fails, InvalidRefType gives a reference of a wrong type, Delay waits.

A delay blocks neither the event loop nor other nodes of its device, and is cancelled with its step.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

from ....errors import InternalError
from ....graph.dtypes import dtype_name, make_ref
from ..registry import Call, Construction, Kernel, Start, deferred_kernel, kernel

_US_PER_S = 10**6


@kernel("Error")
def error(node: Construction) -> Kernel:
    """Raises an InternalError with the message of the node."""
    message: bytes = node.attrs["message"]

    def fail(_value: Any) -> NoReturn:  # Any: a tensor of any type
        raise InternalError(message.decode(errors="replace"))

    return fail


@kernel("InvalidRefType")
def invalid_ref_type(node: Construction) -> Kernel:
    """Fails as the executor does when a kernel gives a reference of another type than its node declares."""
    actual, declared = (dtype_name(make_ref(node.attrs[name])) for name in ("TOut", "TIn"))

    def fail() -> NoReturn:
        raise InternalError(
            f"Output 0 of type {actual} does not match declared output type {declared} for node {node.name}"
        )

    return fail


@deferred_kernel("Delay")
def delay(node: Construction) -> Start:
    """Passes its input on after `micros` microseconds."""
    seconds = node.attrs["micros"] / _US_PER_S

    def start(call: Call, value: Any) -> None:  # Any: a tensor of any type
        call.after(seconds, partial(call.done, value))

    return start
