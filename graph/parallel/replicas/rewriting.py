"""The rewriting of one replica's program, from which the programs of the others are copied.

    r = Rewriting(step, size=4, group_key=1)
    with r.at(gradient):                                      new nodes on the device of what makes the gradient
        total = r.e.op("CollectiveReduce", r.tensor(gradient), **r.group_attrs())[0]
    r.redirect(gradient, total, readers=r.readers)

New nodes belong to the replica: every other gets a copy of them. What must differ between replicas, such as where the
shard of a replica begins, is in `by_rank`: a function from the rank to the properties of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from ...builder.extension import Extension
from ...builder.handles import Operation, Tensor
from ...dtypes import base_type
from ...edge_ends import EdgeEnds, Output
from ...ops.properties import NodeProperties
from ...ops.record import NodeClass
from ..training_step import TrainingStep


class Redirection(NamedTuple):
    """Some readers of an output read another tensor instead; None are all but new nodes."""

    old: Output
    new: Tensor
    readers: Collection[int] | None


class Rewriting:
    """The graph of a training step while its program is rewritten; the graph is changed."""

    def __init__(self, step: TrainingStep, size: int, group_key: int, *, averages: bool = True) -> None:
        """`size` is the number of replicas; with `averages` their gradients are averaged, else added."""
        self.step = step
        self.graph = step.graph
        self.size = size
        self.group_key = group_key
        self.averages = averages
        self.e = Extension(step.graph, step.graph.functions.lookup)
        self.by_rank: dict[str, Callable[[int], NodeProperties]] = {}
        """by the name of a node its properties in the replica of a rank"""
        self.first_new = step.graph.num_node_ids
        early = (step.backward - step.region) | step.forward
        self.readers = frozenset(range(self.first_new)) - early
        """nodes that see gradients of all replicas: the update region, and what else reads gradients, as metrics do"""
        self.redirections: list[Redirection] = []
        self._instances = 0
        self._groups: dict[str, int] = {}
        self._device = ""

    def tensor(self, output: Output) -> Tensor:
        """An output of the graph as an input of new nodes."""
        node, port = output
        return Tensor(self.e, self.graph.node_name(node), port, base_type(self.type_of(output)))

    def type_of(self, output: Output) -> int:
        """The element type of an output, a reference marked."""
        return self.graph.node_properties(output[0]).output_types[output[1]]

    def properties(self, name: str) -> NodeProperties:
        """The properties of a node, which may be new."""
        target = self.e.target
        return target.node_properties(self.e.id_of(name))

    @contextmanager
    def at(self, output: Output, scope: str = "") -> Iterator[None]:
        """Makes the nodes of the block on the device of an output."""
        outer, self._device = self._device, self.graph.requested_device(output[0])
        try:
            with self.e.within(None, self._device), self.e.scope(scope) if scope else nullcontext():
                yield
        finally:
            self._device = outer

    def group_attrs(self) -> dict[str, Any]:
        """Attrs of the next collective of all replicas, among those of their devices where nodes are made now."""
        self._instances += 1
        key = self._groups.setdefault(self._device, self.group_key + len(self._groups))
        return {"group_size": self.size, "group_key": key, "instance_key": self._instances}

    def all_reduced(self, value: Tensor, name: str) -> Tensor:
        """The sum, or mean, of a tensor over all replicas."""
        final = b"Div" if self.averages else b"Id"
        merged: Operation = self.e.op(
            "CollectiveReduce",
            value,
            name=name,
            merge_op=b"Add",
            final_op=final,
            subdiv_offsets=[0],
            **self.group_attrs(),
        )
        return merged[0]

    def redirect(self, old: Output, new: Tensor, readers: Collection[int] | None = None) -> None:
        """Makes some readers of an output read a new tensor; None stands for all nodes that are not new."""
        self.redirections.append(Redirection(old, new, readers))

    def edges(self) -> EdgeEnds:
        """The edges of the graph after all redirections, source and sink left out."""
        graph = self.e.target
        live = graph.edge_arrays()
        keep = (live.src > 1) & (live.dst > 1)
        edges = EdgeEnds(*(c[keep].astype(np.int64) for c in (live.src, live.src_output, live.dst, live.dst_input)))
        src, port = edges.src.copy(), edges.src_output.copy()
        by_source: dict[Output, list[Redirection]] = {}
        for redirection in self.redirections:
            by_source.setdefault(redirection.old, []).append(redirection)
        wanted = np.isin(edges.src, [node for node, _ in by_source])
        for at in np.flatnonzero(wanted).tolist():
            old, reader = (int(edges.src[at]), int(edges.src_output[at])), int(edges.dst[at])
            for redirection in by_source.get(old, ()):
                if reader < self.first_new if redirection.readers is None else reader in redirection.readers:
                    src[at], port[at] = self.e.id_of(redirection.new.node), redirection.new.port
        return edges._replace(src=src, src_output=port)


def group_keys(kinds: Collection[NodeProperties]) -> list[int]:
    """The group keys of the collectives among some kinds of nodes."""
    return [
        int(kind.attrs["group_key"])
        for kind in kinds
        if kind.op_def.record.node_class is NodeClass.COLLECTIVE or "group_key" in kind.op_def.attrs
    ]
