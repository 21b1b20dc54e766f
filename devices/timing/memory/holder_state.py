"""The lists, stacks, arrays and queues of a step while its nodes are gone through: who has what, under which name.

A list is a value. An op that adds or takes an element makes the next version of it: in the same holder if nobody else
needs the version before, as TensorFlow does, else in a copy, which shares the elements. Stacks, arrays, queues and
staging areas are objects: they are there until the step ends, and what is left in them then has stayed in use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

import numpy as np

from ....graph.arrays import Numbers
from .held import Holdings, Piece
from .holders import CopyRun, HeldElement, HeldTensorPart, Holder
from .tensors import HolderNode, Tensors
from .times import NEVER, Times

_Instant = tuple[int, int]
"""a time, and the order in it"""
_BEFORE = NEVER, NEVER


class HolderState:
    """The holders at the instant `now`, by version: a list by its output, an object by what tells it apart."""

    def __init__(self, tensors: Tensors, times: Times, shares: Numbers) -> None:
        self.tensors = tensors
        self.times = times
        self.shares = shares
        self.now: _Instant = _BEFORE
        self.holders: dict[Hashable, Holder] = {}
        self.gradients: dict[int, Hashable] = {}
        """arrays of gradients, by their handle"""
        self.holdings = Holdings(shares)
        self._alias: dict[int, int] = {}  # elements that were taken out: the output whose buffer they have
        self._holds = Counter[int]()  # by output: in how many holders it is
        self._runs = 0
        self._last_read = self._last_reads()

    def _last_reads(self) -> dict[int, _Instant]:
        """By list when the last op that reads it ended."""
        reads, times = self.tensors.reads, self.times
        output = self.shares[reads.this]
        of_list = np.flatnonzero(self.tensors.is_list[output] & times.ran()[reads.that])
        node = reads.that[of_list]
        columns = output[of_list].tolist(), times.end_ns[node].tolist(), times.order[node].tolist()
        last: dict[int, _Instant] = {}
        for list_, end_ns, order in zip(*columns, strict=True):
            last[list_] = max(last.get(list_, _BEFORE), (end_ns, order))
        return last

    def finished(self) -> Holdings:
        """What the holders have meant, once the step has ended."""
        is_list, makespan_ns = self.tensors.is_list, self.times.makespan_ns()
        for version, holder in self.holders.items():
            list_ = version if isinstance(version, int) and is_list[version] else -1
            for entry in holder.entries:
                self.leave(entry, makespan_ns, list_)
        shares = self.shares.copy()
        shares[list(self._alias)] = list(self._alias.values())
        self.holdings.shares = shares
        return self.holdings

    # Holders

    def actual(self, output: int) -> int:
        """The output whose buffer an output has, as far as it is known by now."""
        output = int(self.shares[output])
        while output in self._alias:
            output = self._alias[output]
        return output

    def holder(self, version: Hashable) -> Holder:
        """The holder of that version, which is empty if it was not met before."""
        holder = self.holders.get(version)
        if holder is None:
            born = int(self.times.order[self.tensors.node[version]]) if isinstance(version, int) else NEVER
            holder = self.holders[version] = Holder(version, born)
        return holder

    def list_of(self, output: int) -> Holder:
        """The holder of the list that an output is."""
        return self.holder(self.actual(output))

    def used(self, node: HolderNode) -> Holder:
        """The list, as it stays, or the object that a node uses."""
        if node.op.area is not None:
            return self.holder((node.op.area, node.memory))
        if not node.op.has_holder:
            return self.holder(("of its own", node.node))
        handle = self.actual(node.inputs[0])
        return self.holder(self.gradients.get(handle, handle))

    def changed(self, node: HolderNode) -> Holder:
        """The object that a node changes, or the next version of the list that it gets."""
        op, output = node.op, node.first
        if not op.makes_list:
            return self.used(node)
        if not op.lists:
            return self.holder(output)
        before = self.actual(node.inputs[op.lists[0]])
        holder = self.holder(before)
        if self._last_read.get(before, _BEFORE) <= self.now and not self._holds[before]:
            del self.holders[before]
            holder.version = output
        else:
            holder = holder.copied(output)
            self._holds.update(part.output for entry in holder.entries if entry.run is None for part in entry.parts)
        self.holders[output] = holder
        return holder

    # Elements

    def part(self, output: int) -> HeldTensorPart:
        """An output as a part of an element."""
        output = self.actual(output)
        return HeldTensorPart(output, int(self.tensors.size_bytes[output]), int(self.tensors.memory[output]))

    def run(self, since_ns: int) -> CopyRun:
        """A new run of copies, which come into being at a time."""
        self._runs += 1
        return CopyRun(since_ns, self._runs)

    def put(self, holder: Holder, entry: HeldElement) -> None:
        """Puts an element, or a run, into a holder."""
        if holder.waiting and entry.run is None:
            holder.last_wait = self.now[1]
            self.give(holder.waiting.popleft(), entry)
            self.holdings.until += [(part.output, self.now[0]) for part in entry.parts]
            return
        holder.put(entry, self.now[1])
        if entry.run is None:
            self._holds.update(part.output for part in entry.parts)

    def leave(self, entry: HeldElement, until_ns: int, list_: int = -1) -> None:
        """An element, or copies, leave at a time, or with a list."""
        for part in entry.parts:
            if entry.run is not None:
                self.holdings.add(Piece(part, entry.run, entry.first, entry.end, until_ns, list_))
            elif list_ >= 0:
                self.holdings.inside.append((part.output, list_))
            else:
                self._holds[part.output] -= 1
                self.holdings.until.append((part.output, until_ns))

    def drop(self, entries: Iterable[HeldElement]) -> None:
        """Elements leave now, and nobody gets them."""
        for entry in entries:
            self.leave(entry, self.now[0])

    def take(self, node: HolderNode, entries: Iterable[HeldElement]) -> None:
        """Elements leave now; the components of one are outputs of a node."""
        for entry in entries:
            self.give(node, entry)
            if entry.run is None:
                self.leave(entry, self.now[0])

    def give(self, node: HolderNode, entry: HeldElement) -> None:
        """The components of an element are outputs of a node."""
        for port, part in zip(node.op.gives, entry.parts, strict=False):
            output, actual = node.first + port, part.output
            if entry.run is not None and not part.is_shared:
                actual = self._single(part, entry.run, entry.first, output)
            if actual != output:
                self._alias[output] = actual
                last = self._last_read
                last[actual] = max(last.get(actual, _BEFORE), last.get(output, _BEFORE))

    def give_and_keep(self, node: HolderNode, entry: HeldElement) -> None:
        """As `give`, but the element stays in its holder; one copy of a run counts as that output from now on."""
        self.give(node, entry)
        if entry.run is not None:
            entry.parts = tuple([self.part(node.first + port) for port in node.op.gives])
            entry.run, entry.first, entry.end = None, 0, 1
            self._holds.update(part.output for part in entry.parts)

    def _single(self, part: HeldTensorPart, run: CopyRun, number: int, output: int) -> int:
        """The output whose buffer a copy has: that of the node to which it is given first."""
        known = self.holdings.single.setdefault((run, part.output), {})
        if number not in known:
            known[number] = output
            self.holdings.begins[output] = run.since_ns
        return known[number]
