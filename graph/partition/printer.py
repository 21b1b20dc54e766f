"""The graphs of a cut as text, each transfer with the node at its other end.

/job:localhost/replica:0/task:0/device:CPU:0: 2 nodes
x: float = Placeholder() {shape=[]}
x/_0 = _Send(x) {edge_1_x to x/_1 @CPU:1}

/job:localhost/replica:0/task:0/device:CPU:1: 2 nodes
x/_1: float = _Recv() {edge_1_x from x/_0 @CPU:0}
Neg: float = Neg(x/_1)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from ..analysis.transfers import TransferKey, transfer_of
from ..graph import Graph
from ..printer import graph_text


def partitions_text(
    partitions: Mapping[str, Graph],
    *,
    only: Callable[[str], bool] = lambda _name: True,
    shown: Collection[str] | None = None,
) -> str:
    """The text of every partition under its location, in the order of `partitions`.

    `only` selects nodes by name as in `graph_text`; `shown` selects locations, all of them by default. The other
    partitions are still needed to name the node at the other end of a transfer.
    """
    peers = _peers(partitions)
    blocks = []
    for location, part in partitions.items():
        if shown is not None and location not in shown:
            continue
        count, _, lines = graph_text(part, only=only, peers=peers[location]).partition("\n")
        place = count.removesuffix(f" @{location}")
        blocks.append("\n".join(filter(None, [f"{location}: {place}", lines])))
    return "\n\n".join(blocks)


class _TransferEnd(NamedTuple):
    """One end of a transfer: a node of the partition at a location."""

    location: str
    node_id: int
    name: str


def _peers(partitions: Mapping[str, Graph]) -> dict[str, dict[int, str]]:
    """By location and node id: the name of the node at the other end of a transfer, if a partition has it."""
    ends: dict[tuple[TransferKey, bool], list[_TransferEnd]] = {}
    for location, part in partitions.items():
        for node in part.op_nodes():
            if node.op_def.record.is_transfer and not (transfer := transfer_of(node.properties)).client_terminated:
                ends.setdefault((transfer.key, node.is_send), []).append(_TransferEnd(location, node.id, node.name))
    peers: dict[str, dict[int, str]] = {location: {} for location in partitions}
    for (key, is_send), here in ends.items():
        for peer in ends.get((key, not is_send), []):
            for end in here:
                peers[end.location][end.node_id] = peer.name
    return peers
