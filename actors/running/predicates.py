"""What the predicate of a While, an If or a Case says.

A predicate that is a scalar is true if it is a number other than zero, a string other than "", or True. Any other
tensor is true if it has elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InvalidArgumentError
from ...graph.ops.record import Calls

CHOICES = (Calls.IF, Calls.CASE)
"""how ops call one of several functions, which their first input chooses"""


def truth(value: Any) -> bool:
    """Whether a predicate is true."""
    if type(value) is np.bool_:
        return bool(value)
    if np.ndim(value):
        return bool(np.size(value))
    scalar = value.item() if isinstance(value, (np.ndarray, np.generic)) else value
    return bool(scalar)


def chosen(calls: Calls | None, num_branches: int, value: Any) -> int:
    """Which function an If or a Case calls; InvalidArgumentError for the index of a Case that is no scalar."""
    if calls is Calls.IF:
        return 0 if truth(value) else 1
    if np.ndim(value):
        raise InvalidArgumentError("branch_index must be scalar")
    index = int(value)
    return index if 0 <= index < num_branches else num_branches - 1
