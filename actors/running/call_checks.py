"""Whether a call fits the function it names.

Flows in: a compiled function, the types that the call gives and wants. Flows out: nothing, or the error that
TensorFlow's kernel for that node raises. Always holds: these checks are made when a node calls a function for the first
time, never for one that is not called, such as a branch that is not taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import InternalError, InvalidArgumentError
from ...graph.dtypes import DataType, dtype_name

if TYPE_CHECKING:
    from .callee import Callee

Types = Sequence[DataType]


def check_arguments(callee: Callee, given: Types) -> None:
    """Raises InvalidArgumentError unless the function takes arguments of these types."""
    wanted = callee.argument_types
    if len(given) != len(wanted):
        raise InvalidArgumentError(
            f"Expects {len(wanted)} arguments, but {len(given)} is provided: function {callee.name!r}"
        )
    for index, (actual, expected) in enumerate(zip(given, wanted, strict=True)):
        if actual != expected:
            raise InvalidArgumentError(
                f"Type mismatch: actual {dtype_name(actual)} vs. expect {dtype_name(expected)}: "
                f"Expects arg[{index}] to be {dtype_name(expected)} but {dtype_name(actual)} is provided"
            )


def check_call(callee: Callee, wanted: Types) -> None:
    """Raises InternalError unless the results of a function that is just called are of the types of the outputs."""
    found = callee.result_types
    for index, expected in enumerate(wanted[: len(found)]):
        if found[index] != expected:
            raise InternalError(
                f"Output {index} of type {dtype_name(found[index])} does not match declared output type "
                f"{dtype_name(expected)}: function {callee.name!r}"
            )
    if len(found) < len(wanted):
        raise InternalError(f"Missing {len(found)}-th output: function {callee.name!r} gives {len(found)} results")
    if len(found) > len(wanted):
        raise InvalidArgumentError(
            f"function {callee.name!r} gives {len(found)} results where {len(wanted)} are wanted; "
            "let the node that calls it have as many outputs"
        )


def check_branch(callee: Callee, wanted: Types) -> None:
    """Raises InternalError unless the results of a branch are of the types of the conditional's outputs."""
    found = callee.result_types
    if len(found) != len(wanted):
        raise InternalError(f"Expect to produce {len(wanted)} tensors, but only get {len(found)}")
    for index, (actual, expected) in enumerate(zip(found, wanted, strict=True)):
        if actual != expected:
            raise InternalError(
                f"Expect {index}-th output is of type {dtype_name(expected)} but get {dtype_name(actual)}"
            )


def check_condition(callee: Callee, _wanted: Types) -> None:
    """Raises InvalidArgumentError unless the condition of a loop gives one result."""
    if len(callee.result_types) != 1:
        raise InvalidArgumentError(
            f"Expected a single scalar return value from WhileOp cond, got {len(callee.result_types)} tensors."
        )


def check_loop_body(callee: Callee, wanted: Types) -> None:
    """Raises InvalidArgumentError unless the results of a loop's body are of the types of the loop's variables."""
    found = callee.result_types
    if len(found) != len(wanted):
        raise InvalidArgumentError(
            f"the loop has {len(wanted)} variables, but its body {callee.name!r} gives {len(found)} results"
        )
    for index, (actual, expected) in enumerate(zip(found, wanted, strict=True)):
        if actual != expected:
            raise InvalidArgumentError(
                f"Expected type {dtype_name(expected)} for return value {index} but got {dtype_name(actual)}."
            )


def check_map(callee: Callee, wanted: Types) -> None:
    """Raises InvalidArgumentError unless the results of a mapped function are of the types of the map's outputs."""
    found = callee.result_types
    if len(found) > len(wanted):
        raise InvalidArgumentError("Mismatch in number of function outputs.")
    for index, (actual, expected) in enumerate(zip(found, wanted, strict=False)):
        if actual != expected:
            raise InvalidArgumentError(f"Mismatch in function return type and expected output type for output: {index}")
    if len(found) < len(wanted):
        raise InternalError(f"Missing {len(found)}-th output: function {callee.name!r} gives {len(found)} results")
