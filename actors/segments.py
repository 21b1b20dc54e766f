"""Segments: nodes of a partition that wait for the same receives, and so can run in one go.

Flows in: columns, which nodes receive, which need an instruction. Flows out: the segment of every instruction, and
what each segment waits for: receives and other segments. Always holds: segment 0 waits for nothing and runs first; a
node is in a segment only if everything the segment waits for is needed by the node, so waiting for all of it at once
cannot make a deadlock; every receive is waited for; segments that a segment follows have smaller numbers.

The exact grouping (equal sets of awaited receives) would cost a set of receives per node. Instead a node that depends
on one segment joins it, and a node that depends on several gets the segment of that combination, less those that
another one implies. What implies what is known exactly among the latest few hundred, and that is enough: the grouping
may split what could be one segment, never the reverse.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .columns import Columns

_WINDOW = 512  # how far back implications are remembered, in segments
_MASK = (1 << _WINDOW) - 1
_NOTHING: frozenset[int] = frozenset()

# A need is what a node waits for: a segment as its number (0 for nothing), or a receive as the complement of its node.
_Need = int


@dataclass(slots=True)
class Grouping:
    """The segment of each node, and per segment what it waits for: receives as complements of nodes, and segments."""

    segment_of: list[int]
    needs: list[frozenset[_Need]] = field(default_factory=lambda: [_NOTHING])

    def receives(self, segment: int) -> list[int]:
        """The receiving nodes that a segment waits for itself."""
        return sorted([~need for need in self.needs[segment] if need < 0])

    def follows(self, segment: int) -> list[int]:
        """The segments that a segment waits for."""
        return sorted([need for need in self.needs[segment] if need >= 0])


class _Combinations:
    """Segments made so far. Bit `k` of `implied[s]` says that segment `s` comes after segment `s - 1 - k`."""

    def __init__(self, needs: list[frozenset[_Need]]) -> None:
        self.needs = needs
        self.implied = [0]
        self.first_to_await: dict[_Need, int] = {}
        self._numbers: dict[frozenset[_Need], int] = {}

    def join_two(self, a: _Need, b: _Need) -> _Need:
        """`join` of two, by far the most common case."""
        if a == b or not b:
            return a
        if not a or (b > 0 and self._implies(b, a)):
            return b
        return a if a > 0 and self._implies(a, b) else self.combine(frozenset((a, b)))

    def join(self, wanted: Iterable[_Need]) -> _Need:
        """The one thing to wait for in order to have waited for all that is wanted."""
        needs = set(wanted)
        needs.discard(0)
        if len(needs) > 1:
            for segment in [need for need in needs if need > 0]:
                needs -= {need for need in needs if need != segment and self._implies(segment, need)}
        if len(needs) > 1:
            return self.combine(frozenset(needs))
        return needs.pop() if needs else 0

    def _implies(self, segment: int, need: _Need) -> bool:
        """Whether it is known that what waited for `segment` has also waited for `need`."""
        if need < 0:
            if need in self.needs[segment]:
                return True
            need = self.first_to_await.get(need, segment)
        return 0 < segment - need <= _WINDOW and bool(self.implied[segment] >> (segment - need - 1) & 1)

    def combine(self, needs: frozenset[_Need]) -> int:
        """The segment that waits for exactly `needs`."""
        found = self._numbers.get(needs)
        if found is None:
            found = self._numbers[needs] = len(self.implied)
            implied = 0
            for need in needs:
                if need < 0:
                    self.first_to_await.setdefault(need, found)
                else:
                    implied |= (self.implied[need] << 1 | 1) << (found - need - 1)
            self.implied.append(implied & _MASK)
            self.needs.append(needs)
        return found


def group(columns: Columns, is_receive: list[bool], emits: list[bool]) -> Grouping:
    """Groups the nodes of a partition; `segment_of` means something for nodes that `emits` marks."""
    grouping = Grouping([0] * columns.num_nodes)
    if not any(is_receive):
        return grouping
    made = _Combinations(grouping.needs)
    need_of: list[_Need] = grouping.segment_of  # complements of receives are gone from it when a node emits
    starts, producers = columns.producers.starts, columns.producers.items
    end = 0
    for node, (receives, emitting) in enumerate(zip(is_receive, emits, strict=True)):
        start, end = end, starts[node + 1]
        if end - start == 1 and not receives:
            need = need_of[producers[start]]
        elif receives and start == end:
            need = ~node
        elif start == end:
            continue
        elif end - start == 2 and not receives:
            need = made.join_two(need_of[producers[start]], need_of[producers[start + 1]])
        else:
            wanted = [need_of[producer] for producer in producers[start:end]]
            need = made.join([~node, *wanted] if receives else wanted)
        if need < 0 and emitting:
            need = made.combine(frozenset((need,)))
        need_of[node] = need
    for node, receives in enumerate(is_receive):
        if receives and ~node not in made.first_to_await:
            made.combine(frozenset((~node,)))
    return grouping
