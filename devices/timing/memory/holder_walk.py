"""A walk through what a step does with lists, stacks, arrays and queues, in the order in which its nodes ended.

Elements have no index here: a write at one adds an element until the list is full, and then replaces the oldest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ....graph.arrays import Numbers
from ....graph.ops.record import Holding
from .held import Holdings
from .holder_blocks import Repetition, repeat
from .holder_state import HolderState
from .holders import CopyRun, HeldElement
from .tensors import HolderNode, Tensors
from .times import Times


def holdings_of(tensors: Tensors, times: Times, shares: Numbers, repetitions: Sequence[Repetition]) -> Holdings:
    """What holders mean for the buffers of a step; `repetitions` are iterations that were not played, in order.

    In `shares`, which is resolved, every element that is taken out has a buffer of its own.
    """
    if not tensors.holders:
        return Holdings(shares)
    state = HolderState(tensors, times, shares)
    left = list(reversed(repetitions))
    ran = times.ran()
    nodes = [node for node in tensors.holders if ran[node.node]]
    numbers = np.array([node.node for node in nodes], np.int64)
    end_ns, order = times.end_ns[numbers], times.order[numbers]
    sequence = np.lexsort((order, end_ns))
    columns = sequence.tolist(), end_ns[sequence].tolist(), order[sequence].tolist()
    for k, end, number in zip(*columns, strict=True):
        while left and number >= left[-1].end:
            repeat(state, left.pop())
        state.now = end, number
        _VISITS[nodes[k].op.holding](state, nodes[k])
    while left:
        repeat(state, left.pop())
    return state.finished()


def _make_array(state: HolderState, node: HolderNode) -> None:
    """The elements of this array are read once."""
    state.list_of(node.first).reads_once = True


def _make_gradient(state: HolderState, node: HolderNode) -> None:
    """The array of gradients of an array, for one source."""
    forward = state.used(node)
    key = "gradient", forward.version, node.op.source
    state.gradients[state.actual(node.first)] = key
    holder = state.holder(key)
    holder.of, holder.reads_once = forward, True


def _keep(state: HolderState, node: HolderNode) -> None:
    makespan_ns = state.times.makespan_ns()
    state.holdings.until += [(state.actual(node.inputs[port]), makespan_ns) for port in node.op.puts]


def _put(state: HolderState, node: HolderNode) -> None:
    """Inputs become an element; what is written to an index of an array of gradients twice is added up."""
    holder = state.changed(node)
    if node.op.replaces and not holder.room:
        if holder.of is not None:
            return
        state.drop(holder.take_first(1, state.now[1]))
    state.put(holder, HeldElement(tuple([state.part(node.inputs[port]) for port in node.op.puts])))


def _put_copies(state: HolderState, node: HolderNode) -> None:
    holder = state.changed(node)
    count = node.copied if holder.of is None else min(node.copied, holder.room)
    if not count:
        return
    parts = []
    for port in node.op.puts:
        part = state.part(node.inputs[port])
        output = node.first if node.op.makes_list else part.output
        parts.append(part._replace(output=output, size_bytes=part.size_bytes // node.copied, memory=node.memory))
    if node.op.makes_list and not node.op.lists:
        holder.limit = count
    state.put(holder, HeldElement(tuple(parts), _own_run(state, node), 0, count))


def _own_run(state: HolderState, node: HolderNode) -> CopyRun:
    """A run of copies that the node makes."""
    return state.run(int(state.times.start_ns[node.node]))


def _add(state: HolderState, node: HolderNode) -> None:
    holder = state.changed(node)
    if not holder.entries:
        parts = [state.part(node.inputs[port])._replace(memory=node.memory) for port in node.op.puts]
        state.put(holder, HeldElement(tuple(parts), _own_run(state, node)))


def _take_first(state: HolderState, node: HolderNode) -> None:
    """From a queue without elements an op takes the next one that is put: it waits for it, though not in its time."""
    holder = state.changed(node)
    if not holder.entries:
        holder.waiting.append(node)
        holder.last_wait = state.now[1]
    state.take(node, holder.take_first(1, state.now[1]))


def _take_last(state: HolderState, node: HolderNode) -> None:
    state.take(node, state.changed(node).take_last(1, state.now[1]))


def _take_copies(state: HolderState, node: HolderNode) -> None:
    state.drop(state.changed(node).take_first(node.copied, state.now[1]))


def _drop(state: HolderState, node: HolderNode) -> None:
    state.drop(state.changed(node).take_first(1, state.now[1]))


def _clear(state: HolderState, node: HolderNode) -> None:
    holder = state.used(node)
    state.drop(holder.take_first(len(holder), state.now[1]))


def _read(state: HolderState, node: HolderNode) -> None:
    holder = state.used(node)
    if holder.reads_once:
        state.take(node, holder.take_first(1, state.now[1]))
        return
    entry = holder.next_read()
    if entry is not None:
        state.give_and_keep(node, entry)


def _read_copies(state: HolderState, node: HolderNode) -> None:
    if state.used(node).reads_once:
        _clear(state, node)


def _join(state: HolderState, node: HolderNode) -> None:
    others = [list(state.list_of(node.inputs[port]).entries) for port in node.op.lists[1:]]
    holder = state.changed(node)
    for entries in others:
        for entry in entries:
            state.put(holder, HeldElement(entry.parts, entry.run, entry.first, entry.end))


def _sum(state: HolderState, node: HolderNode) -> None:
    """Elements for which there is no room are added to others: the sums have buffers of their own."""
    others = [state.list_of(node.inputs[port]) for port in node.op.lists[1:]]
    entries = [entry for other in others for entry in other.entries]
    holder = state.changed(node)
    limits = [limit for limit in (holder.limit, *(other.limit for other in others)) if limit is not None]
    holder.limit = max(limits, default=None)
    for entry in entries:
        summed = max(entry.count - holder.room, 0)
        if summed:
            state.drop(holder.take_first(summed, state.now[1]))
            state.put(holder, HeldElement(entry.parts, _own_run(state, node), 0, summed))
        if summed < entry.count:
            state.put(holder, HeldElement(entry.parts, entry.run, entry.first + summed, entry.end))


def _make_alike(state: HolderState, node: HolderNode) -> None:
    source, holder = state.list_of(node.inputs[0]), state.holder(node.first)
    for entry in list(source.entries):
        state.put(holder, HeldElement(entry.parts, _own_run(state, node), 0, entry.count))
    holder.limit = len(holder) if source.limit is None else source.limit


_VISITS: Mapping[Holding | None, Callable[[HolderState, HolderNode], None]] = {
    None: _make_array,
    Holding.PUTS: _put,
    Holding.PUSHES: _put,
    Holding.PUTS_COPIES: _put_copies,
    Holding.ADDS: _add,
    Holding.TAKES_FIRST: _take_first,
    Holding.TAKES_LAST: _take_last,
    Holding.TAKES_COPIES: _take_copies,
    Holding.READS: _read,
    Holding.READS_COPIES: _read_copies,
    Holding.DROPS: _drop,
    Holding.CLEARS: _clear,
    Holding.JOINS: _join,
    Holding.SUMS: _sum,
    Holding.LIKE: _make_alike,
    Holding.GRADIENT: _make_gradient,
    Holding.KEEPS: _keep,
}
