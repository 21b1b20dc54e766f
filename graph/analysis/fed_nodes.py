"""The nodes through which fed tensors enter a graph: placeholders, or what a request puts in their place.

x: Placeholder                the graph that a user wrote; feeding x:0 gives its value
_arg_x_0_0: _Arg              the graph of a request that feeds x:0, by position
_recv_x_0: _Recv              the same, where the client sends the value

The name of an `_Arg` is as TensorFlow writes it, and this file alone writes and reads it: a graph that comes as a
message, and a trace, have nothing else that says which tensor an `_Arg` is.
"""

from __future__ import annotations

import re

import numpy as np

from ..dtypes import Shape
from ..ops.record import NodeClass, record_of
from ..tensor_id import TensorId, parse_tensor_name
from ..versions import LAST_WITH_SCALARS_FOR_ANYTHING
from .joined import JoinedGraph

_NAME = re.compile(r"_arg_(.+)_(\d+)_\d+")


def feed_node_name(tensor: TensorId, position: int) -> str:
    """The name of the `_Arg` of a fed tensor; `position` is the number of the feed in its request."""
    return f"_arg_{tensor.node}_{tensor.index}_{position}"


def fed_tensor(name: str) -> TensorId | None:
    """The tensor that the `_Arg` of this name stands for; None if that is an argument of a function."""
    match = _NAME.fullmatch(name)
    return None if match is None else TensorId(match[1], int(match[2]))


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
        if graph.op(n) == "_Arg" and (tensor := fed_tensor(graph.names[n])):
            numbers[str(tensor)] = n
    return numbers


def given_names(graph: JoinedGraph) -> dict[int, str]:
    """By node through which a tensor is fed: the tensor, as the user names it ("x", "x:1")."""
    return {n: tensor.removesuffix(":0") for tensor, n in feed_nodes(graph).items()}
