"""Transfers between the partitions of a graph: bundles them into messages, for which segments wait.

What one segment sends to one device can travel as one message, a bundle, as a segment that sends one of its tensors
sends them all: one look-up, one callback and one wake-up instead of one each.

    CPU:0, segment 0: send a, send b      ->      CPU:1, message 0 (a, b)
    CPU:1, segment 1 after a, segment 2 after b      become      segment 1 after message 0

Then segments that wait for the same bundle become one, and what these send in turn can be bundled further. So
partitions are grouped one by one first, then bundled and merged in rounds over all of them, as long as a round saves
enough messages: it does where many tensors are ready at once, and not where nodes are placed at random.

Both ends of a message have its tensors in the same order, and its key is that of the first. A tensor read from a
variable travels alone, so that it is read exactly where its send stands. Sends with a long kernel between them are not
in one message, so that a tensor that is ready early leaves early.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from ...graph.arrays import Flags, Numbers, owners, positions, sizes, starts_of
from ...graph.dtypes import base_type
from ...rendezvous.key import ROOT_FRAME
from .draft import Draft
from .keys import numbered_stems
from .numbering import NodeNumber
from .roles import Role, role_of
from .segments import Grouping, group

if TYPE_CHECKING:
    from ...graph.graph import Graph
    from ...graph.ops.properties import NodeProperties
    from ...graph.ops.record import OpRecord

_BLOCK = 256  # instructions whose sends may travel together
_WORTHWHILE = 1 / 32  # of all messages, what a round must save


@dataclass(frozen=True, slots=True)
class TransferMessages:
    """The messages at one end: message k has key `keys[k]` and the tensors of `nodes[starts[k]:starts[k + 1]]`.

    `is_unpaired` says by message whether its other end is not among the partitions.
    """

    keys: list[str]
    starts: Numbers
    nodes: Numbers
    is_unpaired: Flags

    @property
    def sizes(self) -> Numbers:
        """By message: the number of its tensors."""
        return sizes(self.starts)

    @property
    def first(self) -> Numbers:
        """By message: the node of its first tensor, which stands for the message where it is waited for."""
        return self.nodes[self.starts[:-1]]

    @property
    def last(self) -> Numbers:
        """By message: the last of its nodes in the order in which they run, which sends it."""
        last: Numbers = np.maximum.reduceat(self.nodes, self.starts[:-1]) if len(self.nodes) else self.nodes
        return last


NO_MESSAGES = TransferMessages([], np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_))


@dataclass(frozen=True, slots=True)
class TransferShare:
    """What a partition has of the transfers: its segments, and the messages it sends and receives.

    `unchecked` are the receives whose sends are elsewhere, or of another type: only the run shows what they get.
    """

    grouping: Grouping
    outgoing: TransferMessages
    incoming: TransferMessages
    unchecked: frozenset[NodeNumber] = frozenset()


def shares_of(
    graphs: Sequence[Graph],
    drafts: Sequence[Draft],
    *,
    bundled: bool,
    framed: bool = False,
    processes: Sequence[str] | None = None,
) -> list[TransferShare]:
    """Groups the partitions of one graph; unless `bundled`, every tensor is a message of its own.

    The keys of what is `framed`, part of a loop or a call, are stems: they lack frame and iteration. With `processes`,
    one for each partition, what goes to another process is not bundled: what is ready at once travels at once there.
    """
    if not drafts:
        return []
    groupings = [group(d.columns, d.has_role(Role.RECV, Role.ARRIVAL), d.emits) for d in drafts]
    transfers = _Transfers(graphs, drafts, framed=framed, processes=processes)
    message_of = np.arange(len(transfers.keys))
    while bundled and len(message_of):
        further = transfers.bundled(groupings, message_of)
        before, after = _count(message_of), _count(further)
        if before - after <= before * _WORTHWHILE:
            break
        message_of = further
        groupings = [g.merged(first) for g, first in zip(groupings, transfers.first_nodes(message_of), strict=True)]
    return transfers.shares(groupings, message_of)


def _count(message_of: Numbers) -> int:
    """The number of messages: each has the number of its first transfer."""
    return int(np.count_nonzero(message_of == np.arange(len(message_of))))


class _Ends(NamedTuple):
    """All sends, or all receives, of all partitions: the number of the partition, the node in it, the transfer."""

    part: Numbers
    node: Numbers
    transfer: Numbers


class _Transfers:
    """All transfers between some partitions. `message_of` says by transfer the first one that its message carries.

    `sender` and `receiver` are by transfer: positions in `sends` and `receives`, -1 for none. A send or receive that
    has not exactly one counterpart is unpaired: a transfer by itself.
    """

    def __init__(
        self, graphs: Sequence[Graph], drafts: Sequence[Draft], *, framed: bool, processes: Sequence[str] | None
    ) -> None:
        self.drafts = drafts
        sends, receives = ([draft.nodes(role) for draft in drafts] for role in (Role.SEND, Role.RECV))
        ids = [np.array(draft.columns.ids, np.int64) for draft in drafts]
        by_id = [(g, i[nodes]) for ends in (sends, receives) for g, i, nodes in zip(graphs, ids, ends, strict=True)]
        numbers, keys = numbered_stems(by_id)
        if not framed:
            keys = [stem + ROOT_FRAME for stem in keys]
        num_sends = sum(map(len, sends))
        sent, received = numbers[:num_sends], numbers[num_sends:]
        paired = (np.bincount(sent, minlength=len(keys)) == 1) & (np.bincount(received, minlength=len(keys)) == 1)
        unpaired = positions(~paired[numbers])
        self.keys = [*keys, *(keys[number] for number in numbers[unpaired].tolist())]
        numbers = numbers.copy()
        numbers[unpaired] = np.arange(len(keys), len(self.keys))
        self.sends = _ends(sends, numbers[:num_sends])
        self.receives = _ends(receives, numbers[num_sends:])
        self.sender = _positions(self.sends.transfer, len(self.keys))
        self.receiver = _positions(self.receives.transfer, len(self.keys))
        self._block = self._per_end(self.sends, [_blocks(draft) for draft in drafts])
        self._may_be_bundled = (self.sender >= 0) & (self.receiver >= 0)
        if processes is not None:
            both, number = positions(self._may_be_bundled), np.unique(processes, return_inverse=True)[1].reshape(-1)
            sender, receiver = self.sends.part[self.sender[both]], self.receives.part[self.receiver[both]]
            self._may_be_bundled[both] = number[sender] == number[receiver]

    def bundled(self, groupings: Sequence[Grouping], message_of: Numbers) -> Numbers:
        """`message_of`, when what a segment sends to a partition is one message."""
        both = positions(self._may_be_bundled)
        sender = self.sender[both]
        segment = self._per_end(self.sends, [grouping.segment_of for grouping in groupings])[sender]
        target = self.receives.part[self.receiver[both]]
        bundled: Numbers = message_of.copy()
        bundled[both] = both[_first_alike(self.sends.part[sender], segment, self._block[sender], target)]
        return bundled

    def first_nodes(self, message_of: Numbers) -> list[list[NodeNumber]]:
        """By partition, by node: for a receive the one that gets the first tensor of its message, else the node."""
        receives = self.receives
        first = receives.node[self.receiver[message_of[receives.transfer]]]
        first_nodes: list[list[NodeNumber]] = []
        for draft, (begin, end) in zip(self.drafts, pairwise(self._rows(receives)), strict=True):
            nodes = np.arange(draft.columns.num_nodes)
            nodes[receives.node[begin:end]] = first[begin:end]
            first_nodes.append(cast("list[NodeNumber]", nodes.tolist()))
        return first_nodes

    def shares(self, groupings: Sequence[Grouping], message_of: Numbers) -> list[TransferShare]:
        """What every partition sends and receives."""
        outgoing, incoming = self._messages(self.sends, message_of), self._messages(self.receives, message_of)
        node, flags = self.receives.node, self._unchecked()
        unchecked = [
            frozenset(node[begin:end][flags[begin:end]].tolist()) for begin, end in pairwise(self._rows(self.receives))
        ]
        return list(map(TransferShare, groupings, outgoing, incoming, unchecked))

    def _unchecked(self) -> Flags:
        """By receive: whether it has no send of the same type."""
        dtypes = [
            np.array(list(map(_dtype, draft.columns.kinds)), np.int64)[draft.columns.kind] for draft in self.drafts
        ]
        expected = self._per_end(self.receives, dtypes)
        sender = self.sender[self.receives.transfer]
        sent = np.append(self._per_end(self.sends, dtypes), -1)[sender]  # -1, no type, for receives without a send
        unchecked: Flags = sent != expected
        return unchecked

    def _per_end(self, ends: _Ends, columns: Sequence[Numbers]) -> Numbers:
        """`[columns[part][node] for part, node, _ in zip(*ends)]`, with one look-up in the columns put end to end."""
        starts = np.cumsum([0, *map(len, columns)])
        return np.concatenate(columns)[starts[ends.part] + ends.node]

    def _rows(self, ends: _Ends) -> list[int]:
        """Where the ends of each partition begin, which come partition by partition; then where all end."""
        rows: list[int] = starts_of(ends.part, len(self.drafts)).tolist()
        return rows

    def _messages(self, ends: _Ends, message_of: Numbers) -> list[TransferMessages]:
        """By partition its messages, by number; the tensors of each by number of their transfers.

        All partitions are sorted at once: a large cluster has a thousand, with a few messages each.
        """
        message = message_of[ends.transfer]
        order = np.lexsort((ends.transfer, message, ends.part))
        message, node = message[order], ends.node[order]
        is_first = np.append(True, (message[1:] != message[:-1]) | (ends.part[1:] != ends.part[:-1]))[: len(order)]
        starts = positions(is_first)
        transfers = message[starts]
        keys = list(map(self.keys.__getitem__, transfers.tolist()))
        is_unpaired = (self.sender[transfers] < 0) | (self.receiver[transfers] < 0)
        rows, starts = self._rows(ends), np.append(starts, len(order))
        numbers = np.searchsorted(starts, rows).tolist()
        return [
            TransferMessages(
                keys[first:last], starts[first : last + 1] - begin, node[begin:end], is_unpaired[first:last]
            )
            for (begin, end), (first, last) in zip(pairwise(rows), pairwise(numbers), strict=True)
        ]


def _ends(nodes: Sequence[Numbers], transfer: Numbers) -> _Ends:
    """The ends at `nodes`, which are by partition."""
    return _Ends(owners(np.array(list(map(len, nodes)), np.int64)), np.concatenate(nodes), transfer)


def _positions(transfer: Numbers, count: int) -> Numbers:
    """By transfer: at which end it is, -1 for none."""
    positions = np.full(count, -1, np.int64)
    positions[transfer] = np.arange(len(transfer))
    return positions


def _dtype(kind: NodeProperties) -> int:
    """The type of the tensor that a transfer of this kind carries; 0 for other nodes."""
    role = role_of(kind.op_def.name)
    if role is Role.SEND:
        return base_type(kind.input_types[0])
    return base_type(kind.output_types[0]) if role is Role.RECV else 0


def _first_alike(*columns: Numbers) -> Numbers:
    """By row: the first row that is equal in all columns.

    `first = [seen.setdefault(row, number) for number, row in enumerate(zip(*columns))]`, which would make a tuple and
    hash it for every row. Sorted rows that are equal are neighbours, and as the sort is stable the first comes first.
    """
    order = np.lexsort(columns)
    table = np.stack(columns)[:, order]
    begins = np.append(True, (table[:, 1:] != table[:, :-1]).any(axis=0))[: len(order)]
    first = np.empty(len(order), np.int64)
    first[order] = order[begins][np.cumsum(begins) - 1]
    return first


def is_long(record: OpRecord) -> bool:
    """Whether the kernel of an op is likely to take long."""
    return record.takes_long or record.waits_for_files


def _blocks(draft: Draft) -> Numbers:
    """By node: a number that is equal for sends that may travel together."""
    takes_long = np.array([is_long(p.op_def.record) for p in draft.columns.kinds], bool)
    # A new block begins after every long kernel, and after every _BLOCK instructions.
    instruction, long_before = np.cumsum(draft.emits), np.cumsum(takes_long[draft.columns.kind])
    block: Numbers = instruction // _BLOCK + long_before * (len(instruction) // _BLOCK + 1)
    if draft.is_reference is not None:
        sends = draft.nodes(Role.SEND)
        alone = sends[draft.is_reference[draft.first_input(sends)]]
        block[alone] = block.max(initial=0) + 1 + np.arange(len(alone))
    return block
