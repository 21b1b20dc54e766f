"""The nodes through which fed tensors enter a graph: placeholders, or what a request puts in their place.

x: Placeholder                the graph that a user wrote; feeding x:0 gives its value
_arg_x_0_0: _Arg              the graph of a request that feeds x:0, by position
_recv_x_0: _Recv              the same, where the client sends the value
"""

from __future__ import annotations

from re import compile as pattern

import numpy as np

from ..dtypes import Shape
from ..ops.record import NodeClass, record_of
from ..tensor_id import parse_tensor_name
from ..versions import LAST_WITH_SCALARS_FOR_ANYTHING
from .joined import JoinedGraph

_ARG_NAME = pattern(r"_arg_(.+)_(\d+)_\d+")


def means_anything(op: str, shape: Shape, producer: int) -> bool:
    """Whether a placeholder of that shape accepts any feed: old producers write a scalar for an unknown shape.

    A graph without a producer version (0) is not treated as old.
    """
    return shape == () and record_of(op).is_placeholder and 0 < producer <= LAST_WITH_SCALARS_FOR_ANYTHING


def feed_nodes(graph: JoinedGraph) -> dict[str, int]:
    """ "node:output" of every tensor that is fed through a node of its own -> the joint number of that node."""
    numbers = {}
    for n, transfer in graph.transfers.from_attrs.items():
        if transfer.client_terminated and graph.kinds[graph.kind_of[n]].output_types:
            numbers[str(parse_tensor_name(transfer.tensor_name))] = n
    for n in np.flatnonzero(graph.of_class(NodeClass.ARG)).tolist():
        if graph.op(n) == "_Arg" and (match := _ARG_NAME.fullmatch(graph.names[n])):
            numbers[f"{match[1]}:{match[2]}"] = n
    return numbers


def given_names(graph: JoinedGraph) -> dict[int, str]:
    """By node through which a tensor is fed: the tensor, as the user names it ("x", "x:1")."""
    return {n: tensor.removesuffix(":0") for tensor, n in feed_nodes(graph).items()}
