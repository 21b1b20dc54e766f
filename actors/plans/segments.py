"""Segments: nodes of a partition that wait for the same messages, and so can run in one go.

Flows in: columns, which nodes receive, which need an instruction; later, which receives come in one message. Flows
out: the segment of every instruction, and what each segment waits for: messages and other segments. Always holds:
segment 0 waits for nothing and runs first; a node is in a segment only if everything the segment waits for is needed by
the node, so waiting for all of it at once cannot make a deadlock; every message is waited for; segments that a segment
follows have smaller numbers.

The exact grouping (equal sets of awaited messages) would cost a set of messages per node. Instead a node that depends
on one segment joins it, and a node that depends on several gets the segment of that combination, less those that
another one implies. What implies what is known exactly among the latest few hundred, and that is enough: the grouping
may split what could be one segment, never the reverse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...graph.arrays import Flags, Numbers
from .columns import Columns

_WINDOW = 512  # how far back implications are remembered, in segments
_MASK = (1 << _WINDOW) - 1
_NOTHING: frozenset[int] = frozenset()

# What a node waits for: a segment as its number (0 for nothing), or a message as the complement of the node that
# receives it; of several such nodes, of the one that stands for the message.
Need = int


@dataclass(frozen=True, slots=True)
class Grouping:
    """The segment of each node, and per segment what it waits for."""

    segment_of: Numbers
    needs: list[frozenset[Need]]

    def receives(self, segment: int) -> list[int]:
        """The receiving nodes that a segment waits for itself."""
        return sorted([~need for need in self.needs[segment] if need < 0])

    def follows(self, segment: int) -> list[int]:
        """The segments that a segment waits for."""
        return sorted([need for need in self.needs[segment] if need >= 0])

    def merged(self, message_of: Sequence[int]) -> Grouping:
        """The grouping when receive `r` comes with the message that node `message_of[r]` stands for.

        Segments become one when they then wait for the same. Right if all that is sent in one message is sent by one
        segment: its nodes need the same messages, so no message comes to wait for itself.
        """
        made = _Combinations()
        number = [0] * len(self.needs)
        for segment, needs in enumerate(self.needs[1:], 1):
            number[segment] = made.segment([number[n] if n >= 0 else ~message_of[~n] for n in needs])
        return Grouping(np.array(number, np.int64)[self.segment_of], made.needs)


class _Combinations:
    """Segments made so far. Bit `k` of `implied[s]` says that segment `s` comes after segment `s - 1 - k`."""

    def __init__(self) -> None:
        self.needs = [_NOTHING]
        self.implied = [0]
        self.first_to_await: dict[Need, int] = {}
        self._numbers: dict[frozenset[Need], int] = {}

    def join_two(self, a: Need, b: Need) -> Need:
        """`join` of two, by far the most common case."""
        if a == b or not b:
            return a
        if not a or (b > 0 and self._implies(b, a)):
            return b
        return a if a > 0 and self._implies(a, b) else self.combine(frozenset((a, b)))

    def join(self, wanted: Iterable[Need]) -> Need:
        """The one thing to wait for in order to have waited for all that is wanted."""
        needs = set(wanted)
        needs.discard(0)
        if len(needs) > 1:
            needs -= self._implied_among(needs)
        if len(needs) > 1:
            return self.combine(frozenset(needs))
        return needs.pop() if needs else 0

    def segment(self, wanted: Iterable[Need]) -> int:
        """The segment to be in in order to have waited for all that is wanted."""
        need = self.join(wanted)
        return self.combine(frozenset((need,))) if need < 0 else need

    def _implied_among(self, needs: set[Need]) -> set[Need]:
        """Those of `needs` that a segment among them implies.

        One pass over the segments, upwards: a node may wait for any number of things. Bit `k` of `open_to` says that
        something of segment `at - 1 - k` is among the needs and not yet implied.
        """
        segments = sorted([need for need in needs if need > 0])
        found: set[Need] = set()
        placed: dict[int, list[Need]] = {segment: [segment] for segment in segments}
        for need in needs:
            if need < 0 and need in self.first_to_await:
                placed.setdefault(self.first_to_await[need], []).append(need)
        open_to, at, wanted = 0, 0, set(segments)
        for place in sorted(placed):
            open_to = (open_to << (place - at)) & _MASK if place - at <= _WINDOW else 0
            if place in wanted:
                found |= needs & self.needs[place]
                hits = open_to & self.implied[place]
                open_to ^= hits
                while hits:
                    k = hits.bit_length() - 1
                    found.update(placed[place - 1 - k])
                    hits ^= 1 << k
            open_to, at = open_to << 1 | 1, place + 1
        return found

    def _implies(self, segment: int, need: Need) -> bool:
        """Whether it is known that what waited for `segment` has also waited for `need`."""
        if need < 0:
            if need in self.needs[segment]:
                return True
            need = self.first_to_await.get(need, segment)
        return 0 < segment - need <= _WINDOW and bool(self.implied[segment] >> (segment - need - 1) & 1)

    def combine(self, needs: frozenset[Need]) -> int:
        """The segment that waits for exactly `needs`."""
        found = self._numbers.get(needs)
        if found is None:
            found = self._numbers[needs] = len(self.implied)
            implied = 0
            for need in needs:
                if need < 0:
                    self.first_to_await.setdefault(need, found)
                elif found - need <= _WINDOW:
                    implied |= (self.implied[need] << 1 | 1) << (found - need - 1)
            self.implied.append(implied & _MASK)
            self.needs.append(needs)
        return found


def group(columns: Columns, is_receive: Flags, emits: Flags) -> Grouping:
    """Groups the nodes of a partition, each receive a message of its own.

    `segment_of` means something for nodes that `emits` marks.
    """
    if not is_receive.any():
        return Grouping(np.zeros(columns.num_nodes, np.int64), [_NOTHING])
    starts, producers = columns.producers()
    last = _last_of_one(starts, producers, emits, ~is_receive)
    receives = np.flatnonzero(is_receive)
    need_of = np.zeros(columns.num_nodes, np.int64)  # complements of receives are gone from it when a node emits
    need_of[receives] = ~receives
    waits = ((np.diff(starts) > 0) & (last < 0)) | (is_receive & emits)
    needs = need_of.tolist()
    made = _combine(needs, np.flatnonzero(waits), starts, producers.tolist(), is_receive, emits)
    for need in (~receives).tolist():
        if need not in made.first_to_await:
            made.combine(frozenset((need,)))
    need_of = np.array(needs, np.int64)
    return Grouping(np.maximum(np.where(last < 0, need_of, need_of[last]), 0), made.needs)


def _last_of_one(starts: Numbers, producers: Numbers, emits: Flags, eligible: Flags) -> Numbers:
    """Of eligible nodes that come after one instruction and before nothing, as most sends do: that one; of others -1.

    They are in its segment, without further ado.
    """
    count = len(emits)
    is_last = eligible & (np.diff(starts) == 1) & (np.bincount(producers, minlength=count) == 0)
    last = np.full(count, -1, np.int64)
    before = producers[starts[:-1][is_last]]
    last[is_last] = np.where(emits[before], before, -1)
    return last


def _combine(
    need_of: list[Need], nodes: Numbers, starts: Numbers, producers: list[int], is_receive: Flags, emits: Flags
) -> _Combinations:
    """Fills in what each of `nodes` waits for, given the receives; returns the segments that this makes."""
    made = _Combinations()
    columns = (nodes, starts[nodes], starts[nodes + 1], is_receive[nodes], emits[nodes])
    for node, start, end, receives, emitting in zip(*(column.tolist() for column in columns), strict=True):
        if receives:
            need = made.join([~node, *[need_of[producer] for producer in producers[start:end]]])
        elif end - start == 1:
            need = need_of[producers[start]]
        elif end - start == 2:
            need = made.join_two(need_of[producers[start]], need_of[producers[start + 1]])
        else:
            need = made.join([need_of[producer] for producer in producers[start:end]])
        if need < 0 and emitting:
            need = made.combine(frozenset((need,)))
        need_of[node] = need
    return made
