"""Calls, conditionals and loops of XLA: functions that are called once, as long as a condition holds, or one of two."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import InternalError, InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import DataType, Types, dtype_name
from ....graph.functions.body import instantiate_call
from ..checks import require
from ..datasets.dataset import CapturedFunction, PullSteps
from ..functions import Values
from ..registry import Call, Construction, Start, deferred_kernel
from .computations import carry_out


@deferred_kernel("XlaIf")
def conditional(node: Construction) -> Start:
    """The results of `then_branch` if the condition is true or not zero, else of `else_branch`."""
    if node.input_types[0] is DataType.STRING:
        raise InvalidArgumentError("a condition must be a truth value or a number, not of type string")
    signature = node.input_types[1:], node.output_types
    branches = [_function(node, attr, *signature) for attr in ("else_branch", "then_branch")]

    def start(call: Call, condition: Any, *inputs: Any) -> None:
        carry_out(call, branches[_is_true(condition)](*inputs))

    return start


@deferred_kernel("XlaLaunch")
def launch(node: Construction) -> Start:
    """The results of a function that XLA would compile: of constants, other tensors and variables in this order."""
    function = _function(node, "function", node.input_types, node.output_types)

    def start(call: Call, *inputs: Any) -> None:
        carry_out(call, function(*inputs))

    return start


@deferred_kernel("XlaWhile")
def loop(node: Construction) -> Start:
    """The values after `body`, which is called while `cond` of them is true."""
    types = node.input_types
    condition, body = _function(node, "cond", types, (DataType.BOOL,)), _function(node, "body", types, types)

    def start(call: Call, *inputs: Any) -> None:
        carry_out(call, _repeated(condition, body, inputs))

    return start


def _function(node: Construction, attr: str, arguments: Types, results: Types) -> CapturedFunction:
    """The function that an attr names.

    Raises the errors of instantiation, InternalError for other arguments and InvalidArgumentError for other results.
    """
    function = node.function(attr)
    body = instantiate_call(function.provider.library, function.function)
    if tuple(body.argument_types) != tuple(arguments):
        raise InternalError(f"{attr} {body.name!r} takes {_listed(body.argument_types)}, not {_listed(arguments)}")
    if tuple(body.result_types) != tuple(results):
        raise InvalidArgumentError(f"{attr} {body.name!r} gives {_listed(body.result_types)}, not {_listed(results)}")
    return CapturedFunction(function, ())


def _listed(types: Types) -> str:
    return f"({', '.join(map(dtype_name, types))})"


def _repeated(condition: CapturedFunction, body: CapturedFunction, values: Values) -> PullSteps[Values]:
    while _is_true((yield from condition(*values))[0]):
        values = yield from body(*values)
        yield None
    return values


def _is_true(value: Any) -> bool:
    require(np.ndim(value) == 0, f"a condition must be a scalar, not of shape {shape_text(np.shape(value))}")
    return bool(value)
