"""What one request asks of a graph: tensors fed and fetched, nodes run, and how values get to the client and back.

    ClientRequest(["x"], ["y"], device="/job:localhost/replica:0/task:0/device:CPU:0")

asks for `y` of a graph whose tensor `x` is replaced by a value. `client_graph` cuts the graph of a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from ...errors import InvalidArgumentError
from .wiring import NO_WIRING, Wiring


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """Names of tensors and nodes, which may be spelled "x" or "x:0", and the client's device, which has the values.

    Feeds and fetches are `_Arg` and `_Retval` nodes numbered by position, which use a call frame, or with
    `by_rendezvous` `_Recv` and `_Send` nodes, which say `incarnation`, that of the client's device.
    """

    feeds: Sequence[str] = ()
    fetches: Sequence[str] = ()
    targets: Sequence[str] = ()
    _: KW_ONLY
    device: str
    """Full name of the client's device, which runs all feed and fetch nodes but those that `wiring` moves."""
    by_rendezvous: bool = False
    incarnation: int = 1
    wiring: Wiring = NO_WIRING
    """Tensors connected to others, and the devices of `_Arg` and `_Retval` nodes."""

    def check(self) -> None:
        """InvalidArgumentError for an empty request and for a tensor, as spelled, fed twice or both fed and fetched."""
        if not self.fetches and not self.targets:
            raise InvalidArgumentError("Must specify at least one target to fetch or execute.")
        fed: set[str] = set()
        for text in (*self.feeds, *(target for _, target in self.wiring.connections)):
            if text in fed:
                raise InvalidArgumentError(f'Endpoint "{text}" fed more than once.')
            fed.add(text)
        for text in self.fetches:
            if text in fed:
                raise InvalidArgumentError(f"{text} is both fed and fetched.")
