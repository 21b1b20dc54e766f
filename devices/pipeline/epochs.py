"""When nodes start, for cutting with scheduled receives: guessed, or taken from a timeline.

The guess is the earliest start by the cost model of the graph. Start times of a timeline are those of an earlier cut:
they name its Send and Recv nodes, which a new cut does not have yet, and lack what had no event, such as a node on a
branch that was not taken. Names that the graph lacks are passed over.

No node starts before one that it depends on, so a node without a time starts with the last of its producers:

    x -> a -> b -> y    given {"x": 5, "b": 40, "y": 30, "x/_0": 6}    becomes {"x": 5, "a": 5, "b": 40, "y": 40}

Otherwise two devices could wait for each other: one holds back a receive until a node has run which needs, by way of
the other device, the tensor that is held back. The guess breaks that rule behind a Merge, whose first input counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import TypeAlias

from ...errors import InvalidArgumentError, shown
from ...graph.graph import Graph
from ...graph.printer import topological_order

RecvEpochs: TypeAlias = bool | Mapping[str, int]
"""whether to schedule receives, by guessed start times; or start times by node name, in microseconds"""

_LATEST = 2**63 - 1  # of a time in an attr
_GIVE = (
    "give True for guessed start times, or node names with whole microseconds, as partita.devices.timing.start_times"
)


def start_times_of(graph: Graph, epochs: RecvEpochs) -> dict[str, int]:
    """Node name -> start in microseconds of every node of a placed graph.

    Raises InvalidArgumentError for what is no `RecvEpochs`, and for times of which none is that of a node of the graph.
    """
    if epochs is True:
        from ...graph.analysis.schedule import start_times as guessed_start_times  # few sessions schedule receives

        return _in_order(graph, guessed_start_times(graph))
    if not isinstance(epochs, Mapping):
        raise InvalidArgumentError(f"recv_epochs: {shown(epochs)} is a {type(epochs).__name__}; {_GIVE}")
    given = {_name(name): _time(name, time) for name, time in epochs.items()}
    if not any(name in given for name in graph.names() if name is not None):
        names = ", ".join(map(repr, list(given)[:3])) or "nothing"
        raise InvalidArgumentError(f"recv_epochs: start times of {names} are of no node that is cut; {_GIVE}")
    return _in_order(graph, given)


def _name(name: object) -> str:
    if isinstance(name, str):
        return name
    raise InvalidArgumentError(f"recv_epochs: {shown(name)} names no node; {_GIVE}")


def _time(name: str, time: object) -> int:
    try:
        microseconds = index(time)  # type: ignore[arg-type]  # it raises
    except TypeError:
        microseconds = -1
    if isinstance(time, bool) or not 0 <= microseconds <= _LATEST:
        raise InvalidArgumentError(f"recv_epochs: node {name!r} cannot start at {shown(time)}; {_GIVE}")
    return microseconds


def _in_order(graph: Graph, given: Mapping[str, int]) -> dict[str, int]:
    """The given times, each raised to the latest time among all nodes that the node depends on.

    A node that depends on itself, through the back edge of a loop, starts with the latest of the loop.
    """
    nodes = topological_order(graph)
    starts = [given.get(name, 0) if name is not None else 0 for name in graph.names()]
    producers = {node: [graph.edge_ends(edge)[0] for edge in graph.in_edge_ids(node)] for node in nodes}
    raised = True
    while raised:  # one round raises everything behind a node, but for what a back edge leads to
        raised = False
        for node in nodes:
            latest = max((starts[producer] for producer in producers[node]), default=0)
            if latest > starts[node]:
                starts[node], raised = latest, True
    return {graph.node_name(node): starts[node] for node in nodes}
