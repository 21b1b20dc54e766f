"""What is in the buffers of a step, and from when to when: a row for each tensor in each buffer.

A buffer that an op writes in place holds one tensor after the other. For x (fed) -> a = Exp(x) -> b = Exp(a), 10 ns
each, where b is written into the buffer of a, which lives from 0 to 20:

    row    start   end    node   output
    0      0       10     x      0
    1      0       10     a      0
    2      10      20     b      0          the same buffer as row 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..events import TextColumn
from .peaks import Lives

if TYPE_CHECKING:
    from ....graph.arrays import Numbers
    from .buffers import Buffers
    from .held import Copies
    from .tensors import Tensors


class HeldSpans(NamedTuple):
    """Tensors in buffers, by row, in order of nodes and outputs: in which memory, from when to when, how large.

    `memory` is numbered as in `kinds.py`, `output` is the number among the outputs of the node, `category` indexes
    `MEMORY_CATEGORIES`. No row has 0 ns or 0 bytes.
    """

    memory: Numbers
    start_ns: Numbers
    end_ns: Numbers
    size_bytes: Numbers
    node: TextColumn
    output: Numbers
    category: Numbers
    iteration: TextColumn

    @property
    def lives(self) -> Lives:
        """Rows as buffers: of which as many bytes are in use at any instant."""
        return Lives(self.memory, self.start_ns, self.end_ns, self.size_bytes)


class BufferLives(NamedTuple):
    """Buffers by row, those that are outputs of nodes before copies; `output` is the output, or what a copy is like."""

    lives: Lives
    output: Numbers
    num_buffers: int


def buffer_lives(tensors: Tensors, buffers: Buffers, copies: Copies) -> BufferLives:
    """The buffers of a step."""
    own = np.flatnonzero(buffers.buffer == np.arange(len(buffers.buffer)))
    of_buffers = tensors.memory[own], buffers.start_ns[own], buffers.end_ns[own], buffers.size_bytes[own]
    of_copies = copies.memory, copies.start_ns, copies.end_ns, copies.size_bytes
    lives = Lives(*map(np.concatenate, zip(of_buffers, of_copies, strict=True)))
    return BufferLives(lives, np.concatenate([own, copies.output]), len(own))


def spans_of(
    of: BufferLives,
    tensors: Tensors,
    buffers: Buffers,
    categories: Numbers,
    names: TextColumn,
    iterations: TextColumn,
) -> HeldSpans:
    """The tensors in these buffers; `categories` are by output, `names` and `iterations` by node."""
    life, output, start_ns, end_ns = _written(of, buffers)
    size_bytes = of.lives.size_bytes[life]
    # A buffer holds what was written last before it is needed; of two writes at one instant the later one.
    start_ns, end_ns = np.maximum(start_ns, of.lives.start_ns[life]), np.minimum(end_ns, of.lives.end_ns[life])
    rows = np.flatnonzero((start_ns < end_ns) & (size_bytes > 0))
    rows = rows[np.lexsort((life[rows], output[rows]))]
    life, output = life[rows], output[rows]
    node = tensors.node[output]
    return HeldSpans(
        memory=of.lives.memory[life],
        start_ns=start_ns[rows],
        end_ns=end_ns[rows],
        size_bytes=size_bytes[rows],
        node=TextColumn(names.numbers[node], names.make_texts),
        output=tensors.port[output],
        category=categories[output],
        iteration=TextColumn(iterations.numbers[node], iterations.make_texts),
    )


def _written(of: BufferLives, buffers: Buffers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """By row a life, an output in it, and from when to when it is the one that was written last."""
    life_of = np.full(len(buffers.buffer), -1)
    life_of[of.output[: of.num_buffers]] = np.arange(of.num_buffers)
    writes = np.flatnonzero(buffers.is_written)
    writes = writes[np.lexsort((writes, buffers.start_ns[writes], buffers.buffer[writes]))]
    # Before its first write a buffer holds the output that it is named after.
    life = np.concatenate([np.arange(len(of.output)), life_of[buffers.buffer[writes]]])
    output = np.concatenate([of.output, writes])
    start_ns = np.concatenate([np.full(len(of.output), np.iinfo(np.int64).min), buffers.start_ns[writes]])
    order = np.argsort(life, kind="stable")
    life, output, start_ns = life[order], output[order], start_ns[order]
    end_ns = np.append(start_ns[1:], 0)
    end_ns[np.append(life[1:] != life[:-1], True)[: len(life)]] = np.iinfo(np.int64).max
    return life, output, start_ns, end_ns
