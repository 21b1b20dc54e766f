"""Shards and whole tensors on demand: each is made once, in the cheapest way that is right.

    shard of a tensor of the region      is there already
    shard of a gradient                  what the reduce-scatter gave
    shard of a variable's value          read from the variable of shards
    shard of anything else               cut out of the whole tensor
    whole tensor of shards               gathered
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...builder.handles import Tensor
from ...edge_ends import Output
from .collectives import ShardCollectives
from .edits import Edits
from .region import ShardRegion, ShardedVariable

_SCALAR = np.zeros(0, np.int32)
"""the shape of a scalar"""


class Shards:
    """The shards of one step.

    `handles` are the variables of shards; `value_shard` reads one, or is None if shards are cut out of the whole.
    """

    def __init__(
        self,
        region: ShardRegion,
        edits: Edits,
        collectives: ShardCollectives,
        handles: Mapping[int, Tensor],
        value_shard: Callable[[ShardedVariable], Tensor | None],
    ) -> None:
        self.region = region
        self.edits = edits
        self.collectives = collectives
        self.moved: dict[Output, Tensor] = {}
        """outputs of the region that another node has now"""
        self.of_gradient: dict[Output, Tensor] = {}
        """what reduce-scatters gave"""
        self._handles = handles
        self._value_shard = value_shard
        self._shards: dict[Output, Tensor] = {}
        self._wholes: dict[Output, Tensor] = {}

    def shard(self, output: Output) -> Tensor:
        """The shard of a tensor; a scalar of one that has a single element."""
        if output not in self._shards:
            with self.edits.beside(output[0]):
                self._shards[output] = self._made_shard(output)
        return self._shards[output]

    def is_shard(self, output: Output) -> bool:
        """Whether nothing holds the whole of a tensor that the region reads."""
        region = self.region
        if output in region.sharded or output in region.seeds or output[0] in region.variables:
            return True
        variable = region.read_of(output)
        return variable is not None and self._value_shard(variable) is not None

    def whole(self, output: Output) -> Tensor:
        """The whole of a tensor."""
        if not self.is_shard(output):
            return self.edits.tensor(output)
        if output not in self._wholes:
            cut, name = self.collectives.cut(self.shape(output)), self._name(output, "whole")
            with self.edits.beside(output[0]):
                self._wholes[output] = self.collectives.gather([self.shard(output)], [cut], name)[0][0]
        return self._wholes[output]

    def shape(self, output: Output) -> tuple[int, ...]:
        """The shape of the whole tensor, which is known."""
        if output[0] in self.region.variables:
            return self.region.variables[output[0]].shape
        return self.region.sharded.get(output) or tuple(int(size or 0) for size in self.region.shape(output) or ())

    def _made_shard(self, output: Output) -> Tensor:
        region = self.region
        if output in self.moved:
            return self.moved[output]
        if output in region.sharded:
            return self.edits.tensor(output)
        if output in self.of_gradient:
            return self.of_gradient[output]
        if output[0] in region.variables:
            return self._handles[output[0]]
        variable = region.read_of(output)
        value = None if variable is None else self._value_shard(variable)
        if value is not None:
            return value
        whole = self.edits.tensor(output)
        if region.is_single(output):
            if region.shape(output) == ():
                return whole
            return self.edits.make.op("Reshape", whole, _SCALAR, name=self._name(output, "scalar"))[0]
        return self.collectives.shard(whole, self.collectives.cut(self.shape(output)), self._name(output, "shard"))

    def _name(self, output: Output, what: str) -> str:
        node, port = output
        return f"zero/{self.region.graph.node_name(node)}/{what}" + (f"_{port}" if port else "")
