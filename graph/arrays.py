"""Operations on columns of integers that passes over whole graphs share, each with the plain loop that it replaces.

A graph of a million nodes is stored as columns: one array per fact, with one row per node or edge. A plain Python loop
over it would take seconds, so passes use numpy.

    owner = [1, 0, 1, 1]                    row i belongs to owner[i]
    grouped(owner, 3)                       Groups(starts=[0, 1, 4, 4], members=[1, 0, 2, 3])
                                            owner 0 has row 1, owner 1 has rows 0, 2 and 3, owner 2 has none

    keys = [7, 3, 7, 5, 3]
    seen = first_seen(keys)                 seen.first = [0, 1, 3]           rows where 7, 3 and 5 come first
                                            seen.number = [0, 1, 0, 2, 1]    7 is value 0, 3 is value 1, 5 is value 2
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[np.int64]
Positions: TypeAlias = npt.NDArray[np.intp]
Integers: TypeAlias = npt.NDArray[np.integer[Any]]  # of any width: ids are 32 bits wide, positions 64

_WIDE = 64  # rows from which on numpy is faster than a loop


class Groups(NamedTuple):
    """Rows by owner: those of owner `k` are `members[starts[k]:starts[k + 1]]`, in ascending order."""

    starts: Numbers
    members: Numbers


class Seen(NamedTuple):
    """The distinct values of a column, numbered in order of appearance.

    `first` has the row where each value comes first; `number` has, by row, the number of its value.
    """

    first: Numbers
    number: Numbers


def positions(flags: Flags) -> Positions:
    """The rows whose flag is set, ascending.

    `np.flatnonzero` reaches the same after three wrappers, which take most of its time for the short columns of the
    thousand small partitions of a large cluster.
    """
    return flags.nonzero()[0]


def starts_of(owner: Integers, count: int) -> Numbers:
    """Where the rows of each of `count` owners begin when rows are sorted by owner, and the number of rows last."""
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=count), out=starts[1:])
    return starts


def grouped(owner: Integers, count: int) -> Groups:
    """The rows of each of `count` owners: `for i, k in enumerate(owner): members[k].append(i)`."""
    return Groups(starts_of(owner, count), np.argsort(owner, kind="stable"))


def first_seen(keys: Integers) -> Seen:
    """`for key in keys: number.append(numbers.setdefault(key, len(numbers)))`.

    `np.unique` numbers values by size. The order of appearance decides in which order names are drawn and errors are
    reported, so the values are numbered again by the rows where they come first.
    """
    if len(keys) < _WIDE:
        rows: dict[int, int] = {}
        number = [rows.setdefault(key, len(rows)) for key in keys.tolist()]
        return Seen(np.array([number.index(k) for k in range(len(rows))], np.int64), np.array(number, np.int64))
    _, first, by_size = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return Seen(first[order], inverse(order)[by_size.reshape(-1)])


def first_rows(number: Integers, count: int) -> Numbers:
    """The first row of each of `count` numbers, all of which are there: of assignments to one place the last counts."""
    rows = np.empty(count, np.int64)
    rows[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    return rows


def distinct(values: Integers) -> Integers:
    """The values without repetitions, by size.

    `np.unique` gives the same, but without positions to return it loads `numpy.ma`, which takes 40 ms once.
    """
    ordered = np.sort(values)
    is_new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def inverse(order: Integers) -> Numbers:
    """The position of each number in a permutation: `for i, n in enumerate(order): position[n] = i`."""
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    return position


def sizes(starts: Integers) -> Numbers:
    """How many rows each owner has, from where their rows begin and end: `np.diff` without its wrapper."""
    return starts[1:] - starts[:-1]


def owners(counts: Integers) -> Numbers:
    """The owner of every row when owner 0 has the first `counts[0]` rows, owner 1 the next `counts[1]`, and so on."""
    return np.repeat(np.arange(len(counts)), counts)


def ready_order(
    consumers: Sequence[Iterable[int]], num_waited_for: Iterable[int], *, lowest_first: bool = False
) -> list[int]:
    """A topological order of nodes 0 to n - 1; nodes of a cycle, and nodes behind one, are left out.

    `consumers[n]` has every node that waits for `n`, repeated if it waits several times; `num_waited_for[n]` is how
    many times `n` waits. Of several ready nodes the one that became ready first comes next, or with `lowest_first` the
    lowest.
    """
    waits = list(num_waited_for)
    ready: deque[int] | list[int] = [n for n, count in enumerate(waits) if not count]
    take: Callable[[], int]
    add: Callable[[int], None]
    if lowest_first:
        heap = list(ready)
        heapify(heap)
        ready, take, add = heap, lambda: heappop(heap), lambda node: heappush(heap, node)
    else:
        queue = deque(ready)
        ready, take, add = queue, queue.popleft, queue.append
    order = []
    while ready:
        node = take()
        order.append(node)
        for consumer in consumers[node]:
            waits[consumer] -= 1
            if not waits[consumer]:
                add(consumer)
    return order


def topological_order(starts: Numbers, consumers: Integers) -> list[int]:
    """`ready_order` over columns: the consumers of node `n` are `consumers[starts[n]:starts[n + 1]]`.

    The nodes that become ready while the consumers of one wave are counted down are the next wave. A wide wave takes
    one step in numpy. In a chain every wave is one node, for which the plain loop is many times faster.
    """
    counts = np.bincount(consumers, minlength=len(starts) - 1).astype(np.int32)
    # The loop reads single elements, which is slow on numpy's arrays; `waits` is the memory of `counts`.
    waits, first = counts.data, starts.data
    targets = array("i", consumers.astype(np.int32).tobytes())
    wave, order = positions(counts == 0).tolist(), list[int]()
    while wave:
        order += wave
        if len(wave) >= _WIDE:
            wave = _released(np.array(wave), starts, consumers, counts).tolist()
            continue
        following = []
        for node in wave:
            for consumer in targets[first[node] : first[node + 1]]:
                waits[consumer] -= 1
                if not waits[consumer]:
                    following.append(consumer)
        wave = following
    return order


def _released(wave: Numbers, starts: Numbers, consumers: Integers, waits: Integers) -> Integers:
    """Counts down the consumers of a wave, in place; those that wait for nothing more, in the order of the loop."""
    counts = starts[wave + 1] - starts[wave]
    before = np.cumsum(counts) - counts
    reached = consumers[np.repeat(starts[wave] - before, counts) + np.arange(counts.sum())]
    np.subtract.at(waits, reached, 1)
    # A consumer that waited for several nodes of the wave is ready after the last of them.
    ready: Integers = reached[waits[reached] == 0][::-1]
    last: Numbers = np.sort(np.unique(ready, return_index=True)[1])[::-1]
    return ready[last]
