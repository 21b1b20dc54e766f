"""Nodes that cannot be timed are an error, because the time of one op would be far too small for them.

other collectives   ops of which nobody says what their members exchange
other functions     an op that names functions, but is no call, conditional, loop or map of TensorFlow's runtime: one
                    node stands for a graph of any size. Datasets only describe; to pull an element costs what it takes
                    to produce its tensors, whatever functions are called for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import UnimplementedError

if TYPE_CHECKING:
    from ...graph.analysis.joined import JoinedGraph
    from ...graph.arrays import Flags
    from ...graph.ops.properties import NodeProperties

_FEED_INSTEAD = "feed what leaves it, with its shape, to time the rest"


def check_modelled(graph: JoinedGraph, runs: Flags) -> None:
    """Raises UnimplementedError for the first node that runs and cannot be timed."""
    for n in np.flatnonzero(runs & unmodelled(graph))[:1].tolist():
        raise why_unmodelled(graph, n)


def unmodelled(graph: JoinedGraph) -> Flags:
    """By node whether it cannot be timed."""
    return np.array([bool(_why_not(kind)) for kind in graph.kinds], np.bool_)[graph.kind_of]


def why_unmodelled(graph: JoinedGraph, n: int) -> UnimplementedError:
    """The error for a node that cannot be timed, if it runs."""
    return UnimplementedError(f"{_why_not(graph.properties[n])}; {_FEED_INSTEAD}", node=graph.names[n], op=graph.op(n))


def _why_not(kind: NodeProperties) -> str:
    """Why a node cannot be timed, "" if it can be."""
    if kind.op_def.record.calls is not None:
        return ""  # TensorFlow declares calls as collectives too, since their functions may have some
    if kind.op_def.takes_functions and not kind.op_def.record.names_functions:
        return "the clock does not know how often this op calls its functions"
    if kind.op_def.is_collective and kind.op_def.record.exchange is None:
        return "the clock does not know what the members of this collective exchange"
    return ""
