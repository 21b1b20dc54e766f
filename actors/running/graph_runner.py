"""Runs a graph once, at once: what folds constants and asks for a value here and there.

Flows in: a graph, tensors to feed, names to fetch. Flows out: arrays of the caller's own. Always holds: the graph stays
as it is; every node runs on one CPU whose state nothing else sees, in the caller's task and thread, without an event
loop; nothing ever waits, so a tensor that was not sent is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...devices.state import DeviceState
from ...errors import InternalError
from ...graph.passes.client_graph import rewrite_graph_for_execution
from ...rendezvous import Key
from ...rendezvous.key import edge_of
from ..plans.binding import Binder, check_complete
from ..plans.instructions import DEAD, read
from .frames import Token
from .interpretation import Interpretation
from .ports import Feeds, feed_value, fetched_array, ports, split_feeds
from .reference import Reference

if TYPE_CHECKING:
    from ...graph.dtypes import Array
    from ...graph.graph import Graph

_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
_INCARNATION = 1


class SimpleRendezvous:
    """Where a runner meets its graph: tensors by the edge name of their key, each sent once and there for all."""

    def __init__(self) -> None:
        self._table: dict[str, Any] = {}  # Any: tensors of any type

    def send(self, key: str, value: Any) -> None:
        """Hands over a tensor; InternalError for a dead one, and for a second one of that name."""
        if value is DEAD:
            raise InternalError("Send of a dead tensor")
        name = edge_of(key)
        if name in self._table:
            raise InternalError("Send of an already sent tensor")
        self._table[name] = value

    def recv(self, key: str) -> Any:
        """The tensor that was sent; InternalError when there is none."""
        name = edge_of(key)
        if name not in self._table:
            raise InternalError(f"Did not find key {key}")
        return self._table[name]


class _Run(Reference):
    """A run of the reference executor that meets its client."""

    def __init__(self, part: Interpretation, rendezvous: SimpleRendezvous) -> None:
        super().__init__([part], ())
        self._rendezvous = rendezvous

    def _send(self, key: str, value: Any) -> None:
        self._rendezvous.send(key, read(value))

    def _receive(self, token: Token, part: Interpretation) -> None:
        self._hand_over(token, self._rendezvous.recv(part.key(token.node, token.frame.name, token.iteration)))


class GraphRunner:
    """Runs graphs, one after the other, on a CPU of its own. Variables live as long as the runner."""

    def __init__(self, seed: int = 0) -> None:
        """`seed` is that of random ops which have none."""
        self._binder = Binder(_DEVICE, DeviceState(seed))

    def run(self, graph: Graph, feeds: Feeds | None, fetches: Sequence[str]) -> list[Array]:
        """The values of `fetches`, in order, when `feeds` take the place of what the graph computes.

        Raises InvalidArgumentError or NotFoundError for names, and without any fetch; InternalError for a fetch that is
        dead or asked for by two spellings, and for a tensor fed twice; the error of a node that fails.
        """
        requested = graph.copy()
        requested.assign_devices(np.full(requested.num_node_ids, requested.intern_device(_DEVICE)))
        names, values = split_feeds(feeds)
        types = rewrite_graph_for_execution(requested, names, fetches, (), _DEVICE, use_function_convention=False)
        rendezvous = SimpleRendezvous()
        for port, value in zip(ports(names, types.feed_types), values, strict=True):
            rendezvous.send(_key(port.name), feed_value(port, value, copy=True))
        part = Interpretation(requested, {_DEVICE: self._binder})
        check_complete([self._binder])
        with np.errstate(all="ignore"):
            _Run(part, rendezvous).run()
        outputs = ports(tuple(fetches), types.fetch_types)
        return [fetched_array(port, rendezvous.recv(_key(port.name)), ()).copy() for port in outputs]


def _key(name: str) -> str:
    return str(Key(_DEVICE, _INCARNATION, _DEVICE, name))
