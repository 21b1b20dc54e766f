"""Gradients of a rank program are added up over the ranks that compute them, and ZeRO shares out the updates.

    d_w of the rank --bucket--> CollectiveReduce {_axis="dp+cp", _mesh="..."} --> d_w of all ranks --> update

It is what `replicate` does, without its copies: the program stays that of one rank. A variable says by its attr
`_reduced_over` over which axes its gradient is summed: "dp+cp" if it says nothing, "edp+cp" for experts, "tp+dp+cp" for
norms of rows that tp shares. Buckets are of one type, device and choice of axes.

With ZeRO the optimizer's state is shared out along dp (edp for experts), and ranks along the other axes are peers:

    reduce_scatter along dp -> all_reduce along cp -> update of a shard -> all_gather along dp
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from math import gcd
from typing import Any

import numpy as np

from ....collector import collector_paused
from ....errors import InvalidArgumentError, NotFoundError
from ...analysis.collective_seats import AXIS, MESH
from ...builder.tensor_names import Name, Names, tensor_names
from ...columns import SINK_ID
from ...edge_ends import Output
from ...graph import Graph
from ...graphdef.importer import graph_def_to_graph
from ...graphdef.sources import GraphSource
from ...passes.lower_functional import lower_functional
from ...suggestions import suggestion
from ..batch_shapes import BatchShapes
from ..replicas.buckets import reduce_gradients as reduce_in_buckets
from ..replicas.copies import ReplicaProgram, replicated
from ..replicas.rewriting import Rewriting
from ..replicate import BUCKET_BYTES
from ..training_step import TrainingStep, training_step
from ..value_flow import output_named
from ..zero.collectives import GroupKeys
from ..zero.layout import Sharding
from ..zero.region import SharedOut
from ..zero.step import ZeroOptions, shard_step, zero_options
from .marks import REDUCED_OVER
from .mesh import Mesh
from .shard_collectives import MeshCollectives, ShardAxes, shard_axes
from .stage_ranks import StageRanks

_OVER_DATA = "dp+cp"
_FIRST_INSTANCE = 1 << 30
"""above the instances of the program's own collectives, and of their gradients"""


@collector_paused()
def reduce_gradients(
    graph: GraphSource,
    mesh: Mesh,
    devices: Sequence[str],
    gradients: Mapping[str, Name],
    *,
    batch: Names,
    loss: Name,
    others: Names = (),
    zero: int = 0,
    zero_group: int | None = None,
    units: Sequence[str] | None = None,
    prefetch: int = 1,
    bucket_bytes: int = BUCKET_BYTES,
) -> Graph:
    """The rank program with gradients that are summed over the ranks of `mesh`; `graph` is left alone.

    Calls of functions are inlined first.

    `devices` are those of the stages, `gradients` has by the name of a variable the tensor that is its gradient, and
    `others` are further tensors of the batch that updates read, which stay those of the rank. Gradients are sums: a
    loss that is a mean is divided by the rows of all ranks and micro-batches. Axes of size 1 add nothing.

    `zero`, `zero_group`, `units`, `prefetch` and `bucket_bytes` are as in `replicate`; shards lie along dp. What reads
    a sharded variable outside of the step gets the shard of the rank. Shards have equally many elements on all ranks,
    the last one with padding.

    Raises NotFoundError for unknown names, InvalidArgumentError for axes and groups that do not fit, and what
    `training_step` raises.
    """
    source = graph if isinstance(graph, Graph) else graph_def_to_graph(graph)
    options = zero_options(zero, zero_group, units, prefetch, bucket_bytes, None)
    tensors = {variable: tensor_names(name)[0] for variable, name in gradients.items()}
    over = {variable: _axes(source, variable, mesh) for variable in tensors}
    if all(mesh.size(axes) == 1 for axes in over.values()):
        return source.copy()
    plain = lower_functional(source, inline_calls=True, control_flow=False).copy()
    names, (loss_name,) = tensor_names(batch), tensor_names(loss)
    shapes = BatchShapes(plain, names)
    known = [*tensors.values(), *tensor_names(others)]
    step = training_step(plain, batch=names, loss=loss_name, shapes=shapes, gradients=known)
    return _Reduction(step, StageRanks(mesh, devices), tensors, over, bucket_bytes).run(options)


def _axes(graph: Graph, variable: str, mesh: Mesh) -> str:
    """The axes over which the gradient of a variable is summed; NotFoundError if the graph has none of that name."""
    node = graph.find_node(variable)
    if node is None:
        known = [node.name for node in graph.op_nodes() if node.op_def.record.handle_shape_attr]
        raise NotFoundError(f"the graph has no variable {variable!r}{suggestion(variable, known)}")
    axes: str = node.attrs.get(REDUCED_OVER, _OVER_DATA.encode()).decode()
    mesh.size(axes)  # raises for what is no axis
    return axes


