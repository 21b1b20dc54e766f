"""Transfers between the partitions of a graph: what is sent in one message, and what every partition waits for.

Flows in: the drafts of all partitions. Flows out: per partition its segments and the messages it sends and receives.
Always holds: both ends of a message have its tensors in the same order, and it goes by the key of the first; a tensor
read from a variable travels alone, so that it is read exactly where its send stands; sends with a long kernel between
them are not in one message, so that what is ready early leaves early.

What one segment sends to one device can travel as one message, a bundle, since a segment that sends one of its tensors
sends them all: one look-up, one callback and one wake-up instead of one each. Then segments that wait for the same
bundle can become one, and what these send in turn can be bundled further. So partitions are grouped one by one first,
then bundled and merged in rounds over all of them, as long as a round saves enough to pay for itself: it does where
many tensors are ready at once, and not where nodes are placed at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...graph.arrays import Flags, Numbers
from ...graph.dtypes import base_type
from ...rendezvous.key import ROOT_FRAME
from .draft import Draft
from .keys import numbered_stems
from .roles import Role, role_of
from .segments import Grouping, group

if TYPE_CHECKING:
    from ...graph.graph import Graph
    from ...graph.ops.properties import NodeProperties
    from ...graph.ops.record import OpRecord

_BLOCK = 256  # instructions whose sends may travel together
_WORTHWHILE = 1 / 32  # of all messages, what a round must save


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages at one end: message k goes by `keys[k]` and has the tensors of `nodes[starts[k]:starts[k + 1]]`."""

    keys: list[str]
    starts: Numbers
    nodes: Numbers

    @property
    def sizes(self) -> Numbers:
        """The number of tensors of each message."""
        return np.diff(self.starts)

    @property
    def last(self) -> Numbers:
        """The last node of each message."""
        found: Numbers = np.maximum.reduceat(self.nodes, self.starts[:-1]) if len(self.nodes) else self.nodes
        return found


