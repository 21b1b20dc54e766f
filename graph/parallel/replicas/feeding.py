"""How replicas get their rows of the batch.

whole          x: (8, 4) is fed; Split, on the host where it arrives, sends 8 / n rows to each replica
per_replica    each replica has a placeholder of 8 / n rows: "x", "replica_1/x", ...
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from ....errors import InvalidArgumentError
from ...dtypes import Shape
from ...graph import Graph
from ...tensor_id import parse_tensor_name
from ..batch_shapes import parts_of_batch
from .rewriting import Rewriting

FeedingMode = Literal["whole", "per_replica"]


def rows_of(graph: Graph, batch: Sequence[str], size: int) -> Mapping[str, int | None]:
    """By placeholder of the batch how many rows it declares; None for one that leaves it open.

    InvalidArgumentError, with the nearest size that does, for a batch that does not divide by the number of replicas.
    """
    found = {}
    for name in batch:
        node = graph.find_node(parse_tensor_name(name).node)
        shape: Shape = None if node is None else node.attrs.get("shape")
        rows = shape[0] if shape else None
        parts = 1 if node is None else parts_of_batch(graph, [node.id])
        if rows is not None and rows % (size * parts):
            nearest = max(1, (rows + size * parts // 2) // (size * parts)) * size * parts
            each = f" with {parts} micro-batches each" if parts > 1 else ""
            raise InvalidArgumentError(
                f"{name!r} has {rows} rows, which do not divide by {size} replicas{each}; feed {nearest}", node=name
            )
        found[name] = rows
    return found


def split_batch(r: Rewriting, batch: Collection[int], readers: Collection[int], host: str) -> frozenset[str]:
    """Adds the nodes that split the batch, on `host`; their names."""
    splits = set()
    for node in batch:
        name = r.graph.node_name(node)
        with r.e.within(None, host):
            parts = r.e.op("Split", 0, r.tensor((node, 0)), num_split=r.size, name=f"{name}/rows")
        splits.add(parts.name)
        r.redirect((node, 0), parts[0], readers)
    return frozenset(splits)


def take_whole(graph: Graph, batch: Collection[int], size: int) -> None:
    """Gives the placeholders of the batch the rows of all replicas again; `graph` is changed."""
    for node in batch:
        view = graph.node(node)
        shape = view.attrs.get("shape")
        if shape and shape[0] is not None:
            view.add_attr("shape", (shape[0] * size, *shape[1:]))
