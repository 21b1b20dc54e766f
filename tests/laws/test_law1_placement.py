"""Law 1: neither the placement of nodes nor the order in which tasks run changes any value.

Each example runs trio's tasks in another order: hypothesis seeds trio's scheduler through `random_module`.
"""

from __future__ import annotations

import random

from hypothesis import given, strategies as st

from tests.runs import assert_same_values, values
from tests.strategies import GraphCase, placed_cases


@given(placed_cases())
async def test_partitioned_run_equals_single_device_run(placed: tuple[GraphCase, dict[str, str]]) -> None:
    """Any placement over up to four devices gives the same bits as one device."""
    case, placement = placed
    assert_same_values(await values(case.on(placement), case), await values(case.on_one_device(), case))


@given(placed_cases(max_steps=6), st.lists(st.random_module(), min_size=2, max_size=4))
async def test_any_interleaving_gives_the_same_values(
    placed: tuple[GraphCase, dict[str, str]], seeds: list[object]
) -> None:
    """A step gives the same bits whatever the order of the tasks."""
    case, placement = placed
    first = await values(case.on(placement), case)
    for number, _ in enumerate(seeds):
        random.seed(number)
        assert_same_values(await values(case.on(placement), case), first)
