"""Sharding as part of replication: before the program of replica 0 is copied, and after."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from ...graph import Graph
from ...ops.properties import NodeProperties
from ..training_step import TrainingStep
from .step import ShardedStep, ZeroOptions, shard_step
from .collectives import GroupKeys
from .layout import FIRST, Patch, Place, Sharding, ranks_of
from .outside import join_outside


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
            before = found.get(node) or partial(_unchanged, graph.node_properties(node))
            found[node] = partial(_patched, patch, before, self.places)
        return found

    def join_outside(self, graph: Graph, prefixes: Sequence[str]) -> None:
        """Gives readers outside the step whole values; `graph`, that of all replicas, is changed."""
        ranks = [replica for _, replica in self._members]
        join_outside(graph, self.sharded.outside, ranks, lambda n, name: f"{prefixes[n]}{name}" if n else name)


def _unchanged(kind: NodeProperties, _replica: int) -> NodeProperties:
    return kind


def _patched(patch: Patch, before: ByReplica, places: Sequence[Place], replica: int) -> NodeProperties:
    return patch.properties(before(replica), places[replica])
