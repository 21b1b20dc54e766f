"""Runs a graph at once, without actors or an event loop: for constant folding and for single values.

    GraphRunner().run(graph of 2 * 3, None, ["product:0"])      ->      [array(6)]

All nodes run on one CPU whose state nothing else uses, in the caller's thread, by the reference executor. The graph is
not changed. A receive whose tensor was not sent is an error, because nothing runs that could send it later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...devices.state import DeviceState
from ...errors import InternalError
from ...graph.passes.client_graph import rewrite_graph_for_execution
from ...graph.passes.client_request import ClientRequest
from ...rendezvous import Key
from ...rendezvous.key import edge_of
from ..plans.binding import Binder, check_complete
from ..plans.instructions import DEAD, read
from .interpretation import Interpretation
from .ports import Feeds, copies, feed_value, fetched_array, ports, split_feeds
from .reference import Reference
from .tokens.frames import Token

if TYPE_CHECKING:
    from ...graph.dtypes import Array
    from ...graph.graph import Graph

_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
_INCARNATION = 1


class SimpleRendezvous:
    """A rendezvous without waiting: tensors by the edge name of their key, sent once, received any number of times."""

    def __init__(self) -> None:
        self._table: dict[str, Any] = {}  # Any: tensors of any type

    def send(self, key: str, value: Any) -> None:
        """Stores a tensor; InternalError for a dead one, and for a second one of the same name."""
        if value is DEAD:
            raise InternalError("Send of a dead tensor")
        name = edge_of(key)
        if name in self._table:
            raise InternalError("Send of an already sent tensor")
        self._table[name] = value

    def recv(self, key: str) -> Any:
        """The tensor that was sent; InternalError if there is none."""
        name = edge_of(key)
        if name not in self._table:
            raise InternalError(f"Did not find key {key}")
        return self._table[name]


class _Run(Reference):
    """A run of the reference executor with a `SimpleRendezvous` for feeds and fetches."""

    def __init__(self, part: Interpretation, rendezvous: SimpleRendezvous) -> None:
        super().__init__([part], ())
        self._rendezvous = rendezvous

    def _send(self, key: str, value: Any) -> None:
        self._rendezvous.send(key, read(value))

    def _receive(self, token: Token, part: Interpretation) -> None:
        self._deliver(token, self._rendezvous.recv(part.key(token.node, token.frame.name, token.iteration)))


class GraphRunner:
    """Runs graphs one after the other. Variables keep their values as long as the runner exists."""

    def __init__(self, seed: int = 0) -> None:
        """`seed` seeds random ops whose seed attrs are zero."""
        self._binder = Binder(_DEVICE, DeviceState(seed))

    def run(self, graph: Graph, feeds: Feeds | None, fetches: Sequence[str]) -> list[Array]:
        """The values of `fetches`, in order; `feeds` replace tensors of the graph.

        Raises InvalidArgumentError or NotFoundError for bad names, and without fetches; InternalError for a dead fetch,
        one fetched under two spellings, and a tensor fed twice; the error of a node that fails.
        """
        requested = graph.copy()
        requested.assign_devices(np.full(requested.num_node_ids, requested.intern_device(_DEVICE)))
        names, values = split_feeds(feeds)
        request = ClientRequest(names, fetches, device=_DEVICE, incarnation=_INCARNATION, by_rendezvous=True)
        types = rewrite_graph_for_execution(requested, request)
        rendezvous = SimpleRendezvous()
        feeding = ports(names, types.feed_types)
        for port, value in zip(feeding, copies(list(map(feed_value, feeding, values))), strict=True):
            rendezvous.send(_key(port.name), value)
        part = Interpretation(requested, {_DEVICE: self._binder})
        check_complete([self._binder])
        with np.errstate(all="ignore"):
            _Run(part, rendezvous).run()
        outputs = ports(tuple(fetches), types.fetch_types)
        return copies([fetched_array(port, rendezvous.recv(_key(port.name))) for port in outputs])


def _key(name: str) -> str:
    return str(Key(_DEVICE, _INCARNATION, _DEVICE, name))
