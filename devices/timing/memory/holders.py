"""A holder of tensors: the elements of a list, a stack, an array or a queue, while a step goes on.

Elements are counted, not looked up by index: equal places of a loop put equal tensors. Those that a block of folded
iterations has put are one *run* of copies, of which single ones, or many at once, are taken:

    3 iterations put a, b, c; a block of 95 more like the last; the last two put d, e

    entries     a   b   c   c x 95   d   e
    take last 4 times, then 80 at once: what is left is    a   b   c   c x 13 (numbers 0 to 12)

A `journal` has what was put and taken, so that a block can be repeated without being played.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from .tensors import HolderNode


class HeldTensorPart(NamedTuple):
    """A tensor in a holder: a component of an element.

    `output` is the output whose buffer it has, or for a copy the one that it is like.
    """

    output: int
    size_bytes: int
    memory: int
    is_shared: bool = False
    """whether every iteration of a block puts in this same tensor, and none a copy"""


HeldParts = tuple[HeldTensorPart, ...]
"""the components of an element"""


class CopyRun(NamedTuple):
    """Copies that come into being together: the time, and a number that tells runs apart."""

    since_ns: int
    number: int


@dataclass(slots=True)
class HeldElement:
    """One element; or with a run the copies `first` to `end` of it, which are elements."""

    parts: HeldParts
    run: CopyRun | None = None
    first: int = 0
    end: int = 1

    @property
    def count(self) -> int:
        """The number of elements."""
        return self.end - self.first


_MANY = 1 << 60

Change = tuple[int, Literal["put", "last", "first"], HeldParts, int]
"""at which entry of the log how many elements were put (with what parts), or taken from which end"""


@dataclass(eq=False, slots=True)
class Holder:
    """The elements of one holder; `born` is the entry of the log at which it came into being."""

    version: Hashable
    """the output that is the list as it is now, or what tells the object apart"""
    born: int = -1
    entries: deque[HeldElement] = field(default_factory=deque)
    limit: int | None = None
    """so many elements fit; a further one replaces the oldest"""
    reads_once: bool = False
    journal: list[Change] = field(default_factory=list)
    put_in_all: int = 0
    of: Holder | None = None
    """the array of whose gradients this is one"""
    cursor: int = 0
    waiting: deque[HolderNode] = field(default_factory=deque)
    """ops that wait for an element"""
    last_wait: int = -1
    """the entry of the log at which these changed last"""

    def __len__(self) -> int:
        return sum(entry.count for entry in self.entries)

    @property
    def room(self) -> int:
        """How many elements more fit."""
        limit = self.limit if self.of is None else self.of.put_in_all
        return _MANY if limit is None else max(limit - len(self), 0)

    def put(self, entry: HeldElement, order: int) -> None:
        """Adds an element, or a run, at the end."""
        self.entries.append(entry)
        self.put_in_all += entry.count
        self.journal.append((order, "put", entry.parts, entry.count))

    def take_last(self, count: int, order: int) -> Iterator[HeldElement]:
        """Takes so many elements, or all that there are, from the end on; of runs pieces."""
        self.journal.append((order, "last", (), count))
        while count and self.entries:
            entry = self.entries[-1]
            if entry.count <= count:
                self.entries.pop()
            else:
                entry.end -= count
                entry = HeldElement(entry.parts, entry.run, entry.end, entry.end + count)
            count -= entry.count
            yield entry

    def take_first(self, count: int, order: int) -> Iterator[HeldElement]:
        """As `take_last`, from the front on."""
        self.journal.append((order, "first", (), count))
        while count and self.entries:
            entry = self.entries[0]
            if entry.count <= count:
                self.entries.popleft()
                self.cursor = max(0, self.cursor - 1)
            else:
                entry.first += count
                entry = HeldElement(entry.parts, entry.run, entry.first - count, entry.first)
            count -= entry.count
            yield entry

    def next_read(self) -> HeldElement | None:
        """The element that a read finds, in turns; of a run one copy, which becomes an entry of its own."""
        if not self.entries:
            return None
        at = self.cursor % len(self.entries)
        self.cursor = at + 1
        entry = self.entries[at]
        if entry.count > 1:
            single = HeldElement(entry.parts, entry.run, entry.first, entry.first + 1)
            entry.first += 1
            self.entries.insert(at, single)
            return single
        return entry

    def copied(self, version: Hashable) -> Holder:
        """Another list with the same elements; it goes on with the journal."""
        return replace(
            self,
            version=version,
            entries=deque(replace(entry) for entry in self.entries),
            journal=list(self.journal),
        )

    def changed_since(self, order: int) -> bool:
        """Whether it has changed, or an op has waited for it, since an entry of the log."""
        return (bool(self.journal) and self.journal[-1][0] >= order) or self.last_wait >= order

    def changes_since(self, order: int) -> Net:
        """What has changed since an entry of the log."""
        net = Net()
        for at, what, parts, count in self.journal:
            if at >= order:
                net.add(what, parts, count)
        return net

    def outputs_put_before(self, order: int) -> set[int]:
        """The outputs that were put in before an entry of the log."""
        return {part.output for at, _, parts, _ in self.journal if at < order for part in parts}


@dataclass(slots=True)
class Net:
    """What is left of puts and takes: so many elements less at the front and at the end, then these more."""

    from_front: int = 0
    from_end: int = 0
    more: list[tuple[HeldParts, int]] = field(default_factory=list)

    def add(self, what: str, parts: HeldParts, count: int) -> None:
        """Goes on with a change."""
        if what == "put":
            self.more.append((parts, count))
        elif what == "first":
            self.from_front += count
        else:
            while count and self.more:
                last, there = self.more.pop()
                if there > count:
                    self.more.append((last, there - count))
                count -= min(there, count)
            self.from_end += count

    @property
    def growth(self) -> int:
        """How many elements more there are."""
        return sum(count for _, count in self.more) - self.from_front - self.from_end
