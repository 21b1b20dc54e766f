"""How holders change through iterations that were not played: as in the iterations before, so many times more.

played               push a, pop, push b         the list has one element more: b
95 times the same                                95 copies of b more
another loop, folded too: pops                   the copies leave
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .holder_state import HolderState
from .holders import CopyRun, HeldElement, HeldParts, HeldTensorPart, Holder, Net

_MAX_LAG = 40  # iterations by which a tensor is looked for that another holder got earlier


class MustBePlayedError(Exception):
    """What holders have after iterations that were not played does not follow from the iterations before."""


class Repetition(NamedTuple):
    """Iterations that were not played: those of the entries `first` to `end` of the log, `runs` times more.

    After them it is `time_ns`. `is_nested` says that the loop is in another one, or another one in it.
    """

    first: int
    end: int
    runs: int
    time_ns: int
    is_nested: bool


def repeat(state: HolderState, block: Repetition) -> None:
    """Changes all holders that were there before the block, and that have changed in what it repeats.

    Raises MustBePlayedError where iterations replace elements, put in lists of tensors, or wait for elements, and for
    loops in loops: what is kept, and what of that is the same tensor, depends on each iteration there.
    """
    state.now = block.time_ns, block.end - 1
    changed = [
        holder for holder in state.holders.values() if holder.born < block.first and holder.changed_since(block.first)
    ]
    if changed and block.is_nested:
        raise MustBePlayedError
    copying = _Copying(state, block, _successors(changed, block.first), state.run(block.time_ns))
    for holder in changed:
        _repeat_in(holder, copying)


_Successors = dict[int, tuple[int, ...]]
"""by output that an iteration puts in: what later ones put in at the same place, in order, to the last iteration"""


class _Copying(NamedTuple):
    """How the parts of what the block repeats are copied."""

    state: HolderState
    block: Repetition
    successors: _Successors
    run: CopyRun


def _successors(holders: Sequence[Holder], first: int) -> _Successors:
    """By output that was put in: what later iterations put in at the same place.

    A loop hands tensors from one iteration to the next. So if one stack gets what an iteration begins with, and another
    one what it makes, the first gets each tensor one iteration after the second.
    """
    successors: _Successors = {}
    for holder in holders:
        puts = [(order, parts) for order, what, parts, _ in holder.journal if what == "put"]
        count = sum(order >= first for order, _ in puts)
        for place in range(count):
            at_place = [parts for _, parts in puts[::-1][place::count][: _MAX_LAG + 1]]  # the newest first
            for outputs in zip(*([part.output for part in parts] for parts in at_place), strict=False):
                for lag in range(1, len(outputs)):
                    if outputs[lag] != outputs[lag - 1]:
                        successors.setdefault(outputs[lag], outputs[lag - 1 :: -1])
    return successors


def _repeat_in(holder: Holder, copying: _Copying) -> None:
    state, block = copying.state, copying.block
    order, net = state.now[1], holder.changes_since(block.first)
    if (net.from_front and net.more) or holder.waiting or holder.last_wait >= block.first:
        raise MustBePlayedError
    if net.from_front:
        state.drop(holder.take_first(net.from_front * block.runs, order))
    elif net.growth > 0:
        more = Net(more=list(net.more))
        more.add("last", (), net.from_end)
        _put_copies(holder, more.more, copying)
    elif net.growth < 0:
        newest = list(holder.take_last(sum(count for _, count in net.more), order))
        state.drop(holder.take_last(-net.growth * block.runs, order))
        for entry in reversed(newest):
            holder.put(entry, order)


def _put_copies(holder: Holder, elements: Sequence[tuple[HeldParts, int]], copying: _Copying) -> None:
    """Puts in what an iteration does, with the number of each, so many times more."""
    before, runs = holder.outputs_put_before(copying.block.first), copying.block.runs
    if len(elements) == 1:
        ((parts, count),) = elements
        _put_iterations(holder, parts, count, (0, runs), before, copying)
        return
    for number in range(runs):
        for parts, count in elements:
            _put_iterations(holder, parts, count, (number, number + 1), before, copying)


def _put_iterations(
    holder: Holder, parts: HeldParts, count: int, numbers: tuple[int, int], before: set[int], copying: _Copying
) -> None:
    """Puts in what some of the repeated iterations put in at one place: elements of these parts."""
    state = copying.state
    first, end = numbers
    successor = copying.successors.get(parts[0].output) if len(parts) == 1 and count == 1 else None
    if successor is not None and parts[0].output not in before:
        lag = len(successor)
        for number in range(first, min(end, lag)):
            state.put(holder, HeldElement((state.part(successor[number]),)))
        parts = (state.part(successor[-1]),)
        first, end = max(first - lag, 0), end - lag
    if first < end:
        copied = tuple([_copied(state, part, before) for part in parts])
        state.put(holder, HeldElement(copied, copying.run, first * count, end * count))


def _copied(state: HolderState, part: HeldTensorPart, before: set[int]) -> HeldTensorPart:
    """What each further iteration puts in for this part: a new tensor like it, or the same tensor again."""
    if state.tensors.is_list[part.output] or state.gradients.get(part.output, part.output) in state.holders:
        raise MustBePlayedError
    is_same = part.output in before or bool(state.tensors.is_fixed[part.output])
    return part._replace(is_shared=is_same)
