"""One replication in progress: feeds, gradients, then the copies and what joins them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from ...columns import SINK_ID
from ...edge_ends import EdgeEnds, Output
from ...graph import Graph
from ...ops.properties import NodeProperties
from ..devices_of_nodes import host_of
from ..training_step import TrainingStep
from ..zero.replicas import ShardedReplicas
from ..zero.step import ZeroOptions
from .buckets import reduce_gradients
from .copies import ReplicaProgram, id_of_copy, replicated
from .devices import ReplicaDevices, device_maps
from .feeding import split_batch, take_whole
from .outputs import CONCAT, MEAN, SUM, JoinedOutput, join_outputs
from .own_names import own_names
from .parameter_server import without_parameters
from .program import Parts, program_of
from .refusals import check_sources
from .rewriting import Rewriting, group_keys
from .seeds import seed_by_rank


class Replication:
    """The training step that is replicated, the program of a replica, and what is joined."""

    def __init__(
        self,
        step: TrainingStep,
        devices: Sequence[ReplicaDevices],
        outputs: Mapping[Output, str],
        *,
        averages: bool,
        zero: ZeroOptions | None = None,
    ) -> None:
        """`outputs` says of named outputs how those of the replicas are joined, `zero` what is sharded."""
        used = [kind for kind in step.flow.kinds if kind is not None]
        self.stride = max(group_keys({id(kind): kind for kind in used}.values()), default=0) + 1
        first_key = 1 if self.stride == 1 else self.stride * len(devices)
        self.sharded: ShardedReplicas | None = None
        if zero is not None and len(devices) > 1:
            wanted = {node for node, _ in outputs}
            self.sharded = ShardedReplicas(step, devices, zero, wanted, first_key, averages=averages)
            step, first_key = self.sharded.step, self.sharded.next_group
        self.step, self.devices, self.outputs = step, devices, dict(outputs)
        self.size = len(devices)
        self.rewriting = Rewriting(step, self.size, first_key, averages=averages)
        self.fed_by_parts = False
        self.server = ""
        self.parts = self._parts()
        self.maps = device_maps(step.graph, self.parts.inside, devices)
        self.fixed: dict[int, str] = {}
        self.splits: frozenset[str] = frozenset()

    def _ends(self) -> list[int]:
        return [self.step.loss[0], *(node for node, _ in self.outputs)]

    def by_rank(self, properties: Mapping[int, Callable[[int], NodeProperties]]) -> None:
        """Says of nodes which properties they have in each replica."""
        names = self.step.graph.node_name
        self.rewriting.by_rank.update({names(node): of_rank for node, of_rank in properties.items()})

    def _parts(self, placeholders: Collection[int] = ()) -> Parts:
        parts = program_of(self.step, self._ends(), placeholders=placeholders)
        return parts if self.sharded is None else parts._replace(inside=parts.inside | self.sharded.sharded.own)

    def feed(self, *, by_parts: bool) -> None:
        """Gives each replica its rows: by placeholders of its own, or by splitting what is fed."""
        self.fed_by_parts = by_parts
        if by_parts:
            self.parts = self._parts(self.step.batch)
        elif self.size > 1:
            take_whole(self.step.graph, self.step.batch, self.size)
            self.splits = split_batch(self.rewriting, self.step.batch, self.parts.inside, "")
        check_sources(self.step, self.parts.step)

    def reduce(self, bucket_bytes: int) -> None:
        """Adds gradients over all replicas by collectives."""
        if self.size > 1:
            reduce_gradients(self.rewriting, self.step.gradients, bucket_bytes)

    def serve(self, device: str) -> None:
        """Leaves variables and updates on one device."""
        self.server = device
        self.parts, fixed = without_parameters(self.step, self.parts, self._ends())
        self.fixed = dict.fromkeys(fixed, device)

    def graph(self) -> Graph:
        """The graph of all replicas."""
        if self.size > 1:
            seed_by_rank(self.rewriting, self.parts.step)
        edges = self.rewriting.edges()
        program = self._program(edges)
        new = replicated(
            program, {node: f"{program.prefixes[0]}{self.step.graph.node_name(node)}" for node in self._renamed()}
        )
        self._join(new, program)
        if self.sharded is not None:
            self.sharded.join_outside(new, program.prefixes)
        new.fix_source_and_sink_edges()
        return new

    def _renamed(self) -> list[int]:
        return sorted({node for node, _ in self.outputs}) if self.size > 1 else []

    def _program(self, edges: EdgeEnds) -> ReplicaProgram:
        r = self.rewriting
        splits = frozenset(r.e.id_of(name) for name in self.splits)
        ids = {*self.parts.inside, *range(r.first_new, r.graph.num_node_ids)} - splits - self._of_splits(edges, splits)
        host = host_of(self.devices[0][0])
        fixed = {**self.fixed, **dict.fromkeys({*splits, *self._of_splits(edges, splits)}, host)}
        nodes, prefixes = np.array(sorted(ids), np.int64), self._prefixes()
        return ReplicaProgram(
            r.graph,
            edges,
            nodes,
            prefixes,
            self.maps,
            fixed,
            splits,
            {**self._own_names(prefixes), **{r.e.id_of(name): by_rank for name, by_rank in r.by_rank.items()}},
            self.parts.assigns,
            frozenset(self.parts.waits),
        )

    def _of_splits(self, edges: EdgeEnds, splits: frozenset[int]) -> set[int]:
        """The constants that say along which axis the batch is split."""
        into = np.isin(edges.dst, list(splits)) & (edges.dst_input == 0)
        return set(edges.src[into].tolist())

    def _own_names(self, prefixes: Sequence[str]) -> dict[int, Callable[[int], NodeProperties]]:
        """The properties by rank of what the graph had before."""
        before = [node for node in self.parts.inside if node < self.rewriting.first_new]
        before += self.parts.assigns
        found = own_names(self.step.graph, before, prefixes, self.stride)
        return found if self.sharded is None else self.sharded.by_rank(found)

    def _prefixes(self) -> list[str]:
        """What is put before the names of each replica, so that they are new."""
        taken = {name.split("/", 1)[0] for name in self.step.graph.names() if name is not None}
        base = "replica"
        while any(f"{base}_{rank}" in taken for rank in range(self.size)):
            base += "_"
        return [f"{base}_{rank}/" for rank in range(self.size)]

    def _join(self, new: Graph, program: ReplicaProgram) -> None:
        """Joins the named outputs, and with a device of parameters the gradients."""
        if self.size == 1:
            return
        inside = set(program.nodes.tolist())
        step, names = self.step, self.step.graph.node_name

        def copies(output: Output) -> list[Output]:
            return [(id_of_copy(program, output[0], rank), output[1]) for rank in range(self.size)]

        joined = {output: JoinedOutput(how, copies(output)) for output, how in self.outputs.items()}
        readers = set(range(SINK_ID + 1, program.graph.num_node_ids)) - inside
        join_outputs(new, joined, {node: names(node) for node, _ in self.outputs}, readers)
        if self.server:
            how = MEAN if self.rewriting.averages else SUM
            gradients = {g: JoinedOutput(CONCAT if g in step.joined else how, copies(g)) for g in step.gradients}
            of_all = {node: f"parameters/{names(node)}" for node, _ in gradients}
            join_outputs(new, gradients, of_all, set(self.rewriting.readers) - inside, device=self.server)
