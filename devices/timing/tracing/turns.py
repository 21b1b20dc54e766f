"""How often loops ran and which branches were taken, by *turn*: once per iteration of the loops around, in order.

    for i in range(3): for j in range(i)      counts of the inner loop by turn [0, 1, 2]

Traces with iterations tell the turn of each run. In others the runs of a node are taken in the order of their starts,
which is the order of turns unless iterations overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from ....errors import InvalidArgumentError
from ....graph.formats.trace_runs import IterationPath, TracedRun
from ....graph.ops.record import LOOPS, Calls, record_of

_MOST_TURNS = 10**7
"""iterations around a loop that a trace may have"""

ByTurn: TypeAlias = "int | list[int]"
TurnCounts = Mapping[str, Mapping[IterationPath, int]]
"""by frame, and by the iteration around: how often the loop ran"""


def recorded_counts(runs: Iterable[TracedRun]) -> dict[str, dict[IterationPath, int]]:
    """The counts of loops whose nodes have iterations, and of While and For nodes.

    The condition of a frame runs in every iteration and once more; a While calls its condition once more than its body.
    """
    counts: dict[str, dict[IterationPath, int]] = {}
    for run in runs:
        if run.op == "LoopCond" and run.iteration:
            (frame, number), around = run.iteration[-1], run.iteration[:-1]
            of_frame = counts.setdefault(frame, {})
            of_frame[around] = max(number, of_frame.get(around, 0))
        elif (calls := record_of(run.op).calls) in LOOPS and run.iteration is not None and run.calls:
            num_called = sum(run.calls.values())
            counts.setdefault(run.node, {})[run.iteration] = num_called // 2 if calls is Calls.WHILE else num_called
    return counts


def by_turn(values: Mapping[IterationPath, int], counts: TurnCounts) -> ByTurn:
    """Values by iteration around -> one value if all are equal, else a list by turn, 0 where there is none.

    `counts` tells how many turns there are.
    """
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    turns = _turns([frame for frame, _ in next(iter(values))], counts)
    if not values.keys() <= set(turns):
        turns = sorted(values, key=lambda iteration: [number for _, number in iteration])
    return [values.get(turn, 0) for turn in turns]


def _turns(frames: Sequence[str], counts: TurnCounts) -> list[IterationPath]:
    """All iterations of nested frames, in order."""
    turns: list[IterationPath] = [()]
    for frame in frames:
        of_frame = counts.get(frame, {})
        if sum(of_frame.get(turn, 0) for turn in turns) > _MOST_TURNS:
            raise InvalidArgumentError(
                f"the trace says that loop {frame!r} ran over {_MOST_TURNS} times in one step; "
                "give `trip_counts` (--trips) instead of a trace"
            )
        turns = [(*turn, (frame, number)) for turn in turns for number in range(of_frame.get(turn, 0))]
    return turns


def counts_of_switch(taken: Sequence[int]) -> ByTurn | None:
    """The counts of a loop from the outputs that one of its Switches took, in order: 1 goes on, 0 ends an activation.

    None for a Switch that never ended one.
    """
    counts, count = [], 0
    for output in taken:
        if output:
            count += 1
        else:
            counts.append(count)
            count = 0
    return compressed(counts) if counts else None


def compressed(values: Sequence[int]) -> ByTurn:
    """One number if all are equal."""
    return values[0] if len(set(values)) == 1 else list(values)
