"""Where to cut a chain of nodes into stages, so that the slowest stage is as fast as can be.

    costs = [3, 1, 2, 2], crossings = [0, 1, 1, 2, 0]       crossings[k]: tensors that cross before node k
    cut_positions(costs, crossings, 2)  ->  [0, 2, 4]       stages of 4 and 4; cut at 1 or 3 the slower is 5 or 6

Nodes keep their order. Of all cuts whose slowest stage is fastest the one with the fewest tensors over the cuts is
taken, then the one that cuts earliest. Dynamic programming over the positions, in two passes:

    slowest[k][j] = min over i of max(slowest[k - 1][i], cost of nodes i to j)      k stages end before node j
    crossed[k][j] = crossings[j] + min over i of crossed[k - 1][i], where nodes i to j cost at most slowest
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....errors import InvalidArgumentError
from ...arrays import Floats

_ROUNDING = 1e-9  # sums of costs that differ by less are equal


def cut_positions(costs: Sequence[float], crossings: Sequence[int], stages: int) -> list[int]:
    """The first node of each stage, and the number of nodes last.

    Every stage gets a node. Raises InvalidArgumentError for fewer nodes than stages.
    """
    count = len(costs)
    if count < stages:
        raise InvalidArgumentError(f"{count} nodes cannot be cut into {stages} stages; use fewer stages")
    before = np.concatenate([[0.0], np.cumsum(costs)])
    most = _slowest(before, stages) * (1 + _ROUNDING)
    crossed = np.where(np.arange(count + 1) == 0, 0.0, np.inf)
    choices = []
    for _ in range(stages):
        crossed, choice = _fewest(before, crossed, crossings, most)
        choices.append(choice)
    positions = [count]
    for choice in reversed(choices):
        positions.append(choice[positions[-1]])
    return positions[::-1]


def _slowest(before: Floats, stages: int) -> float:
    """The cost of the slowest stage of the best cut; `before` has the sum of costs before each node."""
    slowest = np.where(np.arange(len(before)) == 0, 0.0, np.inf)
    for _ in range(stages):
        following = np.full(len(before), np.inf)
        for end in range(1, len(before)):
            following[end] = np.maximum(slowest[:end], before[end] - before[:end]).min()
        slowest = following
    return float(slowest[-1])


def _fewest(before: Floats, crossed: Floats, crossings: Sequence[int], most: float) -> tuple[Floats, list[int]]:
    """With one stage more: the fewest tensors over cuts by last position, and where that stage begins."""
    following = np.full(len(before), np.inf)
    choice = [0] * len(before)
    first = np.searchsorted(before, before - most, side="left")
    for end in range(1, len(before)):
        start = min(int(first[end]), end - 1)
        choice[end] = start + int(np.argmin(crossed[start:end]))
        if before[end] - before[choice[end]] <= most:
            following[end] = crossed[choice[end]] + crossings[end]
    return following, choice
