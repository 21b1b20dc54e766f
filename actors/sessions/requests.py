"""What a client asks for: names of feeds, fetches and targets, as users write them, in order and with duplicates.

Plans are cached under a `Signature`. The values in between are converted by `running.ports`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...devices.kernels.variables.session_tensors import TENSOR_HANDLE
from ...devices.state import ResourceHandle
from ...errors import InvalidArgumentError, OutOfRangeError, PartitaError
from ...graph.suggestions import meant
from ...graph.tensor_id import TensorId, parse_tensor_name
from ..running.ports import Port, feed_value

if TYPE_CHECKING:
    from ...devices.state import SessionTensors
    from ...graph.dtypes import Array
    from ...graph.graph import Graph


class Signature(NamedTuple):
    """Names as the user wrote them, in the user's order; those of a partial run are full and sorted."""

    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    is_partial: bool = False


def full_name(name: str) -> str:
    """A tensor's name with its port: "x" is "x:0"."""
    return str(parse_tensor_name(name))


def by_rendezvous(signature: Signature) -> Signature:
    """How a request is cut out whose client comes to the rendezvous: full names, sorted, each fetch once.

    A feed named twice stays, to be refused.
    """
    feeds, fetches, targets, is_partial = signature
    return Signature(
        tuple(sorted(map(full_name, feeds))), tuple(sorted(set(map(full_name, fetches)))), targets, is_partial
    )


def check_names(graph: Graph, signature: Signature) -> None:
    """Raises InvalidArgumentError for a feed or fetch of an unknown node, OutOfRangeError for one of no output."""
    if not any(True for _ in graph.op_nodes()):
        raise InvalidArgumentError("Session was not created with a graph before Run()!")
    for text in (*signature.feeds, *signature.fetches):
        tensor = parse_tensor_name(text)
        node = graph.find_node(tensor.node)
        if node is None:
            named = TensorId(tensor.node, tensor.index)
            raise InvalidArgumentError(
                f"Tensor {named}, specified in either feed_devices or fetch_devices was not found in the Graph"
                f"{meant(tensor.node, known_names(graph))}"
            )
        if not 0 <= tensor.index < node.num_outputs:
            raise OutOfRangeError(
                f"Node '{node.name}' (type: '{node.op}', num of outputs: {node.num_outputs}) "
                f"does not have output {tensor.index}"
            )


def known_names(graph: Graph) -> list[str]:
    """Names that somebody may have meant: those of the nodes that are not made by Partita itself."""
    return [name for name in graph.names() if name and not name.startswith("_")]


def inputs_of(graph: Graph, error: PartitaError) -> list[str] | None:
    """Names of the tensors that the node of an error is given; None when it is given none, or is in a function."""
    node = None if error.node is None or error.function is not None else graph.find_node(error.node)
    return None if node is None else [text for text in node.requested_inputs if text[0] != "^"] or None


def fed_values(ports: Sequence[Port], values: Sequence[Any], kept: SessionTensors, *, copy: bool) -> list[Any]:
    """The values of feeds as tensors, in order, see `feed_value`; a handle of a tensor that is `kept` stands for it.

    Raises InvalidArgumentError for what `feed_value` refuses, and for the handle of a tensor that was deleted.
    """
    return [
        feed_value(port, _session_tensor(value, kept) if _is_of_objects(value) else value, copy=copy)
        for port, value in zip(ports, values, strict=True)
    ]


def _is_of_objects(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.hasobject


def _session_tensor(value: Array, kept: SessionTensors) -> Array:
    handle = value.item() if value.size == 1 else None
    if isinstance(handle, ResourceHandle) and handle.type_name == TENSOR_HANDLE:
        return kept.get(handle.name)
    return value


def seconds(timeout_ms: int) -> float:
    """A time limit as TensorFlow writes it, 0 for none."""
    return timeout_ms / 1000 if timeout_ms > 0 else inf
