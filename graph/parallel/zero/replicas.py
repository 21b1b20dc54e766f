"""Sharding as part of replication: before the program of replica 0 is copied, and after."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

import numpy as np

from ....errors import InvalidArgumentError
from ...graph import Graph
from ...ops.properties import NodeProperties
from ..training_step import TrainingStep
from .collectives import GroupKeys
from .layout import FIRST, Patch, Sharding, ShardPlace, ranks_of
from .outside import join_outside
from .step import ShardedStep, ZeroOptions, shard_step

ByReplica = Callable[[int], NodeProperties]
"""the properties of a node on the replica of a number"""


class ShardedReplicas:
    """A training step that is sharded over replicas; `step` is what is left to replicate."""

    def __init__(
        self,
        step: TrainingStep,
        devices: Sequence[Sequence[str]],
        options: ZeroOptions,
        outputs: Collection[int],
        first_group: int,
        *,
        averages: bool,
    ) -> None:
        """Group keys from `first_group` on are free; raises as `shard_step` and `Sharding.of`."""
        sharding = Sharding.of(len(devices), options.group)
        keys = GroupKeys(first_group)
        self.sharded: ShardedStep = shard_step(step, sharding, options, keys, mean=averages, outputs=sorted(outputs))
        self.step = self.sharded.step
        ranks = _common_ranks(devices)
        self.places = [sharding.place(rank) for rank in ranks]
        self._members = sorted((p.position, n) for n, p in enumerate(self.places) if p.group == self.places[0].group)
        self._patch_first()

    @property
    def next_group(self) -> int:
        """The first group key that is free."""
        return self.sharded.last_group + 1

    def _patch_first(self) -> None:
        """Gives replica 0 what belongs to its place, if its device is not the first."""
        graph = self.step.graph
        if self.places[0] != FIRST:
            for node, properties in self.by_rank({}).items():
                graph.set_node_properties(node, properties(0))

    def by_rank(self, others: Mapping[int, ByReplica]) -> dict[int, ByReplica]:
        """By node its properties on each replica; `others` are those of nodes that name something of the replica."""
        graph = self.step.graph
        found = {node: properties for node, properties in others.items() if node not in self.sharded.collectives}
        for patch in self.sharded.patches:
            node = graph.find_id(patch.node)
            assert node is not None
            found[node] = _Patched(patch, graph.node_properties(node), found.get(node), self.places)
        return found

    def join_outside(self, graph: Graph, prefixes: Sequence[str]) -> None:
        """Gives readers outside the step whole values; `graph`, that of all replicas, is changed."""
        ranks = [replica for _, replica in self._members]
        join_outside(graph, self.sharded.outside, ranks, lambda n, name: f"{prefixes[n]}{name}" if n else name)


def _common_ranks(devices: Sequence[Sequence[str]]) -> list[int]:
    """The rank of each replica; InvalidArgumentError if it is another one on another of its devices."""
    ranks, *others = [ranks_of(of_all) for of_all in zip(*devices, strict=True)]
    if any(other != ranks for other in others):
        raise InvalidArgumentError(
            f"zero: the devices of replicas, {devices}, are not in one order, which shards go by; give each replica "
            "devices that all come before those of the next"
        )
    return ranks


class _Patched:
    """The properties of a node with a patch, by replica; those of places with one value are one object."""

    def __init__(self, patch: Patch, kind: NodeProperties, own: ByReplica | None, places: Sequence[ShardPlace]) -> None:
        self._patch, self._kind, self._own, self._places = patch, kind, own, places
        self._known: dict[Hashable, NodeProperties] = {}

    def __call__(self, replica: int) -> NodeProperties:
        place = self._places[replica]
        if self._own is not None:
            return self._patch.properties(self._own(replica), place)
        value = self._patch.value(place)
        key = value.tobytes() if isinstance(value, np.ndarray) else value
        if key not in self._known:
            self._known[key] = self._patch.properties(self._kind, place)
        return self._known[key]
