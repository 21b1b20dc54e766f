"""Value rules of reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...analysis.value_rules import ArrayFunction, ValueContext, array_rule
from ...dtypes import Array


def _reduction(function: Callable[..., Any]) -> ArrayFunction:  # Any: see ArrayFunction
    """The rule of an op that reduces with a numpy function along the axes that input 1 names."""

    def reduce(c: ValueContext, v: list[Array]) -> Any:
        axes = tuple(v[1].reshape(-1).tolist())
        return function(v[0], axis=axes, keepdims=bool(c.attrs["keep_dims"]))

    return reduce


array_rule("Sum", whole=(1,))(_reduction(np.sum))
array_rule("Prod", whole=(1,))(_reduction(np.prod))
array_rule("Max", whole=(1,))(_reduction(np.max))
array_rule("Min", whole=(1,))(_reduction(np.min))
array_rule("All")(_reduction(np.all))
array_rule("Any")(_reduction(np.any))
