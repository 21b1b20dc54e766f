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
    run = state.run(block.time_ns)
    for holder in list(state.holders.values()):
        if holder.born < block.first and holder.journal and holder.journal[-1][0] >= block.first:
            _repeat_in(state, holder, block, run)


def _repeat_in(state: HolderState, holder: Holder, block: Repetition, run: Run) -> None:
    order, net = state.now[1], holder.changes_since(block.first)
    if net.from_front:
        if net.growth:
            _put_copies(state, holder, net.more, block, run)
            state.drop(holder.take_first(net.from_front * block.runs, order))
    elif net.growth > 0:
        more = Net(more=list(net.more))
        more.add("last", (), net.from_end)
        _put_copies(state, holder, more.more, block, run)
    elif net.growth < 0:
        newest = list(holder.take_last(sum(count for _, count in net.more), order))
        state.drop(holder.take_last(-net.growth * block.runs, order))
        for entry in reversed(newest):
            holder.put(entry, order)


def _put_copies(
    state: HolderState, holder: Holder, elements: Sequence[tuple[Parts, int]], block: Repetition, run: Run
) -> None:
    """Puts in what an iteration does, with the number of each, so many times more."""
    before = holder.outputs_put_before(block.first)
    copied = [(tuple([_copied(state, part, before) for part in parts]), count) for parts, count in elements]
    if len(copied) == 1:
        ((parts, count),) = copied
        state.put(holder, Entry(parts, run, 0, count * block.runs))
        return
    for number in range(block.runs):
        for parts, count in copied:
            state.put(holder, Entry(parts, run, number * count, (number + 1) * count))


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
