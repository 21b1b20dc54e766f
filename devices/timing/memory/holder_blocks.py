"""How holders change through iterations that were not played: as in the iterations before, so many times more.

played               push a, pop, push b         the list has one element more: b
95 times the same                                95 copies of b more
another loop, folded too: pops                   the copies leave
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .holder_state import HolderState
from .holders import Entry, Holder, Net, Part, Parts, Run

_MAX_LAG = 3  # iterations by which a tensor is looked for that another holder got earlier


class Repetition(NamedTuple):
    """Iterations that were not played: those of the entries `first` to `end` of the log, `runs` times more.

    After them it is `time_ns`.
    """

    first: int
    end: int
    runs: int
    time_ns: int


def repeat(state: HolderState, block: Repetition) -> None:
    """Changes all holders that were there before the block, and that have changed in what it repeats."""
    state.now = block.time_ns, block.end - 1
    changed = [
        holder
        for holder in state.holders.values()
        if holder.born < block.first and holder.journal and holder.journal[-1][0] >= block.first
    ]
    copying = _Copying(state, block, _successors(changed, block.first), state.run(block.time_ns))
    for holder in changed:
        _repeat_in(holder, copying)


class _Successor(NamedTuple):
    """What an iteration puts in where earlier ones put in another tensor: the output, and how many iterations later."""

    output: int
    lag: int


class _Copying(NamedTuple):
    """How the parts of what the block repeats are copied."""

    state: HolderState
    block: Repetition
    successors: dict[int, _Successor]
    run: Run


def _successors(holders: Sequence[Holder], first: int) -> dict[int, _Successor]:
    """By output that iterations before the last one have put in. Loops carry tensors on: if one stack gets what an
    iteration begins with, and another what it makes, both have the same tensors, one iteration later.
    """
    successors: dict[int, _Successor] = {}
    for holder in holders:
        puts = [(order, parts) for order, what, parts, _ in holder.journal if what == "put"]
        count = sum(order >= first for order, _ in puts)
        newest = puts[len(puts) - count :]
        for lag in range(1, _MAX_LAG + 1):
            older = puts[max(len(puts) - count * (lag + 1), 0) : len(puts) - count * lag]
            for (_, before), (_, after) in zip(older[::-1], newest[::-1], strict=False):
                for part, later in zip(before, after, strict=False):
                    if part.output != later.output:
                        successors.setdefault(part.output, _Successor(later.output, lag))
    return successors


def _repeat_in(holder: Holder, copying: _Copying) -> None:
    state, block = copying.state, copying.block
    order, net = state.now[1], holder.changes_since(block.first)
    if net.from_front:  # also if as many are put: what replaces an element may be a tensor that is there anyway
        _put_copies(holder, net.more, copying)
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


def _put_copies(holder: Holder, elements: Sequence[tuple[Parts, int]], copying: _Copying) -> None:
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
    holder: Holder, parts: Parts, count: int, numbers: tuple[int, int], before: set[int], copying: _Copying
) -> None:
    """Puts in what some of the repeated iterations put in at one place: elements of these parts."""
    state = copying.state
    first, end = numbers
    successor = copying.successors.get(parts[0].output) if len(parts) == 1 and count == 1 else None
    if successor is not None and parts[0].output not in before:
        parts = (state.part(successor.output),)
        for _ in range(first, min(end, successor.lag)):
            state.put(holder, Entry(parts))
        first, end = max(first - successor.lag, 0), end - successor.lag
    if first < end:
        copied = tuple([_copied(state, part, before) for part in parts])
        state.put(holder, Entry(copied, copying.run, first * count, end * count))


def _copied(state: HolderState, part: Part, before: set[int]) -> Part:
    """A part that every further iteration puts in: another tensor like it, or the same tensor again."""
    is_same = part.output in before or bool(state.tensors.is_fixed[part.output])
    return part._replace(is_shared=is_same, inner=_inner(state, part))


def _inner(state: HolderState, part: Part) -> tuple[tuple[Parts, int], ...]:
    """What is in a part that is a list, or the handle of an object."""
    holder = state.holders.get(state.gradients.get(part.output, part.output))
    if holder is None or part.inner:
        return part.inner
    return tuple(
        (tuple([inner._replace(inner=_inner(state, inner)) for inner in entry.parts]), entry.count)
        for entry in holder.entries
    )
