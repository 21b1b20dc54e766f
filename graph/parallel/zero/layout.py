"""How tensors are cut into shards, and who holds which.

A tensor is flattened and cut into as many parts of equal size as a group has members; the last parts may be shorter, or
have nothing. Collectives need equal parts, so shards are padded for them, but what a member keeps are its true rows:

    7 elements over 3 members:   parts of 3 rows   0 1 2 | 3 4 5 | 6 - -   shards of 3, 3 and 1 rows

Replicas 0, 1, 2, ... are cut into groups of neighbours, and shards lie inside a group. With 6 replicas and groups of 3:

    group 0: replicas 0 1 2      group 1: replicas 3 4 5      peers, with equal shards: 0 3, 1 4, 2 5
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ...attrs import encode
from ...device_name import parse_full_name
from ...ops.properties import NodeProperties
from ...tensor import numpy_to_tensor


@dataclass(frozen=True, slots=True)
class ShardPlace:
    """Where one replica stands: its place in its group, and the group's number."""

    position: int
    group: int


@dataclass(frozen=True, slots=True)
class Sharding:
    """`groups` groups with `parts` members each."""

    parts: int
    groups: int = 1

    @classmethod
    def of(cls, replicas: int, zero_group: int | None) -> Sharding:
        """Groups of `zero_group` of the replicas, or one of all; InvalidArgumentError if that leaves some over."""
        parts = replicas if zero_group is None else zero_group
        if parts < 1 or replicas % parts:
            fitting = [n for n in range(1, replicas + 1) if replicas % n == 0]
            raise InvalidArgumentError(
                f"zero_group={zero_group}: {replicas} replicas cannot be cut into groups of that size; "
                f"choose one of {', '.join(map(str, fitting))}"
            )
        return cls(parts, replicas // parts)

    def place(self, rank: int) -> ShardPlace:
        """The place of the replica of that rank, which counts in the order of full device names."""
        return ShardPlace(rank % self.parts, rank // self.parts)


@dataclass(frozen=True, slots=True)
class Cut:
    """A tensor of some shape, flattened and cut into `parts` parts.

    With `keeps_padding` shards are parts with their padding, so that all members have equally much.
    """

    shape: tuple[int, ...]
    parts: int
    keeps_padding: bool = False

    @property
    def size(self) -> int:
        """Elements of the whole tensor."""
        return prod(self.shape)

    @property
    def part(self) -> int:
        """Elements of a part, padding included."""
        return -(-self.size // self.parts)

    @property
    def padded(self) -> int:
        """Elements of all parts."""
        return self.part * self.parts

    @property
    def is_even(self) -> bool:
        """Whether no part is padded."""
        return self.padded == self.size

    @property
    def has_whole_parts(self) -> bool:
        """Whether shards are whole parts, on every member."""
        return self.is_even or self.keeps_padding

    def begin(self, place: ShardPlace) -> int:
        """The first element of a shard; the size of the tensor for an empty one."""
        return min(place.position * self.part, self.padded if self.keeps_padding else self.size)

    def rows(self, place: ShardPlace) -> int:
        """The elements of a shard."""
        if self.keeps_padding:
            return self.part
        return min(self.begin(place) + self.part, self.size) - self.begin(place)


@dataclass(frozen=True, slots=True)
class Patch:
    """An attr of a node that has another value on every replica; `value` is in Python form."""

    node: str
    attr: str
    value: Callable[[ShardPlace], Any]

    def properties(self, kind: NodeProperties, place: ShardPlace) -> NodeProperties:
        """The properties of the node on one replica; `kind` are those on replica 0."""
        value = self.value(place)
        if isinstance(value, np.ndarray):
            return kind.with_attr(self.attr, encode(numpy_to_tensor(value), "tensor"))
        return kind.with_attr(self.attr, encode(value, kind.op_def.attrs[self.attr].type))


FIRST = ShardPlace(0, 0)
"""the place of replica 0, for which a rewritten graph is made before it is patched for others"""


def ranks_of(devices: Sequence[str]) -> list[int]:
    """The rank of each device: collectives count their members by job, replica, task, kind and number of devices."""
    names = [parse_full_name(device) for device in devices]
    keys = [(name.job or "", name.replica or 0, name.task or 0, name.type or "", name.id or 0) for name in names]
    rank = {key: number for number, key in enumerate(sorted(keys))}
    return [rank[key] for key in keys]
