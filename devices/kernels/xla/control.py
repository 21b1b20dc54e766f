"""Conditionals and loops of XLA: functions that are called as long as a condition holds, or one of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....graph.analysis.dims import shape_text
from ..checks import require
from ..datasets.dataset import CapturedFunction, Steps
from ..registry import Call, Construction, Start, deferred_kernel
from .computations import carry_out

Values = Sequence[Any]  # tensors of any type


@deferred_kernel("XlaIf")
def conditional(node: Construction) -> Start:
    """The results of `then_branch` if the condition is true or not zero, else of `else_branch`."""
    branches = [CapturedFunction(node.function(attr), ()) for attr in ("else_branch", "then_branch")]

    def start(call: Call, condition: Any, *inputs: Any) -> None:
        carry_out(call, branches[_is_true(condition)](*inputs))

    return start


@deferred_kernel("XlaWhile")
def loop(node: Construction) -> Start:
    """The values after `body`, which is called while `cond` of them is true."""
    condition, body = (CapturedFunction(node.function(attr), ()) for attr in ("cond", "body"))

    def start(call: Call, *inputs: Any) -> None:
        carry_out(call, _repeated(condition, body, inputs))

    return start


def _repeated(condition: CapturedFunction, body: CapturedFunction, values: Values) -> Steps[Values]:
    while _is_true((yield from condition(*values))[0]):
        values = yield from body(*values)
        yield None
    return values


def _is_true(value: Any) -> bool:
    require(np.ndim(value) == 0, f"a condition must be a scalar, not of shape {shape_text(np.shape(value))}")
    return bool(value)
