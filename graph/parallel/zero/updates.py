"""Rewrites the nodes between gradients and updates, so that each works on shards or on whole tensors, as its op allows.

Nodes keep their names. An elementwise node stays as it is and gets shards; an update writes a variable of shards; any
other node gets whole tensors, gathered. A reduction to one element becomes

    norm = L2Loss(g)      norm/part = L2Loss(shard of g), merged over the group, norm = Reshape(merged, [])

Merges that can start at the same time travel together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...builder.handles import Tensor
from ...dtypes import DataType
from ..value_flow import is_handle
from .collectives import ShardCollectives
from .edits import Edits
from .region import ShardRegion
from .shards import Shards
from .state import StateShards
from .variables import ShardedVariable

_LOGICAL = {"and": "Min", "or": "Max"}
"""how truth values are merged as numbers"""


class UpdateRewriter:
    """The rewriting of the region of one step."""

    def __init__(self, shards: Shards, state: StateShards) -> None:
        self._shards = shards
        self._state = state
        self._region: ShardRegion = shards.region
        self._edits: Edits = shards.edits
        self._collectives: ShardCollectives = shards.collectives
        self._levels: dict[int, int] = {}
        self._parts: dict[tuple[int, str, DataType, str], list[tuple[int, Tensor]]] = {}
        self.ends: dict[int, str] = {}
        """by update, of variables that stay whole, the node that writes the shard"""

    def rewrite(self) -> None:
        """Rewrites all nodes of the region."""
        region = self._region
        beside = [variable for variable in region.variables.values() if self._state.is_beside(variable)]
        for variable in sorted(beside, key=lambda v: region.flow.position[v.updates[-1]]):
            with self._edits.beside(variable.node):
                self._move_last_update(variable)
        for node in region.order:
            self._levels[node] = self._level(node)
            if node not in region.variables and node not in self.ends:
                with self._edits.beside(node):
                    self._rewrite(node)
        for node in region.beside:
            with self._edits.beside(node):
                self._give_wholes(node)
        for (_, merge, _, _), parts in self._parts.items():
            with self._edits.beside(parts[0][0]):
                self._merge(merge, parts)

    # Single nodes

    def _rewrite(self, node: int) -> None:
        region, variable = self._region, self._region.variable_of(node)
        if node in region.updates and variable is not None:
            for port, tensor in enumerate(self._update_inputs(node)):
                self._edits.connect(tensor, node, port)
            self._state.wait_for_load(variable, region.graph.node_name(node))
        elif region.read_of((node, 0)) is not None:
            self._rewrite_read(node, region.read_of((node, 0)))
        elif (node, 0) in region.sharded:
            for port, source in enumerate(region.flow.sources[node]):
                self._edits.connect(self._shards.shard(source), node, port)
        elif region.reduces(node) and region.is_available(region.flow.sources[node][0]):
            self._rewrite_reduction(node)
        else:
            self._give_wholes(node)

    def _rewrite_read(self, node: int, variable: ShardedVariable | None) -> None:
        if variable is not None and self._state.is_beside(variable):
            self._edits.connect(self._state.handles[variable.node], node, 0)
            self._state.wait_for_load(variable, self._region.graph.node_name(node))

    def _give_wholes(self, node: int) -> None:
        region = self._region
        for port, source in enumerate(region.flow.sources[node]):
            if not is_handle(region.kind(node).input_types[port]) and self._shards.is_shard(source):
                self._edits.connect(self._shards.whole(source), node, port)

    def _update_inputs(self, node: int) -> list[Tensor]:
        """Handles of variables of shards, shards and scalars, by port of an update."""
        region, types = self._region, self._region.kind(node).input_types
        return [
            self._state.handles[source[0]] if is_handle(types[port]) else self._shards.shard(source)
            for port, source in enumerate(region.flow.sources[node])
        ]

    # Variables that stay whole

    def _move_last_update(self, variable: ShardedVariable) -> None:
        """The last update becomes a node of another name; its own name is left to the assignment of the whole."""
        node, graph = variable.updates[-1], self._region.graph
        new = self._edits.again(node, self._update_inputs(node), f"zero/{graph.node_name(node)}/shard")
        self.ends[node] = new.name
        if len(new):
            self._shards.moved[node, 0] = new[0]
        for edge in graph.node(node).in_edges():
            if edge.is_control and edge.src.is_op:
                self._edits.wait(self.ends.get(edge.src.id, edge.src.name), new.name)
        for edge in graph.node(node).out_edges():
            if edge.is_control and edge.dst.id in self._region.nodes:
                self._edits.no_longer_wait(node, edge.dst.id)
                self._edits.wait(new.name, edge.dst.name)
        self._state.wait_for_load(variable, new.name)

    def end_of(self, update: int) -> str:
        """The node after which a shard is updated."""
        return self.ends.get(update) or self._region.graph.node_name(update)

    # Reductions

    def _level(self, node: int) -> int:
        """How many merges, one after the other, are before the output of a node."""
        before = [self._levels[other] for other in self._region.earlier[node] if other in self._levels]
        return max(before, default=0) + self._region.reduces(node)

    def _rewrite_reduction(self, node: int) -> None:
        """Adds the reduction of the shard; merges come when all are known."""
        region, kind = self._region, self._region.kind(node)
        merge, name = kind.op_def.record.merges_by, f"zero/{region.graph.node_name(node)}/part"
        source = region.flow.sources[node][0]
        cut = self._collectives.cut(self._shards.shape(source))
        inputs = [self._collectives.without_padding(self._shards.shard(source), cut, merge, name)]
        attrs = {"keep_dims": False} if len(kind.input_types) > 1 else {}
        if len(kind.input_types) > 1:
            inputs.append(self._edits.make.constant([0], kind.input_types[1], name=f"{name}/axis"))
        if merge == "Mean":
            part = self._edits.make.op("Sum", *inputs, name=name)[0]
        else:
            part = self._edits.again(node, inputs, name, **attrs)[0]
        if merge in _LOGICAL:
            part = self._edits.make.op("Cast", part, DstT=DataType.INT32, name=f"{name}/number")[0]
        key = self._levels[node], merge, part.dtype, self._edits.device
        self._parts.setdefault(key, []).append((node, part))

    def _merge(self, merge: str, parts: Sequence[tuple[int, Tensor]]) -> None:
        """Merges the parts of several reductions over the group; their nodes become what gives the results."""
        region, make = self._region, self._edits.make
        name = make.unique_name(f"zero/merged_{merge.lower()}")
        merged = self._collectives.merged(
            [part for _, part in parts], _LOGICAL.get(merge, "Add" if merge == "Mean" else merge), name
        )
        for (node, _), result in zip(parts, merged, strict=True):
            value, dtype = result, region.kind(node).output_types[0]
            if merge in _LOGICAL:
                value = make.op("Cast", value, DstT=dtype, name=f"{name}/flag")[0]
            if merge == "Mean":
                count = self._collectives.cut(self._shards.shape(region.flow.sources[node][0])).size
                value = make.op(
                    "RealDiv", value, make.constant(count, dtype, name=f"{name}/count"), name=f"{name}/mean"
                )[0]
            shape = [1] * len(region.shape((node, 0)) or ())
            self._edits.become(
                node,
                "Reshape",
                value,
                make.constant(np.array(shape, np.int32), name=f"{name}/shape"),
                T=dtype,
                Tshape=DataType.INT32,
            )
