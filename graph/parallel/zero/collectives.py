"""The nodes by which shards become whole tensors and whole tensors become shards.

Several tensors travel in one collective. Each is padded to parts of equal size, and the parts of one member are put
side by side. Tensors a (4 elements) and b (3) over two members:

    scatter    a -> [[a0 a1] [a2 a3]]   b -> [[b0 b1] [b2 -]]   joined [[a0 a1 b0 b1] [a2 a3 b2 -]]
               reduce-scatter gives member 0 the sums of a0 a1 b0 b1, member 1 those of a2 a3 b2 -
    gather     the other way round

Nodes are made for replica 0. What differs on other replicas is the value of an attr, and noted as a `Patch`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ...builder.handles import Tensor
from ...dtypes import DataType, base_type
from .edits import Edits
from .layout import FIRST, Cut, Patch, Sharding, ShardPlace


@dataclass(eq=False, slots=True)
class GroupKeys:
    """Numbers by which collectives find each other.

    Groups have keys from `first_group` on: one per group of shards, then one per set of peers, for each of the devices
    that a replica has. `instances` is shared by all that adds collectives to a graph.
    """

    first_group: int = 1
    instances: count[int] = field(default_factory=lambda: count(1))


class Scattered(NamedTuple):
    """Shards, and the tensor of the whole gradients that they were made of."""

    pieces: list[Tensor]
    buffer: Tensor


class ShardCollectives:
    """Makes collectives over the members of a group, and over peers of several groups."""

    def __init__(self, edits: Edits, sharding: Sharding, keys: GroupKeys) -> None:
        self.sharding = sharding
        self.patches: list[Patch] = []
        self.nodes: list[str] = []
        """the collectives"""
        self._edits = edits
        self._keys = keys
        self._devices: dict[str, int] = {}
        self._fixed: dict[tuple[Hashable, str], Tensor] = {}

    def cut(self, shape: tuple[int, ...]) -> Cut:
        """How a tensor of that shape is cut."""
        return Cut(shape, self.sharding.parts)

    def numbers(self, value: Callable[[ShardPlace], Any], name: str) -> Tensor:
        """A constant of int32 with a value for each place."""
        tensor = self._edits.make.constant(np.array(value(FIRST), np.int32), name=name)
        if self._differs(value):
            self.patches.append(Patch(tensor.node, "value", lambda place: np.array(value(place), np.int32)))
        return tensor

    def fixed(self, value: int | tuple[Any, ...]) -> Tensor:
        """A constant of int32 that is the same everywhere, as a number or nested tuples; a device has one of each."""
        key = value, self._edits.device
        if key not in self._fixed:
            self._fixed[key] = self._edits.make.constant(np.array(value, np.int32), name="zero/fixed")
        return self._fixed[key]

    def _differs(self, value: Callable[[ShardPlace], Any]) -> bool:
        """Whether a value is not the same everywhere."""
        first, sharding = value(FIRST), self.sharding
        places = [ShardPlace(p, 0) for p in range(sharding.parts)] + [ShardPlace(0, g) for g in range(sharding.groups)]
        return any(value(place) != first for place in places)

    # One member

    def shard(self, whole: Tensor, cut: Cut, name: str) -> Tensor:
        """The member's rows of a tensor that it has as a whole."""
        make = self._edits.make
        if cut.keeps_padding:
            flat = self._padded_parts(whole, cut, name)
        else:
            flat = make.op("Reshape", whole, self.fixed((-1,)), name=f"{name}/flat")[0]
        begin = self._begin(cut, f"{name}/begin")
        rows = self.numbers(lambda place: [cut.rows(place)], f"{name}/rows")
        return make.op("Slice", flat, begin, rows, name=name)[0]

    def _begin(self, cut: Cut, name: str) -> Tensor:
        """Where the member's rows begin, as a vector of one."""
        return self.numbers(lambda place: [cut.begin(place)], name)

    def _padded_parts(self, whole: Tensor, cut: Cut, name: str) -> Tensor:
        """A whole tensor as a vector of equal parts."""
        make = self._edits.make
        flat = make.op("Reshape", whole, self.fixed((-1,)), name=f"{name}/flat")[0]
        if cut.is_even:
            return flat
        return make.op("Pad", flat, self.fixed(((0, cut.padded - cut.size),)), name=f"{name}/padded")[0]

    def _padded_shard(self, shard: Tensor, cut: Cut, name: str) -> Tensor:
        """A shard with the rows of a whole part."""
        if cut.has_whole_parts:
            return shard
        missing = self.numbers(lambda place: [[0, cut.part - cut.rows(place)]], f"{name}/missing")
        return self._edits.make.op("Pad", shard, missing, name=f"{name}/padded")[0]

    def _true_rows(self, part: Tensor, cut: Cut, name: str) -> Tensor:
        """A part without the padding that shards do not keep."""
        if cut.has_whole_parts:
            return part
        rows = self.numbers(lambda place: [cut.rows(place)], f"{name}/rows")
        return self._edits.make.op("Slice", part, self.fixed((0,)), rows, name=f"{name}/true")[0]

    # All members

    def scatter(self, wholes: Sequence[Tensor], cuts: Sequence[Cut], name: str, *, mean: bool) -> Scattered:
        """The member's shard of the sum, or mean, over all replicas of each tensor; all have one element type."""
        make, parts = self._edits.make, self.sharding.parts
        flat = [self._padded_parts(w, c, f"{name}/{n}") for n, (w, c) in enumerate(zip(wholes, cuts, strict=True))]
        if len(flat) > 1:
            rows = [
                make.op("Reshape", t, self.fixed((parts, c.part)), name=f"{name}/parts")
                for t, c in zip(flat, cuts, strict=True)
            ]
            joined = make.op("ConcatV2", [row[0] for row in rows], self.fixed(1), name=f"{name}/bucket")
            flat = [make.op("Reshape", joined, self.fixed((-1,)), name=f"{name}/bucket/flat")[0]]
        final = b"Div" if mean else b"Id"
        result = buffer = flat[0]
        if parts > 1:
            result = self._reduce_scatter(result, final, name)
        if self.sharding.groups > 1:
            result = self._reduce(result, "Add", final, f"{name}/peers", peers=True)
        pieces = self._split(result, [cut.part for cut in cuts], 0, name)
        true = [self._true_rows(p, c, f"{name}/{n}") for n, (p, c) in enumerate(zip(pieces, cuts, strict=True))]
        return Scattered(true, buffer)

    def gather(self, shards: Sequence[Tensor], cuts: Sequence[Cut], name: str) -> tuple[list[Tensor], str]:
        """The whole tensors of the shards that the members have, and the node of the collective."""
        make, parts = self._edits.make, self.sharding.parts
        dtype = base_type(shards[0].dtype)
        padded = [self._padded_shard(s, c, f"{name}/{n}") for n, (s, c) in enumerate(zip(shards, cuts, strict=True))]
        joined = padded[0] if len(padded) == 1 else make.op("ConcatV2", padded, self.fixed(0), name=f"{name}/bucket")[0]
        if dtype is DataType.BFLOAT16:  # a gather has none
            joined = make.op("Bitcast", joined, type=DataType.HALF, name=f"{name}/bits")[0]
        gathered = self._gather(joined, sum(cut.part for cut in cuts), name)
        node = gathered.node
        if dtype is DataType.BFLOAT16:
            gathered = make.op("Bitcast", gathered, type=dtype, name=f"{name}/values")[0]
        if len(cuts) > 1:
            width = sum(cut.part for cut in cuts)
            gathered = make.op("Reshape", gathered, self.fixed((parts, width)), name=f"{name}/parts")[0]
        pieces = self._split(gathered, [cut.part for cut in cuts], 1, name)
        return [self._whole(p, c, f"{name}/{n}") for n, (p, c) in enumerate(zip(pieces, cuts, strict=True))], node

    def without_padding(self, shard: Tensor, cut: Cut, merge: str, name: str) -> Tensor:
        """A shard whose padding, if it keeps any, does not count when it is merged by `merge`."""
        return shard

    def merged(self, scalars: Sequence[Tensor], merge: str, name: str) -> list[Tensor]:
        """Scalars of one type, each merged over the members of a group."""
        if self.sharding.parts == 1:
            return list(scalars)
        make = self._edits.make
        packed = scalars[0] if len(scalars) == 1 else make.op("Pack", list(scalars), name=f"{name}/packed")[0]
        merged = self._reduce(packed, merge, b"Id", name)
        if len(scalars) == 1:
            return [merged]
        return list(make.op("Unpack", merged, num=len(scalars), name=f"{name}/each"))

    def _whole(self, piece: Tensor, cut: Cut, name: str) -> Tensor:
        """A tensor of its parts, one after the other, or one below the other."""
        make = self._edits.make
        if not cut.is_even:
            flat = make.op("Reshape", piece, self.fixed((-1,)), name=f"{name}/flat")
            piece = make.op("Slice", flat, self.fixed((0,)), self.fixed((cut.size,)), name=f"{name}/true")[0]
        return make.op("Reshape", piece, self.fixed(cut.shape), name=f"{name}/whole")[0]

    def _split(self, tensor: Tensor, sizes: Sequence[int], axis: int, name: str) -> list[Tensor]:
        if len(sizes) == 1:
            return [tensor]
        settings = {"num_split": len(sizes), "Tlen": DataType.INT32}
        return list(
            self._edits.make.op(
                "SplitV", tensor, self.fixed(tuple(sizes)), self.fixed(axis), name=f"{name}/split", attrs=settings
            )
        )

    def _reduce(self, value: Tensor, merge: str, final: bytes, name: str, peers: bool = False) -> Tensor:
        """The reduction over the member's group, or its peers, in place of `value`."""
        attrs = self._attrs(name, peers=peers) | {"merge_op": merge.encode(), "final_op": final, "subdiv_offsets": [0]}
        return self._added("CollectiveReduce", value, name, attrs)

    def _reduce_scatter(self, value: Tensor, final: bytes, name: str) -> Tensor:
        """The member's part of the sum, or mean, over its group; there is no form of it with attrs."""
        where = [self.fixed(self.sharding.parts), self._key(name), self.fixed(next(self._keys.instances)), []]
        attrs = {"merge_op": b"Add", "final_op": final, **self._marks(peers=False)}
        return self._edits.make.op("CollectiveReduceScatterV2", value, *where, name=name, attrs=attrs)[0]

    def _key(self, name: str) -> Tensor:
        """The key of the member's group."""
        first = self._first_group()
        return self.numbers(lambda place: first + place.group, f"{name}/group_key")

    def _marks(self, *, peers: bool) -> dict[str, Any]:
        """Other attrs of a collective of the group, or of peers."""
        return {}

    def _gather(self, value: Tensor, rows: int, name: str) -> Tensor:
        """The parts of all members of a group, one after the other."""
        attrs = self._attrs(name, peers=False) | {"shape": (rows * self.sharding.parts,)}
        return self._added("CollectiveGather", value, name, attrs)

    def _added(self, op: str, value: Tensor, name: str, attrs: dict[str, Any]) -> Tensor:
        node = self._edits.make.op(op, value, name=name, attrs=attrs)
        self.nodes.append(node.name)
        return node[0]

    def _attrs(self, name: str, *, peers: bool) -> dict[str, Any]:
        """Attrs of the next collective of the member's group, or of its peers: who has equal shards in all groups."""
        first, sharding = self._first_group(), self.sharding

        def key(place: ShardPlace) -> int:
            return first + sharding.groups + place.position if peers else first + place.group

        if self._differs(key):
            self.patches.append(Patch(name, "group_key", key))
        size = sharding.groups if peers else sharding.parts
        return {"group_size": size, "group_key": key(FIRST), "instance_key": next(self._keys.instances)}

    def _first_group(self) -> int:
        """The first key of groups of the devices of new nodes: a replica may have several."""
        number = self._devices.setdefault(self._edits.device, len(self._devices))
        return self._keys.first_group + number * (self.sharding.groups + self.sharding.parts)

    @property
    def last_group(self) -> int:
        """The highest group key in use."""
        return self._keys.first_group + max(1, len(self._devices)) * (self.sharding.groups + self.sharding.parts) - 1
