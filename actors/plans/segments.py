"""Segments: nodes of a partition that wait for the same messages, and so can run in one go.

    recv a -> f -> g      f, g            segment 1, after message a
    recv b -> h           h               segment 2, after message b
    g, h -> k             k               segment 3, after segments 1 and 2
    x -> m                m               segment 0, at once

Segment 0 waits for nothing and runs first. A node is in a segment only if it needs everything that the segment waits
for, so that to wait for all of it at once cannot make a deadlock. Some segment waits for each message, even if no
node needs it. A segment waits only for segments with smaller numbers.

To group by equal sets of awaited messages would cost a set of messages per node. Instead a node that depends on one
group joins it, and a node that depends on several gets the group of that combination, without those that another one
implies: k above need not wait for messages a and b. Implications are known among the latest few hundred groups. So
nodes that could be in one segment may be in two; nodes that wait for different messages are never in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast, final

import numpy as np

from ...graph.arrays import Flags, Numbers, positions, sizes
from .columns import OrderedGraph
from .numbering import NodeNumber, SegmentNumber

_WINDOW = 512  # how far back implications are remembered, in groups
_MASK = (1 << _WINDOW) - 1


@final  # so that `type(...) is`, which is faster than isinstance, narrows both ways
class Incoming:
    """A message to wait for. `node` receives it; of several nodes whose tensors it carries, the first.

    `first_group` is the number of the first group that waits for it, 0 if none does.
    """

    __slots__ = ("first_group", "node")

    def __init__(self, node: NodeNumber) -> None:
        self.node = node
        self.first_group = 0


@final
class SegmentGroup:
    """Nodes that wait for the same: a segment of that number.

    `needs` are the messages and groups that it waits for itself. `implied` is the set of earlier groups that it comes
    after, as bits that count backwards from this group: group 7 with `implied` = 0b1001 comes after group 6 (bit 0) and
    group 3 (bit 3). An int, because what one group passes on to a later one is then one shift by their distance, also
    for hundreds of groups; a set for each group would take memory in the square of their number.
    """

    __slots__ = ("implied", "needs", "number")

    def __init__(self, number: SegmentNumber, needs: frozenset[Need], implied: int) -> None:
        self.number = number
        self.needs = needs
        self.implied = implied


Need: TypeAlias = Incoming | SegmentGroup
"""a message, or all that a group waits for; group 0 stands for nothing"""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The segment of each node that needs an instruction, and all groups by segment number."""

    segment_of: Numbers
    groups: list[SegmentGroup]

    def receives(self, segment: int) -> list[NodeNumber]:
        """The messages that a segment waits for itself, as the nodes that stand for them."""
        return sorted(need.node for need in self.groups[segment].needs if isinstance(need, Incoming))

    def follows(self, segment: int) -> list[SegmentNumber]:
        """The segments that a segment waits for."""
        return sorted(need.number for need in self.groups[segment].needs if isinstance(need, SegmentGroup))

    def merged(self, message_of: Sequence[NodeNumber]) -> Grouping:
        """The grouping when receive `r` comes with the message that node `message_of[r]` stands for.

        Segments become one when they then wait for the same. Right if all that is sent in one message is sent by one
        segment: its nodes need the same messages, so no message comes to wait for itself.
        """
        combinations = _Combinations()
        incoming: dict[NodeNumber, Incoming] = {}
        now = [combinations.groups[0]]  # by old number
        for group in self.groups[1:]:
            needs: list[Need] = []
            for need in group.needs:
                if isinstance(need, SegmentGroup):
                    needs.append(now[need.number])
                else:
                    node = message_of[need.node]
                    needs.append(incoming.get(node) or incoming.setdefault(node, Incoming(node)))
            now.append(combinations.group_after(needs))
        number = np.array([group.number for group in now], np.int64)
        return Grouping(number[self.segment_of], combinations.groups)


