"""Law: a step of representatives is that of all ranks, to the nanosecond, or it is refused as ranks are not alike.

`python -m tests.laws.representatives --count 300` asks for more cases, of models `python -m tests.laws.models --clock`.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.laws.models import cases, clock
from tests.laws.outcomes import EQUAL, REFUSED, Outcome
from tests.laws.representatives.cases import drawn
from tests.laws.representatives.running import compared

SEEDS = range(1000, 1030)


@cache
def outcome(seed: int) -> Outcome:
    """What comes out of a case."""
    return compared(drawn(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_representatives_do_what_all_ranks_do(seed: int) -> None:
    """Makespan, every event of the representatives and the totals are equal; ranks of refused cases do differ."""
    result = outcome(seed)
    assert result.kind in (EQUAL, REFUSED), result.why


def test_most_cases_are_not_refused() -> None:
    """The law is not kept by refusing."""
    kinds = [outcome(seed).kind for seed in SEEDS]
    assert kinds.count(EQUAL) >= len(kinds) // 2


@pytest.mark.parametrize("seed", range(28))
def test_representatives_of_a_model_do_what_all_its_ranks_do(seed: int) -> None:
    """Of all families by turns, on hosts of 2, 4 and 8 GPUs."""
    case = cases.drawn(seed)
    assert clock.compared(case, seed) == Outcome(EQUAL), case
