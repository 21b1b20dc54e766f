"""How shards travel between the ranks of a mesh: the program is one for all ranks, so nothing may differ by rank.

    7 elements over dp=2:    parts of 4 rows    0 1 2 3 | 4 5 6 -        both ranks keep 4, the last one is padding
    begin of a shard         Mul(position of the rank along dp, 4)       a constant with `_of_rank`, times the part
    sum of a shard           Sum(Select(is true, shard, 0))              padding does not count

Shards lie along dp, or edp for experts; the other axes over which a gradient is summed have peers, with equal shards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...analysis.collective_seats import AXIS, MESH
from ...builder.handles import Tensor
from ...dtypes import DataType, numpy_dtype
from ..zero.collectives import GroupKeys, ShardCollectives
from ..zero.edits import Edits
from ..zero.layout import FIRST, Cut, Sharding, ShardPlace
from .marks import OF_RANK
from .stage_ranks import StageRanks

_SHARDED_ALONG = ("dp", "edp")


class ShardAxes(NamedTuple):
    """The axis along which shards lie, and the axes of peers, joined; "" if there are none."""

    inside: str
    peers: str


def shard_axes(axes: str) -> ShardAxes | None:
    """How gradients that are summed over some axes are sharded; None if they lie along no axis of data."""
    names = axes.split("+")
    inside = next((name for name in names if name in _SHARDED_ALONG), None)
    return None if inside is None else ShardAxes(inside, "+".join(name for name in names if name != inside))


class MeshCollectives(ShardCollectives):
    """Makes collectives along axes of a mesh; `keys` gives their instances."""

    def __init__(
        self, edits: Edits, sharding: Sharding, keys: GroupKeys, *, axes: ShardAxes, ranks: StageRanks
    ) -> None:
        super().__init__(edits, sharding, keys)
        self._axes, self._ranks = axes, ranks
        self._of_rank: dict[tuple[str, str], Tensor] = {}
        self._begins: dict[tuple[int, str], Tensor] = {}

    def cut(self, shape: tuple[int, ...]) -> Cut:
        """How a tensor of that shape is cut: into parts of equal size."""
        return Cut(shape, self.sharding.parts, keeps_padding=True)

    def without_padding(self, shard: Tensor, cut: Cut, merge: str, name: str) -> Tensor:
        """A shard with what changes nothing, when it is merged by `merge`, in place of padding."""
        if cut.is_even:
            return shard
        make = self._edits.make
        ones = make.op("Fill", self.fixed((cut.size,)), np.float32(1), name=f"{name}/ones")[0]
        is_true = make.op("Greater", self.shard(ones, cut, f"{name}/ones/shard"), np.float32(0), name=f"{name}/is_true")
        neutral = make.constant(_neutral(merge, shard.dtype), shard.dtype, name=f"{name}/neutral")
        return make.op("SelectV2", is_true, shard, neutral, name=f"{name}/without_padding")[0]

    def numbers(self, value: Callable[[ShardPlace], Any], name: str) -> Tensor:
        """A constant of int32, which is the same everywhere."""
        return self.fixed(tuple(value(FIRST)))

    def _begin(self, cut: Cut, name: str) -> Tensor:
        key = cut.part, self._edits.device
        if key not in self._begins:
            position = self._constant("position", self._axes.inside)
            self._begins[key] = self._edits.make.op("Mul", position, self.fixed((cut.part,)), name=name)[0]
        return self._begins[key]

    def _key(self, name: str) -> Tensor:
        return self._constant("key", self._axes.inside)

    def _constant(self, what: str, axes: str) -> Tensor:
        """A constant of the stage that differs by rank, made once."""
        key = f"{what}:{axes}", self._edits.device
        if key not in self._of_rank:
            mesh, rank = self._ranks.mesh, self._ranks.of(self._edits.device)
            value = mesh.position(axes, rank) if what == "position" else mesh.key(axes, rank)
            name, attrs = f"zero/{what}/{axes.replace(':', '_')}", {OF_RANK: key[0]}
            self._of_rank[key] = self._edits.make.constant(value, DataType.INT32, name=name, attrs=attrs)
        return self._of_rank[key]

    def _marks(self, *, peers: bool) -> dict[str, Any]:
        return {MESH: self._ranks.mesh.text, AXIS: self._axes.peers if peers else self._axes.inside}

    def _attrs(self, name: str, *, peers: bool) -> dict[str, Any]:
        axes, mesh = self._axes.peers if peers else self._axes.inside, self._ranks.mesh
        return {
            "group_size": mesh.size(axes),
            "group_key": mesh.key(axes, self._ranks.of(self._edits.device)),
            "instance_key": next(self._keys.instances),
            **self._marks(peers=peers),
        }


def _neutral(merge: str, dtype: DataType) -> Any:
    """The element that a merge leaves as it is."""
    if merge in ("and", "or"):
        return merge == "and"
    if merge.upper() in ("MAX", "MIN"):
        numbers = numpy_dtype(dtype)
        limits = np.iinfo(numbers) if np.issubdtype(numbers, np.integer) else None
        if limits is None:
            return -np.inf if merge == "Max" else np.inf
        return limits.min if merge == "Max" else limits.max
    return 1 if merge == "Mul" else 0