class _Combinations:
    """The groups so far, one for each combination of needs that came up."""

    def __init__(self) -> None:
        self.start = SegmentGroup(SegmentNumber(0), frozenset(), 0)
        self.groups = [self.start]
        self._group_of: dict[frozenset[Need], SegmentGroup] = {}

    def join_two(self, a: Need, b: Need) -> Need:
        """`join` of two, by far the most common case."""
        start = self.start
        if a is b or b is start:
            return a
        if a is start or (type(b) is SegmentGroup and _implies(b, a)):
            return b
        return a if type(a) is SegmentGroup and _implies(a, b) else self.group_of(frozenset((a, b)))

    def join(self, wanted: Iterable[Need]) -> Need:
        """The single need that stands for all of `wanted`: one of them that implies the others, or their group."""
        needs = set(wanted)
        needs.discard(self.start)
        if len(needs) > 1:
            needs -= self._implied_among(needs)
        if len(needs) > 1:
            return self.group_of(frozenset(needs))
        return needs.pop() if needs else self.start

    def group_after(self, wanted: Iterable[Need]) -> SegmentGroup:
        """The group of nodes that need all of `wanted`."""
        need = self.join(wanted)
        return need if isinstance(need, SegmentGroup) else self.group_of(frozenset((need,)))

    def group_of(self, needs: frozenset[Need]) -> SegmentGroup:
        """The group that waits for exactly `needs`."""
        group = self._group_of.get(needs)
        if group is None:
            number = cast("SegmentNumber", len(self.groups))  # free of cost, unlike a call of SegmentNumber
            implied = 0
            for need in needs:
                if type(need) is SegmentGroup:
                    back = number - need.number
                    if back <= _WINDOW:
                        implied |= (need.implied << 1 | 1) << (back - 1)
                elif not need.first_group:
                    need.first_group = number
            group = self._group_of[needs] = SegmentGroup(number, needs, implied & _MASK)
            self.groups.append(group)
        return group

    def _implied_among(self, needs: set[Need]) -> set[Need]:
        """Those of `needs` that a group among them implies.

        To ask `_implies` for each pair would take time in the square of their number, and a node may wait for thousands
        of things. This is one pass over the groups among them, upwards. `pending` are the needs that are not
        implied yet, as bits that count backwards from group `at`: each stands for a group, or for the messages that
        this group is the first to wait for.
        """
        groups = {need.number for need in needs if isinstance(need, SegmentGroup)}
        standing_at: dict[int, list[Need]] = {}  # the needs by group number, a message at the first that waits for it
        for need in needs:
            number = need.number if isinstance(need, SegmentGroup) else need.first_group
            if number:
                standing_at.setdefault(number, []).append(need)
        implied: set[Need] = set()
        pending, at = 0, 0
        for number in sorted(standing_at):
            pending = (pending << (number - at)) & _MASK if number - at <= _WINDOW else 0
            if number in groups:
                group = self.groups[number]
                implied |= needs & group.needs
                hits = pending & group.implied
                pending ^= hits
                while hits:
                    k = hits.bit_length() - 1
                    implied.update(standing_at[number - 1 - k])
                    hits ^= 1 << k
            pending, at = pending << 1 | 1, number + 1
        return implied


def _implies(group: SegmentGroup, need: Need) -> bool:
    """Whether it is known that nodes of a group have also waited for `need`."""
    if type(need) is SegmentGroup:
        back = group.number - need.number
    elif need in group.needs:
        return True
    else:
        back = group.number - (need.first_group or group.number)
    return 0 < back <= _WINDOW and bool(group.implied >> (back - 1) & 1)


def group(columns: OrderedGraph, is_receive: Flags, emits: Flags) -> Grouping:
    """Groups the nodes of a partition, each receive a message of its own. Only nodes that emit get a right segment."""
    count = columns.num_nodes
    combinations = _Combinations()
    if not is_receive.any():
        return Grouping(np.zeros(count, np.int64), combinations.groups)
    starts, producers = columns.producers()
    last = _last_of_one(starts, producers, emits, ~is_receive)
    need_of: list[Need] = [combinations.start] * count
    receives = cast("list[NodeNumber]", positions(is_receive).tolist())
    messages = list(map(Incoming, receives))
    for node, message in zip(receives, messages, strict=True):
        need_of[node] = message
    waits = positions(((sizes(starts) > 0) & (last < 0)) | (is_receive & emits))
    rows = zip(
        waits.tolist(),
        starts[waits].tolist(),
        starts[waits + 1].tolist(),
        is_receive[waits].tolist(),
        emits[waits].tolist(),
        strict=True,
    )
    _fill_needs(need_of, rows, producers.tolist(), combinations)
    for message in messages:
        if not message.first_group:
            combinations.group_of(frozenset((message,)))
    number = np.array([need.number if type(need) is SegmentGroup else 0 for need in need_of], np.int64)
    return Grouping(np.where(last < 0, number, number[last]), combinations.groups)


def _last_of_one(starts: Numbers, producers: Numbers, emits: Flags, eligible: Flags) -> Numbers:
    """By node: for eligible ones that come after one instruction and before nothing, that instruction's node; else -1.

    Most sends are such nodes. They are in the segment of what they send, without a turn of the loop in `_fill_needs`.
    """
    count = len(emits)
    is_last = eligible & (sizes(starts) == 1) & (np.bincount(producers, minlength=count) == 0)
    last = np.full(count, -1, np.int64)
    before = producers[starts[:-1][is_last]]
    last[is_last] = np.where(emits[before], before, -1)
    return last


def _fill_needs(
    need_of: list[Need],
    rows: Iterable[tuple[int, int, int, bool, bool]],
    producers: Sequence[int],
    combinations: _Combinations,
) -> None:
    """Fills in, by node, what it waits for; receives are filled in already.

    `rows` are node, begin and end of its producers, whether it receives, whether it emits, in topological order. Each
    needs those before it, so that this is a loop over nodes; it is kept small, as nothing else in a set-up costs more.
    """
    join, join_two = combinations.join, combinations.join_two
    for node, start, end, receives, emits in rows:
        if receives:
            need = join([need_of[node], *[need_of[producer] for producer in producers[start:end]]])
        elif end - start == 1:
            need = need_of[producers[start]]
        elif end - start == 2:
            need = join_two(need_of[producers[start]], need_of[producers[start + 1]])
        else:
            need = join([need_of[producer] for producer in producers[start:end]])
        if emits and type(need) is Incoming:
            need = combinations.group_of(frozenset((need,)))
        need_of[node] = need
