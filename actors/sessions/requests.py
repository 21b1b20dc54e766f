"""Requests as users write them: the names of feeds, fetches and targets, and the values of feeds.

Prepared requests are kept under a `RequestNames`; its names keep the user's order and duplicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...devices.state import TENSOR_HANDLE, ResourceHandle
from ...errors import InvalidArgumentError, OutOfRangeError, PartitaError
from ...graph.builder.tensor_names import tensor_names
from ...graph.passes.wiring import Wiring
from ...graph.suggestions import meant
from ...graph.tensor_id import TensorId, parse_tensor_name
from ..running.ports import Port, copies, feed_value
from ..running.threads import run_in_thread

if TYPE_CHECKING:
    from ...devices.state import SessionTensors
    from ...graph.builder.tensor_names import Names
    from ...graph.dtypes import Array
    from ...graph.graph import Graph

_LARGE_BYTES = 1 << 22  # a core copies them in about a millisecond


class RequestNames(NamedTuple):
    """Names as the user wrote them and in that order; the names of a partial run are full ("x:0") and sorted.

    Only callables have a `wiring`, and only those that connect tensors or name devices. A fetch of a callable that has
    several values in a loop is the last one that is live, or without any an empty array, as in TensorFlow.
    """

    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    is_partial: bool = False
    wiring: Wiring | None = None
    is_callable: bool = False

    @classmethod
    def of(cls, feeds: Names, fetches: Names, targets: Names, *, is_callable: bool = False) -> RequestNames:
        """The names of a request, as a user gives them."""
        return cls(tensor_names(feeds), tensor_names(fetches), tensor_names(targets), is_callable=is_callable)


def full_name(name: str) -> str:
    """The name of a tensor with its output number: "x" is "x:0"."""
    return str(parse_tensor_name(name))


def rendezvous_signature(signature: RequestNames) -> RequestNames:
    """The signature for a client that feeds and fetches at the rendezvous: full names, sorted, each fetch once.

    A feed that is named twice stays twice, because pruning refuses it.
    """
    return signature._replace(
        feeds=tuple(sorted(map(full_name, signature.feeds))),
        fetches=tuple(sorted(set(map(full_name, signature.fetches)))),
    )


def check_names(graph: Graph, signature: RequestNames) -> None:
    """Raises InvalidArgumentError for feeds and fetches of unknown nodes, OutOfRangeError for unknown outputs.

    Those of partial runs are left to pruning, which has other errors for them, as in TensorFlow.
    """
    if not any(True for _ in graph.op_nodes()):
        raise InvalidArgumentError("Session was not created with a graph before Run()!")
    if signature.is_partial:
        return
    for text in (*signature.feeds, *signature.fetches):
        tensor = parse_tensor_name(text)
        node = graph.find_node(tensor.node)
        if node is None:
            raise InvalidArgumentError(
                f"Tensor {TensorId(tensor.node, tensor.index)}, specified in either feed_devices or fetch_devices "
                f"was not found in the Graph{meant(tensor.node, known_names(graph))}"
            )
        if not 0 <= tensor.index < node.num_outputs:
            raise OutOfRangeError(
                f"Node '{node.name}' (type: '{node.op}', num of outputs: {node.num_outputs}) "
                f"does not have output {tensor.index}"
            )


def known_names(graph: Graph) -> list[str]:
    """Names to suggest to a user: those of all nodes that Partita did not add."""
    return [name for name in graph.names() if name and not name.startswith("_")]


def inputs_of(graph: Graph, error: PartitaError) -> list[str] | None:
    """The input tensors of the node that an error names; None if it has no inputs or is a node of a function."""
    node = None if error.node is None or error.function is not None else graph.find_node(error.node)
    return None if node is None else [text for text in node.requested_inputs if text[0] != "^"] or None


def fed_values(ports: Sequence[Port], values: Sequence[Any], session_tensors: SessionTensors) -> list[Any]:
    """The values of feeds as tensors, in order, see `feed_value`; a handle of a session tensor is replaced by that.

    Who keeps them takes them `copied`.

    Raises InvalidArgumentError as `feed_value`, and for the handle of a session tensor that was deleted.
    """
    return [
        feed_value(port, _dereferenced(value, session_tensors) if _has_objects(value) else value)
        for port, value in zip(ports, values, strict=True)
    ]


async def copied(tensors: Sequence[Any]) -> list[Any]:
    """Tensors that share no memory with the arrays among `tensors`; much is copied in a worker thread."""
    if sum(getattr(tensor, "nbytes", 0) for tensor in tensors) > _LARGE_BYTES:
        return await run_in_thread(copies, tensors)
    return copies(tensors)


async def unshared(fetched: list[Array], shared: Sequence[int]) -> list[Array]:
    """The read-only arrays of a step; those of some numbers are copied, as the user may write to their memory."""
    for number, array in zip(shared, await copied([fetched[number] for number in shared]), strict=True):
        array.flags.writeable = False
        fetched[number] = array
    return fetched


def _has_objects(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.hasobject


def _dereferenced(value: Array, session_tensors: SessionTensors) -> Array:
    handle = value.item() if value.size == 1 else None
    if isinstance(handle, ResourceHandle) and handle.type_name == TENSOR_HANDLE:
        return session_tensors.get(handle.name)
    return value


def timeout_seconds(timeout_ms: int) -> float:
    """A time limit of RunOptions or ConfigProto in seconds; infinite for 0 and below."""
    return timeout_ms / 1000 if timeout_ms > 0 else inf
