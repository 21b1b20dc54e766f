"""Sharding as part of replication: before the program of replica 0 is copied, and after."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from ..graph import Graph
from ..ops.properties import NodeProperties
from .replica_devices import ReplicaDevices
from .training_step import TrainingStep
from .zero import ShardedStep, ZeroOptions, shard_step
from .zero_collectives import GroupKeys
from .zero_layout import Patch, Place, Sharding, ranks_of
from .zero_outside import join_outside


class ShardedReplicas:
    """A training step that is sharded over replicas; `step` is what is left to replicate."""

    def __init__(
        self,
        step: TrainingStep,
        devices: Sequence[ReplicaDevices],
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
        ranks = ranks_of([entry[0] for entry in devices])
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
        for name, properties in self.by_rank().items():
            node = graph.find_id(name)
            assert node is not None
            graph.set_node_properties(node, properties(0))

    def by_rank(self) -> dict[str, Callable[[int], NodeProperties]]:
        """By the name of a node its properties on the replica of a number."""
        graph = self.step.graph
        kinds = {patch.node: graph.node(graph.find_id(patch.node) or 0).properties for patch in self.sharded.patches}
        return {p.node: partial(_on_replica, p, kinds[p.node], self.places) for p in self.sharded.patches}

    def join_outside(self, graph: Graph, prefixes: Sequence[str]) -> None:
        """Gives readers outside the step whole values; `graph`, that of all replicas, is changed."""
        ranks = [replica for _, replica in self._members]
        join_outside(graph, self.sharded.outside, ranks, lambda n, name: f"{prefixes[n]}{name}" if n else name)


def _on_replica(patch: Patch, kind: NodeProperties, places: Sequence[Place], replica: int) -> NodeProperties:
    return patch.properties(kind, places[replica])
