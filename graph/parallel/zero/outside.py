"""Nodes that are no part of the step and read shards: savers, fetches, summaries.

They belong to one replica and run alone, so that no collective can serve them. Their shards become one tensor by plain
edges from the replicas of the first group:

    zero/outside/m = Identity(m)    on every replica
    m/read on replica 0             Reshape(ConcatV2(those of all members, in order), shape of m)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...builder.extension import Extension
from ...builder.handles import Tensor
from ...graph import Graph
from ..value_flow import is_handle
from .edits import Edits
from .readers import ParameterReaders
from .region import ShardRegion
from .variables import ShardedVariable
from .shards import Shards
from .state import StateShards


@dataclass(frozen=True, slots=True)
class OutsideRead:
    """A tensor of shards, with the shape of the whole, and its readers outside the step: (node, port)."""

    tensor: str
    shape: tuple[int, ...]
    readers: tuple[tuple[str, int], ...]


def outside_reads(
    shards: Shards, state: StateShards, parameters: ParameterReaders
) -> list[OutsideRead]:
    """Gives what is outside the step tensors of its own, and lists them."""
    region, edits = shards.region, shards.edits
    found = []
    for variable in region.variables.values():
        if not state.is_beside(variable):
            for node in variable.read_nodes:
                with edits.beside(node):
                    found += _of_reader(region, edits, state, variable, node, is_replaced=node in parameters.read_nodes)
    for seed in region.seeds:
        readers = _outside(region, *seed)
        if readers:
            for reader, port in readers:
                edits.connect(shards.shard(seed), edits.make.id_of(reader), port)
            found.append(OutsideRead(shards.shard(seed).name, shards.shape(seed), readers))
    for (node, port), shape in region.sharded.items():
        name = region.graph.node_name(node)
        readers = _outside(region, node, port)
        if readers and region.read_of((node, port)) is None and not is_handle(region.kind(node).output_types[port]):
            found.append(OutsideRead(f"{name}:{port}", shape, readers))
    return found


def _of_reader(
    region: ShardRegion, edits: Edits, state: StateShards, variable: ShardedVariable, node: int, *, is_replaced: bool
) -> list[OutsideRead]:
    """What one reader of a variable needs: a node that reads it, or one that reads such a node.

    A read node outside the step, and one that the step no longer needs (`is_replaced`), gives the whole value itself.
    """
    name = region.graph.node_name(node)
    is_read = region.read_of((node, 0)) is variable
    is_inside = region.is_step(node)
    if is_read and (is_replaced or not is_inside):
        readers: tuple[tuple[str, int], ...] = ((name, 0),)
    elif is_read:
        readers = _outside(region, node, 0)
    else:
        ports = [port for port, source in enumerate(region.flow.sources[node]) if source[0] == variable.node]
        readers = () if is_inside else tuple((name, port) for port in ports)
    if not readers:
        return []
    value = state.read(state.handles[variable.node], variable, f"zero/{name}/outside")
    if not is_inside:
        for edge in region.graph.node(node).in_edges():
            if edge.is_control and edge.src.is_op:
                edits.wait(edge.src.name, value.node)
    if readers == ((name, 0),) and is_read:
        edits.become(node, "Identity", value, T=variable.dtype)
    else:
        for reader, port in readers:
            edits.connect(value, edits.make.id_of(reader), port)
    return [OutsideRead(value.name, variable.shape, readers)]


def _outside(region: ShardRegion, node: int, output: int) -> tuple[tuple[str, int], ...]:
    """The readers of an output that are no part of the step."""
    graph = region.graph
    return tuple(
        (graph.node_name(reader), port)
        for out, reader, port in region.outputs_read(node)
        if out == output and not region.is_step(reader)
    )


def join_outside(
    graph: Graph, reads: Sequence[OutsideRead], ranks: Sequence[int], name_on: Callable[[int, str], str]
) -> None:
    """Connects outside readers of replica 0 to the whole values; `graph`, that of all replicas, is changed.

    `ranks` are the replicas with the shards, in their order, `name_on(rank, name)` is the name of a node on a replica.
    """
    make = Extension(graph, graph.functions.lookup)
    wholes: list[Tensor] = []
    for read in reads:
        node, _, port = read.tensor.rpartition(":")
        first = graph.node(make.id_of(name_on(0, node)))
        shards = [make.operation(name_on(rank, node))[int(port)] for rank in ranks]
        with make.within(None, first.requested_device):
            joined = make.op("ConcatV2", shards, 0, name=f"{first.name}/joined")[0] if len(shards) > 1 else shards[0]
            wholes.append(make.op("Reshape", joined, list(read.shape), name=f"{first.name}/whole")[0])
    make.flush()
    for read, whole in zip(reads, wholes, strict=True):
        for reader, port in read.readers:
            graph.update_edge(
                graph.node(make.id_of(whole.node)), whole.port, graph.node(make.id_of(name_on(0, reader))), port
            )
