"""Stacks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import run
from tests.devices.kernels.lists.list_tensors import FLOAT


@given(st.lists(st.floats(width=32, allow_nan=False), max_size=5))
def test_a_stack_gives_back_the_last_first(numbers: list[float]) -> None:
    """Popping from an empty stack is an error."""
    stack = run("StackV2", np.int32(len(numbers)), elem_type=FLOAT, stack_name="s")
    for number in numbers:
        assert run("StackPushV2", stack, np.float32(number)) == np.float32(number)
    with pytest.raises(InvalidArgumentError, match="overflowed its max_size"):
        run("StackPushV2", stack, np.float32(0))
    assert [run("StackPopV2", stack, elem_type=FLOAT) for _ in numbers] == [np.float32(n) for n in reversed(numbers)]
    with pytest.raises(InvalidArgumentError, match=r"Stack\[s\] is empty when calling Pop\(\)"):
        run("StackPopV2", stack, elem_type=FLOAT)
    run("StackCloseV2", stack)
    with pytest.raises(InvalidArgumentError, match="has already been closed"):
        run("StackPushV2", stack, np.float32(0))
