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

from dataclasses import dataclass, field

from .columns import Columns

_WINDOW = 512  # how far back implications are remembered, in items
_MASK = (1 << _WINDOW) - 1


@dataclass(slots=True)
class Grouping:
    """The segment of each node, and per segment the nodes received (`receives`) and the segments it `follows`."""

    segment_of: list[int]
    receives: list[list[int]] = field(default_factory=lambda: [[]])
    follows: list[list[int]] = field(default_factory=lambda: [[]])


class _Items:
    """Things to wait for, numbered as they come up: item 0 is nothing, others are receives or segments.

    Bit `k` of `implied[i]` says that whoever has waited for item `i` has also waited for item `i - 1 - k`.
    """

    def __init__(self, grouping: Grouping) -> None:
        self.grouping = grouping
        self.implied = [0]
        self.segment = [0]  # -1 for a receive
        self.node = [-1]  # of a receive
        self.awaited = bytearray(1)
        self._combinations: dict[frozenset[int], int] = {}

    def receive(self, node: int) -> int:
        """A new item for what `node` receives."""
        return self._add(0, -1, node)

    def _add(self, implied: int, segment: int, node: int) -> int:
        self.implied.append(implied)
        self.segment.append(segment)
        self.node.append(node)
        self.awaited.append(0)
        return len(self.implied) - 1

    def join(self, needs: set[int]) -> int:
        """The item to wait for in order to have waited for all of `needs`."""
        needs.discard(0)
        if len(needs) > 1:
            for later in tuple(needs):
                implied = self.implied[later]
                if implied:
                    needs -= {i for i in needs if 0 < later - i <= _WINDOW and implied >> (later - i - 1) & 1}
        if len(needs) > 1:
            return self.combine(frozenset(needs))
        return needs.pop() if needs else 0

    def combine(self, needs: frozenset[int]) -> int:
        """The item of the segment that waits for exactly `needs`."""
        found = self._combinations.get(needs)
        if found is None:
            number, implied = len(self.implied), 0
            for item in needs:
                implied |= (self.implied[item] << 1 | 1) << (number - item - 1) & _MASK
                self.awaited[item] = 1
            grouping = self.grouping
            found = self._combinations[needs] = self._add(implied & _MASK, len(grouping.follows), -1)
            grouping.receives.append(sorted(self.node[item] for item in needs if self.segment[item] < 0))
            grouping.follows.append(sorted(self.segment[item] for item in needs if self.segment[item] >= 0))
        return found


def group(columns: Columns, is_receive: list[bool], emits: list[bool]) -> Grouping:
    """Groups the nodes of a partition; `segment_of` means something for nodes that `emits` marks."""
    grouping = Grouping([0] * columns.num_nodes)
    if not any(is_receive):
        return grouping
    items = _Items(grouping)
    item_of = [0] * columns.num_nodes
    starts, producers = columns.producers.starts, columns.producers.items
    segment = items.segment
    for node, receives in enumerate(is_receive):
        start, end = starts[node], starts[node + 1]
        if receives:
            item = items.receive(node)
            if start < end:
                item = items.join({item, *[item_of[p] for p in producers[start:end]]})
        elif end - start == 1:
            item = item_of[producers[start]]
        elif start == end:
            continue
        else:
            item = items.join({item_of[p] for p in producers[start:end]})
        if segment[item] < 0 and emits[node]:
            item = items.combine(frozenset((item,)))
        item_of[node] = item
        grouping.segment_of[node] = max(segment[item], 0)
    for item in range(1, len(items.implied)):
        if segment[item] < 0 and not items.awaited[item]:
            items.combine(frozenset((item,)))
    return grouping
