"""A walk through what a step does with lists, stacks, arrays and queues, in the order in which its nodes ended.

A list is a value. An op that adds or takes an element makes the next version of it: in the same holder if nobody else
needs the version before, as TensorFlow does, else in a copy, which shares the elements. Stacks, arrays, queues and
staging areas are objects: they are there until the step ends, and what is left in them then has stayed in use.

Elements have no index here: a write at one adds an element until the list is full, and then replaces the oldest.

After folded iterations every holder changes as much as in the iterations before, so many times more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ....graph.arrays import Numbers
from ....graph.ops.record import Holding
from .held import Holdings, Piece
from .holders import Entry, Holder, Net, Part, Parts, Run
from .tensors import HolderNode, Tensors
from .times import NEVER, Times


class Repetition(NamedTuple):
    """Iterations that were not played: those of the entries `first` to `end` of the log, `runs` times more.

    After them it is `time_ns`.
    """

    first: int
    end: int
    runs: int
    time_ns: int


_Instant = tuple[int, int]
"""a time, and the order in it"""


def holdings_of(tensors: Tensors, times: Times, shares: Numbers, repetitions: Sequence[Repetition]) -> Holdings:
    """`shares` is resolved, but every element that is taken out has itself there."""
    if not tensors.holders:
        return Holdings(shares)
    walk = _Walk(tensors, times, shares)
    walk.go(repetitions)
    return walk.result()


class _Walk:
    def __init__(self, tensors: Tensors, times: Times, shares: Numbers) -> None:
        self.tensors = tensors
        self.times = times
        self.shares = shares
        self.held = Holdings(shares)
        self.holders: dict[Hashable, Holder] = {}  # lists by their output, objects by what tells them apart
        self._objects: dict[int, Hashable] = {}  # arrays of gradients by their handle
        self._alias: dict[int, int] = {}  # elements that were taken out: the output whose buffer they have
        self._holds = Counter[int]()  # by output: in how many holders it is
        self._runs = 0
        self._last_read = self._last_reads()
        self._now: _Instant = NEVER, NEVER

    def _last_reads(self) -> dict[int, _Instant]:
        """By list when the last op that reads it ended."""
        reads, times = self.tensors.reads, self.times
        output = self.shares[reads.this]
        of_list = np.flatnonzero(self.tensors.is_list[output] & times.ran()[reads.that])
        node = reads.that[of_list]
        columns = output[of_list].tolist(), times.end_ns[node].tolist(), times.order[node].tolist()
        last: dict[int, _Instant] = {}
        for list_, *instant in zip(*columns, strict=True):
            last[list_] = max(last.get(list_, self._before), (instant[0], instant[1]))
        return last

    _before = NEVER, NEVER

    def go(self, repetitions: Sequence[Repetition]) -> None:
        """Visits all nodes."""
        left = list(reversed(repetitions))
        ran = self.times.ran()
        nodes = [node for node in self.tensors.holders if ran[node.node]]
        numbers = np.array([node.node for node in nodes], np.int64)
        end_ns, order = self.times.end_ns[numbers], self.times.order[numbers]
        sequence = np.lexsort((order, end_ns)).tolist()
        for k, *now in zip(sequence, end_ns[sequence].tolist(), order[sequence].tolist(), strict=True):
            while left and now[1] >= left[-1].end:
                self._repeat(left.pop())
            self._now = now[0], now[1]
            _VISITS[nodes[k].op.holding](self, nodes[k])
        while left:
            self._repeat(left.pop())

    def result(self) -> Holdings:
        """What the holders have meant, once all nodes are visited."""
        is_list, makespan_ns = self.tensors.is_list, self.times.makespan_ns()
        for version, holder in self.holders.items():
            list_ = version if isinstance(version, int) and is_list[version] else -1
            for entry in holder.entries:
                self._leave(entry, makespan_ns, list_)
        self.held.shares = self.shares.copy()
        self.held.shares[list(self._alias)] = list(self._alias.values())
        return self.held

    # Holders

    def _actual(self, output: int) -> int:
        """The output whose buffer an output has, as far as it is known by now."""
        output = int(self.shares[output])
        while output in self._alias:
            output = self._alias[output]
        return output

    def _holder(self, version: Hashable) -> Holder:
        holder = self.holders.get(version)
        if holder is None:
            born = int(self.times.order[self.tensors.node[version]]) if isinstance(version, int) else NEVER
            holder = self.holders[version] = Holder(version, born)
        return holder

    def _used(self, node: HolderNode) -> Holder:
        """The list, as it stays, or the object that a node uses."""
        if node.op.area is not None:
            return self._holder((node.op.area, node.memory))
        if not node.op.has_holder:
            return self._holder(("of its own", node.node))
        handle = self._actual(node.inputs[0])
        return self._holder(self._objects.get(handle, handle))

    def _changed(self, node: HolderNode) -> Holder:
        """The object that a node changes, or the next version of the list that it gets."""
        op, output = node.op, node.first
        if not op.makes_list:
            return self._used(node)
        if not op.lists:
            return self._holder(output)
        before = self._actual(node.inputs[op.lists[0]])
        holder = self._holder(before)
        if self._last_read.get(before, self._before) <= self._now and not self._holds[before]:
            del self.holders[before]
            holder.version = output
        else:
            holder = holder.copied(output)
            self._holds.update(part.output for entry in holder.entries if entry.run is None for part in entry.parts)
        self.holders[output] = holder
        return holder

    # Elements

    def _part(self, output: int) -> Part:
        output = self._actual(output)
        return Part(output, int(self.tensors.size_bytes[output]), int(self.tensors.memory[output]))

    def _run(self, since_ns: int) -> Run:
        self._runs += 1
        return Run(since_ns, self._runs)

    def _put(self, holder: Holder, entry: Entry) -> None:
        holder.put(entry, self._now[1])
        if entry.run is None:
            self._holds.update(part.output for part in entry.parts)

    def _leave(self, entry: Entry, until_ns: int, list_: int = -1) -> None:
        """An element, or copies, that nobody has taken leave at a time, or with a list."""
        for part in entry.parts:
            if entry.run is not None:
                self.held.add(Piece(part, entry.run, entry.first, entry.end, until_ns, list_))
            elif list_ >= 0:
                self.held.inside.append((part.output, list_))
            else:
                self._holds[part.output] -= 1
                self.held.until.append((part.output, until_ns))

    def _drop(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._leave(entry, self._now[0])

    def _give(self, node: HolderNode, entry: Entry) -> None:
        """The components of an element are outputs of a node."""
        for port, part in zip(node.op.gives, entry.parts, strict=False):
            output = node.first + port
            actual = part.output
            if entry.run is not None and not part.is_shared:
                actual = self._single(part, entry.run, entry.first, output)
            if actual != output:
                self._alias[output] = actual
                last = self._last_read
                last[actual] = max(last.get(actual, self._before), last.get(output, self._before))

    def _single(self, part: Part, run: Run, number: int, output: int) -> int:
        """The output whose buffer a copy has: that of the node to which it is given first."""
        known = self.held.single.setdefault((run, part.output), {})
        if number not in known:
            known[number] = output
            self.held.begins[output] = run.since_ns
            if part.inner:
                holder = self.holders[output] = Holder(output, self._now[1])
                for parts, count in part.inner:
                    self._put(holder, Entry(parts, self._run(run.since_ns), 0, count))
        return known[number]

    # Visits

    def array(self, node: HolderNode) -> None:
        """Elements of this array are read once."""
        self._holder(self._actual(node.first)).reads_once = True

    def gradient(self, node: HolderNode) -> None:
        """The array of gradients of an array."""
        forward = self._used(node)
        key = "gradient", id(forward), node.op.source
        self._objects[self._actual(node.first)] = key
        holder = self._holder(key)
        holder.of, holder.reads_once = forward, True

    def keep(self, node: HolderNode) -> None:
        """Inputs are kept longer than the step."""
        self.held.until += [(self._actual(node.inputs[port]), self.times.makespan_ns()) for port in node.op.puts]

    def put(self, node: HolderNode) -> None:
        """Inputs become an element; what is written to an index of an array of gradients twice is added up."""
        holder = self._changed(node)
        if node.op.replaces and not holder.room:
            if holder.of is not None:
                return
            self._drop(holder.take_first(1, self._now[1]))
        self._put(holder, Entry(tuple([self._part(node.inputs[port]) for port in node.op.puts])))

    def put_copies(self, node: HolderNode) -> None:
        """Rows of inputs are copied."""
        holder = self._changed(node)
        count = min(node.count, holder.room) if holder.of is not None else node.count
        if not count:
            return
        parts = []
        for port in node.op.puts:
            like = self._part(node.inputs[port])
            output = node.first if node.op.makes_list else like.output
            parts.append(Part(output, like.size_bytes // node.count, node.memory))
        if node.op.makes_list and not node.op.lists:
            holder.limit = count
        self._put(holder, Entry(tuple(parts), self._run(int(self.times.start_ns[node.node])), 0, count))

    def add(self, node: HolderNode) -> None:
        """The first input is copied, later ones are added to it."""
        holder = self._changed(node)
        if not holder.entries:
            parts = [self._part(node.inputs[port])._replace(memory=node.memory) for port in node.op.puts]
            self._put(holder, Entry(tuple(parts), self._run(int(self.times.start_ns[node.node]))))

    def take_first(self, node: HolderNode) -> None:
        """The oldest element leaves."""
        self._take(node, self._changed(node).take_first(1, self._now[1]))

    def take_last(self, node: HolderNode) -> None:
        """The newest element leaves."""
        self._take(node, self._changed(node).take_last(1, self._now[1]))

    def _take(self, node: HolderNode, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._give(node, entry)
            if entry.run is None:
                self._leave(entry, self._now[0])

    def take_copies(self, node: HolderNode) -> None:
        """Several elements leave, which have been copied."""
        self._drop(self._changed(node).take_first(node.count, self._now[1]))

    def drop(self, node: HolderNode) -> None:
        """An element leaves."""
        self._drop(self._changed(node).take_first(1, self._now[1]))

    def clear(self, node: HolderNode) -> None:
        """All elements leave."""
        holder = self._used(node)
        self._drop(holder.take_first(len(holder), self._now[1]))

    def read(self, node: HolderNode) -> None:
        """An element is read: for the only time, or it stays."""
        holder = self._used(node)
        if holder.reads_once:
            self._take(node, holder.take_first(1, self._now[1]))
            return
        entry = holder.next_read()
        if entry is None:
            return
        self._give(node, entry)
        if entry.run is not None:  # from now on it is an output
            entry.parts = tuple([self._part(node.first + port) for port in node.op.gives])
            entry.run = None
            self._holds.update(part.output for part in entry.parts)

    def read_copies(self, node: HolderNode) -> None:
        """All elements are copied."""
        if self._used(node).reads_once:
            self.clear(node)

    def join(self, node: HolderNode) -> None:
        """Elements of further lists are added."""
        holder = self._changed(node)
        others = [self._holder(self._actual(node.inputs[port])) for port in node.op.lists[1:]]
        for other in others:
            for entry in list(other.entries):
                self._put(holder, Entry(entry.parts, entry.run, entry.first, entry.end))

    def sum(self, node: HolderNode) -> None:
        """The same, but so many elements as there is no room for are added to others, in buffers of their own."""
        others = [self._holder(self._actual(node.inputs[port])) for port in node.op.lists[1:]]
        entries = [(entry, other.limit) for other in others for entry in list(other.entries)]
        holder = self._changed(node)
        limits = [limit for limit in (holder.limit, *(other.limit for other in others)) if limit is not None]
        holder.limit = max(limits, default=None)
        for entry, _ in entries:
            alike = min(max(entry.count - holder.room, 0), entry.count)
            if alike:
                self._drop(holder.take_first(alike, self._now[1]))
                self._put(holder, Entry(entry.parts, self._run(int(self.times.start_ns[node.node])), 0, alike))
            if alike < entry.count:
                self._put(holder, Entry(entry.parts, entry.run, entry.first + alike, entry.end))

    def like(self, node: HolderNode) -> None:
        """A list of zeros."""
        source, holder = self._holder(self._actual(node.inputs[0])), self._holder(node.first)
        for entry in list(source.entries):
            run = self._run(int(self.times.start_ns[node.node]))
            self._put(holder, Entry(entry.parts, run, 0, entry.count))
        holder.limit = len(holder) if source.limit is None else source.limit

    # Blocks

    def _repeat(self, block: Repetition) -> None:
        run = self._run(block.time_ns)
        self._now = block.time_ns, block.end - 1
        for holder in list(self.holders.values()):
            if holder.born < block.first and holder.journal and holder.journal[-1][0] >= block.first:
                self._repeat_in(holder, block, run)

    def _repeat_in(self, holder: Holder, block: Repetition, run: Run) -> None:
        """A holder changes as in the iterations before."""
        order, net = self._now[1], holder.changes_since(block.first)
        if net.from_front:
            if net.growth:
                self._put_run(holder, net.more, block, run)
                self._drop(holder.take_first(net.from_front * block.runs, order))
        elif net.growth > 0:
            more = Net(more=list(net.more))
            more.add("last", (), net.from_end)
            self._put_run(holder, more.more, block, run)
        elif net.growth < 0:
            newest = list(holder.take_last(sum(count for _, count in net.more), order))
            self._drop(holder.take_last(-net.growth * block.runs, order))
            for entry in reversed(newest):
                holder.put(entry, order)

    def _put_run(self, holder: Holder, more: Sequence[tuple[Parts, int]], block: Repetition, run: Run) -> None:
        before = holder.outputs_put_before(block.first)
        elements = [(tuple([self._copied(part, before) for part in parts]), count) for parts, count in more]
        if len(elements) == 1:
            ((parts, count),) = elements
            self._put(holder, Entry(parts, run, 0, count * block.runs))
            return
        for number in range(block.runs):
            for parts, count in elements:
                self._put(holder, Entry(parts, run, number * count, (number + 1) * count))

    def _copied(self, part: Part, before: set[int]) -> Part:
        """The part of a copy: a tensor of the same kind, or the same tensor again."""
        return part._replace(is_shared=self._is_the_same(part.output, before), inner=self._inner(part))

    def _is_the_same(self, output: int, before: set[int]) -> bool:
        return output in before or bool(self.tensors.is_fixed[output])

    def _inner(self, part: Part) -> tuple[tuple[Parts, int], ...]:
        """What is in a part that is a list, or the handle of an object."""
        holder = self.holders.get(self._objects.get(part.output, part.output))
        if holder is None or part.inner:
            return part.inner
        return tuple(
            (tuple([inner._replace(inner=self._inner(inner)) for inner in entry.parts]), entry.count)
            for entry in holder.entries
        )


_VISITS: dict[Holding | None, Callable[[_Walk, HolderNode], None]] = {
    None: _Walk.array,
    Holding.PUTS: _Walk.put,
    Holding.PUSHES: _Walk.put,
    Holding.PUTS_COPIES: _Walk.put_copies,
    Holding.ADDS: _Walk.add,
    Holding.TAKES_FIRST: _Walk.take_first,
    Holding.TAKES_LAST: _Walk.take_last,
    Holding.TAKES_COPIES: _Walk.take_copies,
    Holding.READS: _Walk.read,
    Holding.READS_COPIES: _Walk.read_copies,
    Holding.DROPS: _Walk.drop,
    Holding.CLEARS: _Walk.clear,
    Holding.JOINS: _Walk.join,
    Holding.SUMS: _Walk.sum,
    Holding.LIKE: _Walk.like,
    Holding.GRADIENT: _Walk.gradient,
    Holding.KEEPS: _Walk.keep,
}
