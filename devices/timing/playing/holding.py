"""The memory of a step that has run: its tensors, and the times of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..events import TextColumn
from ..memory.buffers import buffers_of
from ..memory.categories import categories_of
from ..memory.kinds import address_spaces, memory_names
from ..memory.spans import buffer_lives, spans_of
from ..memory.tensors import tensors_of
from ..memory.use import MemoryUse, limits_of
from .blocks import offsets_of
from .played_graph import played_shapes
from .ran import Ran
from .recording import times_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....graph.arrays import Numbers
    from ...cluster import Cluster
    from ..hardware.log import Log
    from ..memory.holder_blocks import Repetition
    from ..memory.spans import HeldSpans
    from ..memory.tensors import OutputShapes
    from .player import Player


def memory_of_player(player: Player, cluster: Cluster) -> MemoryUse:
    """The memory that a step needs which was played without values."""
    ran = [Ran(activation, activation.body, activation.base) for activation in player.activations]
    log = player.log
    offsets_ns = offsets_of(player.folding.pieces(), len(log), np.frombuffer(log.end_ns, np.int64))
    return memory_of(log, ran, cluster, offsets_ns, player.folding.repetitions)


def memory_of(
    log: Log,
    activations: Sequence[Ran],
    cluster: Cluster,
    offsets_ns: tuple[Numbers | int, Numbers | int] = (0, 0),
    repetitions: Sequence[Repetition] = (),
) -> MemoryUse:
    """The memory that a step needs; its devices are those of the cluster.

    `offsets_ns` are added to starts and ends of the log, by entry; `repetitions` are iterations that were not played.
    """
    bodies, bases = zip(*((ran.body, ran.base) for ran in activations), strict=True)
    is_plain = len(bodies) == 1 and bodies[0].gates is None
    shapes: OutputShapes = bodies[0].shapes if is_plain else played_shapes(activations)
    is_copied = np.zeros(bases[-1] + len(bodies[-1]), np.bool_)
    is_copied[[base + n for base, body in zip(bases, bodies, strict=True) for n in body.routes]] = True
    tensors = tensors_of(shapes, cluster.devices, np.concatenate([body.device for body in bodies]), is_copied)
    times = times_of(log, len(is_copied), offsets_ns)
    buffers, copies = buffers_of(tensors, times, np.array(address_spaces(cluster.devices)), repetitions)

    of = buffer_lives(tensors, buffers, copies)

    def spans() -> HeldSpans:
        categories = categories_of(shapes.graph, tensors, buffers, times, _nodes(activations))
        return spans_of(of, tensors, buffers, categories, _names(activations), _iterations(activations))

    return MemoryUse(of.lives, spans, memory_names(cluster.names), limits_of(cluster))


def _names(activations: Sequence[Ran]) -> TextColumn:
    """The names of rows: each has its own."""

    def names() -> list[str]:
        return [prefix + name for ran in activations for prefix in (ran.prefix,) for name in ran.body.graph.names]

    return TextColumn(np.arange(activations[-1].base + len(activations[-1].body)), names)


def _iterations(activations: Sequence[Ran]) -> TextColumn:
    """The iterations in which rows ran."""
    numbers = np.repeat(np.arange(len(activations)), [len(ran.body) for ran in activations])
    return TextColumn(numbers, lambda: [ran.iteration for ran in activations])


def _nodes(activations: Sequence[Ran]) -> Numbers:
    """By row a number that rows of one node have in common: those of its runs."""
    numbers: list[Numbers] = []
    bases, count = dict[int, int](), 0
    for ran in activations:
        body, gates = ran.body, ran.body.gates
        graph = body.graph if gates is None else gates.whole
        nodes = np.arange(len(body)) if gates is None else np.array(gates.nodes, np.int64)
        if id(graph) not in bases:
            bases[id(graph)] = count
            count += len(graph)
        numbers.append(bases[id(graph)] + nodes)
    return np.concatenate(numbers)
