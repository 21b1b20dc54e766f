"""What lists, stacks, arrays and queues hold: until when, and which buffers their elements are.

Nothing that is put in is copied: the buffer is needed until the element has been taken out and all its readers have
ended, or until the holder goes. For a = Exp(x) -> l = PushBack(empty, a) -> ... -> (m, b) = PopBack(l) -> c = Exp(b):

    output       a                 l               b
    buffer       a                 l               a
    in use       from Exp on       until PopBack   until the end of the second Exp, which writes into it

Elements that were copied, and those of folded iterations, are buffers of no output of a node: they are listed apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ....graph.arrays import Numbers
from .holders import CopyRun, HeldTensorPart
from .times import NEVER

_Copied = tuple[CopyRun, int]
"""a run, and what its copies are like"""


class Copies(NamedTuple):
    """Buffers that are the outputs of no node, by row; `output` is what they are like."""

    output: Numbers
    memory: Numbers
    size_bytes: Numbers
    start_ns: Numbers
    end_ns: Numbers


class Piece(NamedTuple):
    """The copies `first` to `end` of one tensor of a run: they are needed until a time, or as long as a list is.

    `list_` is the output that is the list, -1 for none.
    """

    part: HeldTensorPart
    run: CopyRun
    first: int
    end: int
    until_ns: int
    list_: int = -1


@dataclass(slots=True)
class Holdings:
    """What a step has put into holders."""

    shares: Numbers
    """by output: whose buffer it has, with elements that are taken out sharing those that were put in"""
    begins: dict[int, int] = field(default_factory=dict)
    """outputs whose buffer was there before their op began, as an element: since when"""
    until: list[tuple[int, int]] = field(default_factory=list)
    """an output and a time until which a holder needed it"""
    inside: list[tuple[int, int]] = field(default_factory=list)
    """an output and a list that has it as long as there is the list"""
    pieces: list[Piece] = field(default_factory=list)
    single: dict[_Copied, dict[int, int]] = field(default_factory=dict)
    """copies that are outputs of nodes by now, by number"""

    def add(self, piece: Piece) -> None:
        """Adds copies. For those that are outputs of nodes by now, these outputs are needed as long instead."""
        single = self.single.get((piece.run, piece.part.output), {})
        outputs = [single[number] for number in single if piece.first <= number < piece.end]
        if piece.part.is_shared:
            outputs = [piece.part.output]
        for output in outputs:
            if piece.list_ >= 0:
                self.inside.append((output, piece.list_))
            else:
                self.until.append((output, piece.until_ns))
        if not piece.part.is_shared:
            self.pieces.append(piece)

    def until_ns(self, end_ns: Numbers) -> Numbers:
        """By output until when holders need it, NEVER where none does; `end_ns` is when its last reader ends."""
        until = np.full(len(end_ns), NEVER)
        if self.until:
            output, time_ns = np.array(self.until, np.int64).T
            np.maximum.at(until, output, time_ns)
        if self.inside:
            output, list_ = np.array(self.inside, np.int64).T
            before = None
            while before is None or not np.array_equal(before, until):  # once more for each level of lists of lists
                before = until.copy()
                np.maximum.at(until, output, np.maximum(end_ns, until)[list_])
        return until

    def copies(self, end_ns: Numbers) -> Copies:
        """The buffers of no output; `end_ns` is when the last need of each output ends."""
        groups: dict[_Copied, list[Piece]] = defaultdict(list)
        for piece in self.pieces:
            groups[piece.run, piece.part.output].append(piece)
        rows = [
            (part.output, part.memory, count * part.size_bytes, run.since_ns, end)
            for (run, like), pieces in groups.items()
            for count, end in _lives(pieces, end_ns, self.single.get((run, like), {}))
            if end > run.since_ns
            for part in (pieces[0].part,)
            if part.size_bytes
        ]
        return Copies(*np.array(rows, np.int64).reshape(-1, len(Copies._fields)).T)


def _lives(pieces: Sequence[Piece], end_ns: Numbers, single: dict[int, int]) -> Iterator[tuple[int, int]]:
    """(count, end) of the copies in these pieces, each counted once and as long as one of them needs it."""
    ends = [piece.until_ns if piece.list_ < 0 else int(end_ns[piece.list_]) for piece in pieces]
    bounds = sorted({bound for piece in pieces for bound in (piece.first, piece.end)})
    for first, last in pairwise(bounds):
        count = last - first - sum(first <= number < last for number in single)
        needs = [end for piece, end in zip(pieces, ends, strict=True) if piece.first <= first and last <= piece.end]
        if needs and count:
            yield count, max(needs)