NO_MESSAGES = Messages([], np.zeros(1, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class Share:
    """The segments of a partition, and its messages; what comes in is awaited by the first node of each message.

    `doubtful` are the receives whose sends are elsewhere, or of another type: only the run shows what they get.
    """

    grouping: Grouping
    outgoing: Messages
    incoming: Messages
    doubtful: frozenset[int] = frozenset()


def shares_of(graphs: Sequence[Graph], drafts: Sequence[Draft], *, bundled: bool, framed: bool = False) -> list[Share]:
    """Groups the partitions of one graph; unless `bundled`, every tensor is a message of its own.

    The keys of what is `framed`, part of a loop or a call, are stems: they lack frame and iteration.
    """
    if not drafts:
        return []
    groupings = [group(d.columns, np.isin(d.codes, (Role.RECV, Role.ARRIVAL)), d.emits) for d in drafts]
    ends = _Ends(graphs, drafts, framed)
    message_of = np.arange(len(ends.keys))
    while bundled and len(message_of):
        further = ends.bundles(groupings, message_of)
        before, after = _count(message_of), _count(further)
        if before - after <= before * _WORTHWHILE:
            break
        message_of = further
        groupings = [g.merged(first) for g, first in zip(groupings, ends.first_of_each(message_of), strict=True)]
    return ends.shares(groupings, message_of)


def _count(message_of: Numbers) -> int:
    """The number of messages: each goes by the number of one of its transfers."""
    return int(np.count_nonzero(message_of == np.arange(len(message_of))))


class _Ends:
    """All sends, then all receives, of all partitions: `part` and `node` by end, and the number of the transfer.

    Ends that have not exactly one counterpart are transfers by themselves.
    """

    def __init__(self, graphs: Sequence[Graph], drafts: Sequence[Draft], framed: bool) -> None:
        self.drafts = drafts
        found = [[np.flatnonzero(d.codes == role) for d in drafts] for role in (Role.SEND, Role.RECV)]
        ids = [np.array(d.columns.ids, np.int64) for d in drafts]
        self.num_sends = sum(map(len, found[0]))
        self.part = np.concatenate([np.repeat(np.arange(len(drafts)), list(map(len, nodes))) for nodes in found])
        self.node = np.concatenate([column for nodes in found for column in nodes])
        at = [(g, i[column]) for nodes in found for g, i, column in zip(graphs, ids, nodes, strict=True)]
        numbers, keys = numbered_stems(at)
        if not framed:
            keys = [stem + ROOT_FRAME for stem in keys]
        sends, receives = numbers[: self.num_sends], numbers[self.num_sends :]
        paired = (np.bincount(sends, minlength=len(keys)) == 1) & (np.bincount(receives, minlength=len(keys)) == 1)
        lonely = np.flatnonzero(~paired[numbers])
        self.keys = [*keys, *(keys[number] for number in numbers[lonely].tolist())]
        self.number = numbers.copy()
        self.number[lonely] = np.arange(len(lonely)) + len(keys)
        self.send = np.full(len(self.keys), -1, np.int64)
        self.send[self.number[: self.num_sends]] = np.arange(self.num_sends)
        self.receive = np.full(len(self.keys), -1, np.int64)
        self.receive[self.number[self.num_sends :]] = np.arange(self.num_sends, len(self.node))
        self.block = self._blocks()

    def _blocks(self) -> Numbers:
        """Per send: a number that is equal for those of a partition that may travel together."""
        blocks = [_blocks(d) for d in self.drafts]
        starts = np.cumsum([0, *map(len, blocks)])
        block: Numbers = np.concatenate(blocks)[(starts[self.part] + self.node)[: self.num_sends]]
        return block

    def bundles(self, groupings: Sequence[Grouping], message_of: Numbers) -> Numbers:
        """The message of each transfer, a number, when what segments send to one partition goes together."""
        both = np.flatnonzero((self.send >= 0) & (self.receive >= 0))
        sends = self.send[both]
        starts = np.cumsum([0, *(len(g.segment_of) for g in groupings)])
        segment = np.concatenate([g.segment_of for g in groupings])[starts[self.part[sends]] + self.node[sends]]
        facts = np.stack([self.part[sends], segment, self.block[sends], self.part[self.receive[both]]])
        bundled: Numbers = message_of.copy()
        bundled[both] = both[_first_alike(facts)]
        return bundled

    def first_of_each(self, message_of: Numbers) -> list[list[int]]:
        """Per partition, by node: the first node of the message that is received with that node's."""
        received = np.flatnonzero(self.receive >= 0)
        first = self.node[self.receive[message_of[received]]]
        found = [np.arange(d.columns.num_nodes) for d in self.drafts]
        ends = self.receive[received]
        for part, column in enumerate(found):
            here = self.part[ends] == part
            column[self.node[ends[here]]] = first[here]
        return [column.tolist() for column in found]

    def shares(self, groupings: Sequence[Grouping], message_of: Numbers) -> list[Share]:
        """What every partition sends and receives."""
        sends = np.arange(len(self.node)) < self.num_sends
        doubtful = self._doubtful()
        return [
            Share(
                grouping,
                self._messages(message_of, here & sends),
                self._messages(message_of, here & ~sends),
                frozenset(self.node[here & doubtful].tolist()),
            )
            for part, grouping in enumerate(groupings)
            for here in [self.part == part]
        ]

    def _doubtful(self) -> Flags:
        """Which ends are receives without a send of the same type."""
        dtypes = np.concatenate(
            [np.array(list(map(_dtype, d.columns.kinds)), np.int64)[d.columns.kind] for d in self.drafts]
        )
        starts = np.cumsum([0, *(d.columns.num_nodes for d in self.drafts)])
        dtype = dtypes[starts[self.part] + self.node]
        sender = self.send[self.number]
        doubtful: Flags = (sender < 0) | (dtype[sender] != dtype)
        doubtful[: self.num_sends] = False
        return doubtful

    def _messages(self, message_of: Numbers, chosen: Flags) -> Messages:
        """The messages at the chosen ends, tensors in the order of their numbers."""
        ends = np.flatnonzero(chosen)
        message = message_of[self.number[ends]]
        order = np.lexsort((self.number[ends], message))
        ends, message = ends[order], message[order]
        starts = np.flatnonzero(np.diff(message, prepend=-1))
        keys = list(map(self.keys.__getitem__, message[starts].tolist()))
        return Messages(keys, np.append(starts, len(ends)), self.node[ends])


def _dtype(kind: NodeProperties) -> int:
    """The type of the tensor that a transfer of this kind hands over; 0 for other nodes."""
    role = role_of(kind.op_def.name)
    if role is Role.SEND:
        return base_type(kind.input_types[0])
    return base_type(kind.output_types[0]) if role is Role.RECV else 0


def _first_alike(facts: Numbers) -> Numbers:
    """Per column of `facts`: the first column that equals it."""
    order = np.lexsort(facts)  # stable: of equal columns the first comes first
    facts = facts[:, order]
    begins = np.append(True, (facts[:, 1:] != facts[:, :-1]).any(axis=0))[: len(order)]
    first = np.empty(len(order), np.int64)
    first[order] = order[begins][np.cumsum(begins) - 1]
    return first


def is_long(record: OpRecord) -> bool:
    """Whether the kernel of an op is likely to take long."""
    return record.takes_long or record.waits_for_files


def _blocks(draft: Draft) -> Numbers:
    """Per node: a number that is equal for sends that may travel together."""
    takes_long = np.array([is_long(p.op_def.record) for p in draft.columns.kinds], bool)
    instruction = np.cumsum(draft.emits)
    long_before = np.cumsum(takes_long[draft.columns.kind])
    block: Numbers = instruction // _BLOCK + long_before * (len(instruction) // _BLOCK + 1)
    if draft.is_reference is not None:
        sends = np.flatnonzero(draft.codes == Role.SEND)
        alone = sends[draft.is_reference[draft.first_input(sends)]]
        block[alone] = -1 - alone
    return block