class _Reduction:
    """One rank program, in which gradients are reduced."""

    def __init__(
        self,
        step: TrainingStep,
        ranks: StageRanks,
        gradients: Mapping[str, str],
        over: Mapping[str, str],
        bucket_bytes: int,
    ) -> None:
        self.step, self.ranks, self.mesh, self.bucket_bytes = step, ranks, ranks.mesh, bucket_bytes
        self.instances = count(_FIRST_INSTANCE)
        self.over = over
        self.axes_of: dict[Output, str] = {}
        """by gradient the axes over which it is summed"""
        for variable, name in gradients.items():
            gradient = output_named(step.graph, name)
            if self.axes_of.setdefault(gradient, over[variable]) != over[variable]:
                raise InvalidArgumentError(
                    f"{name!r} is the gradient of several variables, which are summed over {self.axes_of[gradient]} "
                    f"and {over[variable]}; give each variable a gradient of its own",
                    node=step.graph.node_name(gradient[0]),
                )

    def run(self, options: ZeroOptions | None) -> Graph:
        """The graph in which updates read the sums."""
        if options is not None:
            self._shard(options)
        r = _MeshRewriting(self.step, self.ranks, self.instances)
        for axes in dict.fromkeys(self.over.values()):
            r.axes = axes
            left = [g for g in self.step.gradients if self.axes_of.get(g) == axes]
            if left and self.mesh.size(axes) > 1:
                reduce_in_buckets(r, left, self.bucket_bytes)
        edges = r.edges()
        nodes = np.arange(SINK_ID + 1, r.e.target.num_node_ids)
        return replicated(ReplicaProgram(r.e.target, edges, nodes, [""], [{"": ""}]), {})

    # ZeRO

    def _shard(self, options: ZeroOptions) -> None:
        """Shares out what can be, for each choice of axes after the other."""
        for axes in dict.fromkeys(self.over.values()):
            along = shard_axes(axes)
            if along is None or self.mesh.size(along.inside) == 1:
                continue
            along = _within_groups(along, options.group, self.mesh)
            parts, peers = self.mesh.size(along.inside), self.mesh.size(along.peers) if along.peers else 1
            if parts == 1:
                continue
            keys = GroupKeys(1, self.instances)
            self.step = shard_step(
                self.step,
                Sharding(parts, peers),
                options,
                keys,
                mean=False,
                among=self._shared_out(axes),
                collectives=partial(MeshCollectives, axes=along, ranks=self.ranks),
            ).step

    def _shared_out(self, axes: str) -> SharedOut:
        """The variables whose gradients are summed over some axes, with those that are updated together with one."""
        graph, flow = self.step.graph, self.step.flow
        own = {graph.find_id(variable) for variable, over in self.over.items() if over == axes}
        found = {node for node in own if node is not None}
        for update in self.step.updates:
            together = flow.variables(update)
            if not own.isdisjoint(together):
                found.update(together)
        return SharedOut(found, {gradient for gradient, over in self.axes_of.items() if over == axes})


def _within_groups(axes: ShardAxes, size: int | None, mesh: Mesh) -> ShardAxes:
    """The axes of groups of `size` neighbours; the ranks with the same place in other groups are peers too.

    Experts lie along edp, which has fewer ranks: there groups have all of them if `size` are more.
    """
    whole = mesh.size(axes.inside)
    if axes.inside == "dp":
        Sharding.of(whole, size)
    size = whole if size is None else gcd(size, whole)
    if size == whole:
        return axes
    return ShardAxes(f"{axes.inside}:{size}", "+".join(filter(None, (f"{axes.inside}/{size}", axes.peers))))


class _MeshRewriting(Rewriting):
    """The rewriting of a rank program, with collectives along `axes`."""

    def __init__(self, step: TrainingStep, ranks: StageRanks, instances: count[int]) -> None:
        super().__init__(step, 1, 1, averages=False)
        self.ranks, self.instances, self.axes = ranks, instances, _OVER_DATA

    def group_attrs(self) -> dict[str, Any]:
        """Attrs of the next collective along the axes, of the stage where nodes are made now."""
        mesh = self.ranks.mesh
        return {
            "group_size": mesh.size(self.axes),
            "group_key": mesh.key(self.axes, self.ranks.of(self._device)),
            "instance_key": next(self.instances),
            MESH: mesh.text,
            AXIS: self.axes,
        }
