"""Steps whose shapes are known: partitions are often simulated again, on other hardware or with other costs.

    simulate(partitions, "gpu:2")                   shapes are inferred, and kept as long as the partitions are
    simulate(partitions, "gpu:2", cost_source=...)  every column of the step is what it was: they are taken as they are

Graphs may change in between, so a step is compared with the one before it, column by column, which takes a small part
of the time of inference. Only feeds that are shapes are compared. What is known of calls of functions is kept, too, and
grows while a step is planned; a function keeps its name and body as long as its library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import is_
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ..analysis.joined import JoinedGraph
from ..arrays import Integers
from ..graph import Graph
from .fed import FedShapes
from .infer import infer_joined
from .inferred import InferredShapes


class _Step(NamedTuple):
    feeds: FedShapes
    assumed_size: int | None
    shapes: InferredShapes


_STEPS: WeakKeyDictionary[Graph, _Step] = WeakKeyDictionary()
"""by the first partition of a step the latest step that began with it"""


def shapes_of_step(
    partitions: Iterable[Graph], graph: JoinedGraph, feeds: FedShapes, *, assumed_size: int | None = None
) -> InferredShapes:
    """`infer_joined` for `graph`, which joins `partitions`: what the latest call inferred, if this step is equal."""
    first = next(iter(partitions), None)
    known = None if first is None else _STEPS.get(first)
    if known is not None and _is_equal(known, graph, feeds, assumed_size):
        shapes = known.shapes.of_equal(graph)
    else:
        shapes = infer_joined(graph, feeds, assumed_size=assumed_size)
    if first is not None and not any(isinstance(feed, np.ndarray) for feed in feeds.values()):
        _STEPS[first] = _Step(feeds, assumed_size, shapes)
    return shapes


def _is_equal(known: _Step, graph: JoinedGraph, feeds: FedShapes, assumed_size: int | None) -> bool:
    """Whether a step is the known one in all that shapes depend on."""
    before = known.shapes.graph
    return (
        known.assumed_size == assumed_size
        and not any(isinstance(feed, np.ndarray) for feed in feeds.values())
        and known.feeds == feeds
        and _are_same(before.kinds, graph.kinds)
        and _are_same(before.functions, graph.functions)
        and _lists(before) == _lists(graph)
        and all(map(np.array_equal, _columns(before), _columns(graph)))
    )


def _are_same(one: Sequence[object], other: Sequence[object]) -> bool:
    """Whether two lists have the same objects, which do not change."""
    return len(one) == len(other) and all(map(is_, one, other))


def _lists(graph: JoinedGraph) -> tuple[object, ...]:
    return graph.names, graph.places, graph.devices, graph.producers, graph.fed_shapes, graph.lowered


def _columns(graph: JoinedGraph) -> tuple[Integers, ...]:
    return (
        *(graph.kind_of, graph.place, graph.device_of, graph.sender),
        *(graph.input_start, graph.input_src, graph.input_output),
        *(graph.control_start, graph.control_src),
    )
