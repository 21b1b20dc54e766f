"""From the tensors of a step and the times of its nodes to buffers: from when to when which bytes are in use.

A buffer lives from the start of its producer (of the copy, for a received tensor) to the end of the last op that reads
it or a view of it, and at least until its producer ends. Constants and variables live for the whole step.

An elementwise op writes into an input if that is no constant, variable or fed tensor, no list or queue has it, and all
other readers have ended when the op starts; the first such input is taken. Of several ops that could write into one
buffer at the same instant the one with the highest number does. For x (fed) -> a = Exp(x) -> b = Exp(a), 10 ns each:

    output          x         a          b
    in use (ns)     0 .. 10   0 .. 20    10 .. 20
    buffer          x         a          a             x from 0 to 10, a from 0 to 20
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....graph.arrays import Flags, Numbers
from .contents import contents_of
from .held import Copies
from .holder_blocks import Repetition
from .holder_walk import holdings_of
from .tensors import Pairs, Tensors, resolved
from .times import NEVER, Times


@dataclass(frozen=True, slots=True)
class Buffers:
    """Columns by output. An output with `buffer[i] == i` has a buffer of its own, which alone has a life and a size."""

    buffer: Numbers
    """the output whose buffer it has"""
    shares: Numbers
    """the output of which it is a view, or an element: as `buffer`, but that nothing was written in place"""
    is_written: Flags
    """whether it is written into its buffer, as views are not"""
    start_ns: Numbers
    end_ns: Numbers
    size_bytes: Numbers


def buffers_of(
    tensors: Tensors, times: Times, spaces: Numbers, repetitions: Sequence[Repetition] = ()
) -> tuple[Buffers, Copies]:
    """The buffers of a step, and those that are outputs of no node; `spaces` has the address space of every memory.

    `repetitions` are iterations that were not played, in order.
    """
    ran = times.ran()
    owners = resolved(_merged(tensors, times))
    contents = contents_of(tensors, times, owners)
    holdings = holdings_of(tensors, times, resolved(contents.shares), repetitions)
    shares = resolved(holdings.shares)
    is_read = ran[tensors.reads.that] & ~contents.is_assigned[owners[tensors.reads.this]]
    reads = Pairs(shares[tensors.reads.this[is_read]], tensors.reads.that[is_read])
    is_fixed = tensors.is_fixed.copy()
    is_fixed[reads.this[tensors.returns[is_read]]] = True
    is_fixed[shares[contents.values]] = True

    end_ns = times.end_ns[tensors.node]
    np.maximum.at(end_ns, reads.this, times.end_ns[reads.that])
    held_ns = holdings.until_ns(end_ns)
    buffer = resolved(_replaced(tensors, times, shares, reads, is_fixed, spaces, held_ns))
    end_ns = np.maximum(end_ns, held_ns)
    copies = holdings.copies(end_ns)
    for output, until in contents.used_until:
        end_ns[shares[output]] = max(end_ns[shares[output]], until)
    np.maximum.at(end_ns, buffer, end_ns.copy())
    lasting = tensors.is_lasting & ~contents.is_assigned
    end_ns[lasting] = times.makespan_ns()
    start_ns = np.where(tensors.is_lasting, 0, times.start_ns[tensors.node])
    start_ns[list(holdings.begins)] = list(holdings.begins.values())
    exists = np.zeros(len(buffer), np.bool_)
    exists[buffer[ran[tensors.node]]] = True
    exists &= contents.had_content | ~tensors.is_variable
    is_written = (shares == np.arange(len(shares))) & ran[tensors.node]
    return Buffers(buffer, shares, is_written, start_ns, end_ns, np.where(exists, tensors.size_bytes, 0)), copies


def _merged(tensors: Tensors, times: Times) -> Numbers:
    """Every Merge shares the buffer of the input that came first, of several the one with the lowest number."""
    shares = tensors.shares.copy()
    merge, of = tensors.merges
    node = tensors.node[of]
    arrived = times.ran()[node] & times.ran()[tensors.node[merge]]
    merge, of, end_ns = merge[arrived], of[arrived], times.end_ns[node[arrived]]
    order = np.lexsort((-of, -end_ns))  # the last one that is written stays
    shares[merge[order]] = of[order]
    return shares


def _replaced(
    tensors: Tensors,
    times: Times,
    shares: Numbers,
    reads: Pairs,
    is_fixed: Flags,
    spaces: Numbers,
    held_ns: Numbers,
) -> Numbers:
    """`shares`, with every output that is written into an input sharing the buffer of that input."""
    output, of = tensors.may_replace
    target, op = shares[of], tensors.node[output]
    is_possible = (
        ~is_fixed[target]
        & (spaces[tensors.memory[target]] == spaces[tensors.memory[output]])
        & (tensors.size_bytes[target] == tensors.size_bytes[output])
    )
    output, target, op = output[is_possible], target[is_possible], op[is_possible]
    last, others_end_ns = _last_readers(reads, times, len(shares))
    others_end_ns = np.maximum(others_end_ns, held_ns)
    start_ns = times.start_ns[op]
    produced_ns = times.end_ns[tensors.node[target]]
    is_free = (last[target] == op) & (others_end_ns[target] <= start_ns) & (produced_ns <= start_ns)
    output, target = output[is_free], target[is_free]
    replaced = shares.copy()
    replaced[output[::-1]] = target[::-1]  # so that the first input of an op is written last, and stays
    return replaced


def _last_readers(reads: Pairs, times: Times, count: int) -> tuple[Numbers, Numbers]:
    """By output, the reader that ends last, of several the one with the highest number; and when all others have ended.

    NEVER where there is none.
    """
    end_ns = times.end_ns[reads.that]
    latest, last, others = (np.full(count, NEVER) for _ in range(3))
    np.maximum.at(latest, reads.this, end_ns)
    is_latest = end_ns == latest[reads.this]
    np.maximum.at(last, reads.this[is_latest], reads.that[is_latest])
    is_other = reads.that != last[reads.this]
    np.maximum.at(others, reads.this[is_other], end_ns[is_other])
    return last, others
