"""Columns of integers: the few things that whole-graph passes do with them, each with the loop that it stands for.

A graph of a million nodes is columns: one array per fact, with a row per node or edge. A pass over it in plain Python
would take seconds, so that passes are written with numpy; what they have in common is here, by name.

    owner = [1, 0, 1, 1]                    an edge per position: who it belongs to
    grouped(owner, 3)                       Groups(starts=[0, 1, 4, 4], members=[1, 0, 2, 3])
                                            owner 0 has edge 1, owner 1 edges 0, 2 and 3, owner 2 has none

    keys = [7, 3, 7, 5, 3]
    seen = first_seen(keys)                 seen.first = [0, 1, 3]           7, 3 and 5, as they come
                                            seen.number = [0, 1, 0, 2, 1]    each key as the number of its value
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Flags: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[np.int64]
Integers: TypeAlias = npt.NDArray[np.integer[Any]]  # of any width: ids are 32 bits wide, positions 64


class Groups(NamedTuple):
    """Positions by owner: those of owner `k` are `members[starts[k]:starts[k + 1]]`, in ascending order."""

    starts: Numbers
    members: Numbers


class Seen(NamedTuple):
    """The distinct values of a column, numbered in order of appearance.

    `first`: the position where each of them comes first; `number`: by position, which of them stands there.
    """

    first: Numbers
    number: Numbers


def starts_of(owner: Integers, count: int) -> Numbers:
    """Where the rows of each of `count` owners begin once they are sorted by owner, and where the last ends."""
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=count), out=starts[1:])
    return starts


def grouped(owner: Integers, count: int) -> Groups:
    """The positions of each of `count` owners: `for i, k in enumerate(owner): members[k].append(i)`."""
    return Groups(starts_of(owner, count), np.argsort(owner, kind="stable"))


def first_seen(keys: Integers) -> Seen:
    """`for key in keys: number.append(numbers.setdefault(key, len(numbers)))`.

    `np.unique` numbers values by size. Which of them comes first decides the order in which names are drawn and errors
    found, so that its numbers are put in order of first positions.
    """
    _, first, by_size = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return Seen(first[order], inverse(order)[by_size.reshape(-1)])


def inverse(order: Integers) -> Numbers:
    """Where each number stands in a permutation: `for i, n in enumerate(order): position[n] = i`."""
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    return position


def owners(counts: Integers) -> Numbers:
    """The owner of every row when owner `k` has `counts[k]` rows that follow each other."""
    return np.repeat(np.arange(len(counts)), counts)


def ready_order(
    consumers: Sequence[Iterable[int]], num_waited_for: Iterable[int], *, lowest_first: bool = False
) -> list[int]:
    """A topological order of nodes 0 to n - 1: each comes when the last of those it waits for has come.

    `consumers` are, by node, those that wait for it, once per time that they do; `num_waited_for` says by node how many
    times it waits. Of several nodes that are ready the one comes that has been for longest, or with `lowest_first` the
    lowest. Nodes that wait for each other are left out.
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
