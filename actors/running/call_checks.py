"""Checks that the arguments and results of a function fit the node that calls it. Errors are those of TensorFlow.

    f(float) -> float, called with an int        Expects arg[0] to be float but int32 is provided: function 'f'
    called by a node with two outputs            Missing 1-th output: function 'f' gives 1 results

A function is checked when a node calls it for the first time, so never if it is not called, like the other branch of a
conditional.
"""

from __future__ import annotations

from typing import Protocol

from ...errors import InternalError, InvalidArgumentError, NotFoundError
from ...graph.dtypes import Types, dtype_name


class CalledSignature(Protocol):
    """What the checks ask of a function, compiled or not."""

    @property
    def name(self) -> str:
        """Its name in errors."""

    @property
    def argument_types(self) -> Types:
        """The types of its arguments."""

    @property
    def result_types(self) -> Types:
        """The types of its results."""


EXECUTOR_TYPES = ("", "DEFAULT", "SINGLE_THREADED_EXECUTOR")
"""the kinds of executors that TensorFlow has; all run a graph alike here"""


def check_executor_type(executor_type: str, asked_by: str) -> None:
    """Raises NotFoundError for a kind of executor that TensorFlow does not have."""
    if executor_type not in EXECUTOR_TYPES:
        raise NotFoundError(
            f"No executor factory registered for the given executor type: {executor_type}; "
            f"{asked_by} is one of {', '.join(map(repr, EXECUTOR_TYPES))}"
        )


def check_arguments(callee: CalledSignature, actual_types: Types) -> None:
    """Raises InvalidArgumentError unless the function takes arguments of these types."""
    expected_types = callee.argument_types
    if len(actual_types) != len(expected_types):
        raise InvalidArgumentError(
            f"Expects {len(expected_types)} arguments, but {len(actual_types)} is provided: function {callee.name!r}"
        )
    for index, (actual, expected) in enumerate(zip(actual_types, expected_types, strict=True)):
        if actual != expected:
            raise InvalidArgumentError(
                f"Type mismatch: actual {dtype_name(actual)} vs. expect {dtype_name(expected)}: "
                f"Expects arg[{index}] to be {dtype_name(expected)} but {dtype_name(actual)} is provided: function "
                f"{callee.name!r}"
            )


def check_mapped(callee: CalledSignature, actual_types: Types) -> None:
    """As `check_arguments`; arguments that a mapped function does not take are dropped, whatever they are."""
    check_arguments(callee, actual_types[: len(callee.argument_types)])


def check_gradient(callee: CalledSignature, expected_types: Types) -> None:
    """As `check_call`; InvalidArgumentError for another number of gradients than the node has outputs."""
    actual, expected = len(callee.result_types), len(expected_types)
    if actual != expected:
        raise InvalidArgumentError(
            f"SymGrad expects to return {expected} tensor(s), but get {actual} tensor(s) instead: {callee.name}"
        )
    check_call(callee, expected_types)


def check_call(callee: CalledSignature, expected_types: Types) -> None:
    """Raises InternalError unless the result types of a called function equal the types of the outputs.

    An output beyond the results is one that somebody reads: those that nobody reads are gone from the node by then.
    """
    actual_types = callee.result_types
    for index, expected in enumerate(expected_types[: len(actual_types)]):
        if actual_types[index] != expected:
            raise InternalError(
                f"Output {index} of type {dtype_name(actual_types[index])} does not match declared output type "
                f"{dtype_name(expected)}: function {callee.name!r}"
            )
    if len(actual_types) < len(expected_types):
        raise InternalError(
            f"Missing {len(actual_types)}-th output: function {callee.name!r} gives {len(actual_types)} results"
        )
    if len(actual_types) > len(expected_types):
        raise InternalError(
            f"Function instantiation included invalid output index: {len(expected_types)} not in "
            f"[0, {len(expected_types)}): function {callee.name!r} gives {len(actual_types)} results; let the "
            "node that calls it have as many outputs"
        )


def check_branch(callee: CalledSignature, expected_types: Types) -> None:
    """Raises InternalError unless the results of a branch have the types of the conditional's outputs."""
    actual_types = callee.result_types
    if len(actual_types) != len(expected_types):
        raise InternalError(f"Expect to produce {len(expected_types)} tensors, but only get {len(actual_types)}")
    for index, (actual, expected) in enumerate(zip(actual_types, expected_types, strict=True)):
        if actual != expected:
            raise InternalError(
                f"Expect {index}-th output is of type {dtype_name(expected)} but get {dtype_name(actual)}"
            )


def check_condition(callee: CalledSignature, _expected_types: Types) -> None:
    """Raises InvalidArgumentError unless the condition of a loop has one result."""
    if len(callee.result_types) != 1:
        raise InvalidArgumentError(
            f"Expected a single scalar return value from WhileOp cond, got {len(callee.result_types)} tensors."
        )


def check_loop_body(callee: CalledSignature, expected_types: Types) -> None:
    """Raises InvalidArgumentError unless the results of a loop's body have the types of the loop's variables."""
    actual_types = callee.result_types
    if len(actual_types) != len(expected_types):
        raise InvalidArgumentError(
            f"the loop has {len(expected_types)} variables, but its body {callee.name!r} gives {len(actual_types)} "
            "results"
        )
    for index, (actual, expected) in enumerate(zip(actual_types, expected_types, strict=True)):
        if actual != expected:
            raise InvalidArgumentError(
                f"Expected type {dtype_name(expected)} for return value {index} but got {dtype_name(actual)}."
            )


def check_repeated(callee: CalledSignature, expected_types: Types) -> None:
    """Raises unless the results of a For's body can be its arguments in the next turn, and those of the last one."""
    actual_types = callee.result_types
    if len(actual_types) > len(expected_types):
        raise InvalidArgumentError(
            f"For loop body returned {len(actual_types)} arguments. Expected: {len(expected_types)}"
        )
    for index, (actual, expected) in enumerate(zip(actual_types, expected_types, strict=False), 1):
        if actual != expected:
            raise InvalidArgumentError(
                f"Expects arg[{index}] to be {dtype_name(expected)} but {dtype_name(actual)} is provided: function "
                f"{callee.name!r}"
            )
    check_branch(callee, expected_types)


def check_map(callee: CalledSignature, expected_types: Types) -> None:
    """Raises InvalidArgumentError unless the results of a mapped function have the types of the map's outputs."""
    actual_types = callee.result_types
    if len(actual_types) > len(expected_types):
        raise InvalidArgumentError("Mismatch in number of function outputs.")
    for index, (actual, expected) in enumerate(zip(actual_types, expected_types, strict=False)):
        if actual != expected:
            raise InvalidArgumentError(f"Mismatch in function return type and expected output type for output: {index}")
    if len(actual_types) < len(expected_types):
        raise InternalError(
            f"Missing {len(actual_types)}-th output: function {callee.name!r} gives {len(actual_types)} results"
        )
