"""Law 8 for models: a split of a model over devices learns what one device does.

`python -m tests.laws.models --count 500` asks for more.
"""

from __future__ import annotations

import pytest

from tests.laws.models.cases import drawn
from tests.laws.models.running import outcome
from tests.laws.outcomes import EQUAL, Outcome

CASES = 60


@pytest.mark.parametrize("seed", range(CASES))
async def test_a_drawn_split_of_a_model_learns_what_one_device_does(seed: int) -> None:
    """Losses of five steps, and in float64 the weights behind them, of all families by turns."""
    case = drawn(seed)
    assert await outcome(case) == Outcome(EQUAL), case
