"""A rank program becomes the graph of all ranks: every stage has a copy for each of its ranks, on a device of its own.

    rank program, mesh pp:2,dp:1,cp:1,tp:2             written out over GPU:0 to GPU:3
    stage 0 on GPU:0, stage 1 on GPU:2                 the same, and rank_1/...: stage 0 on GPU:1, stage 1 on GPU:3
    mesh/tp/key = Const() {_of_rank="key:tp"}          rank_1/mesh/tp/key has the key of rank 1, or of rank 3
    loss, train, tokens                                rank_1/loss, rank_1/train, rank_1/tokens, each for its ranks

Names of the copy begin with the rank that it is on the first stage. Nothing joins the copies but collectives: what a
caller feeds, fetches and runs, it does for each. Functions with something that differs by rank get copies too.

In place of copies, `as_representatives` marks the nodes of the rank program with the number of devices that they stand
for and with the mesh. Then the clock plays them once for all ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ....errors import InvalidArgumentError
from ...analysis.collective_seats import AXIS, MESH
from ...attrs import encode
from ...columns import SINK_ID
from ...edge_ends import EdgeEnds
from ...graph import Graph
from ...library.calls import called_by, calls_functions
from ...ops.properties import NodeProperties
from ...ops.record import NodeClass
from ...protos import AttrValue, FunctionDef, FunctionDefLibrary
from ...tensor import numpy_to_tensor
from ..devices_of_nodes import host_of
from ..replicas.copies import ReplicaProgram, replicated
from ..replicas.own_names import own_names
from .marks import MULTIPLICITY, OF_RANK
from .mesh import Mesh


def prefix_of(rank: int) -> str:
    """What is put before the names of the copy whose first stage is on a rank."""
    return f"rank_{rank}/" if rank else ""


def write_out(graph: Graph, mesh: Mesh, devices: Sequence[str]) -> Graph:
    """The graph of all ranks; `devices` are those of the ranks in order, as nodes request them.

    Nodes of `graph` are on the first device of each stage, or on its host. Raises InvalidArgumentError for another
    number of devices than the mesh has, and for nodes elsewhere.
    """
    if len(devices) != mesh.devices:
        raise InvalidArgumentError(f"mesh {mesh.text} has {mesh.devices} ranks, {len(devices)} devices are given")
    if mesh.per_stage == 1:
        return graph
    return _WritingOut(graph.copy(), mesh, devices).run()


def as_representatives(graph: Graph, mesh: Mesh) -> Graph:
    """The rank program with each node marked by its multiplicity and mesh; the graph is changed and returned."""
    marks = {
        MULTIPLICITY: encode(mesh.per_stage, "int"),
        MESH: encode(mesh.text.encode(), "string"),
    }
    marked: dict[int, NodeProperties] = {}
    for node in graph.op_nodes():
        kind = node.properties
        if id(kind) not in marked:
            for name, value in marks.items():
                kind = kind.with_attr(name, value)
            marked[id(node.properties)] = kind
        graph.set_node_properties(node.id, marked[id(node.properties)])
    return graph


class _CopyPlace(NamedTuple):
    """What decides about the copy of a node: the stage it is on, and the copy's rank on the first stage."""

    stage: int
    number: int


class _WritingOut:
    """One graph being written out."""

    def __init__(self, graph: Graph, mesh: Mesh, devices: Sequence[str]) -> None:
        self.graph, self.mesh, self.devices = graph, mesh, devices
        self.prefixes = [prefix_of(number) for number in range(mesh.per_stage)]
        self.functions = _FunctionsOfRanks(graph, self.value_of_rank)

    def run(self) -> Graph:
        """The copies, and the functions that they call."""
        graph = self.graph
        live = graph.edge_arrays()
        keep = (live.src > SINK_ID) & (live.dst > SINK_ID)
        edges = EdgeEnds(*(c[keep].astype(np.int64) for c in (live.src, live.src_output, live.dst, live.dst_input)))
        nodes = np.array([node.id for node in graph.op_nodes()], np.int64)
        by_rank = self._by_rank(nodes.tolist())
        for node, properties in by_rank.items():
            graph.set_node_properties(node, properties(0))
        program = ReplicaProgram(graph, edges, nodes, self.prefixes, self._device_maps(), by_rank=by_rank)
        new = replicated(program, {})
        new.functions = new.functions.merged(self.functions.library())
        return new

    @cached_property
    def stages(self) -> dict[str, int]:
        """The stage of each device that nodes are on; hosts are those of the first stage on them."""
        first = {self.devices[s * self.mesh.per_stage]: s for s in reversed(range(self.mesh.pp))}
        return {**{host_of(device): stage for device, stage in first.items()}, **first}

    def stage_of(self, node: int) -> int:
        """The stage of a node; InvalidArgumentError if it is on no device of one."""
        device = self.graph.requested_device(node)
        if device not in self.stages:
            raise InvalidArgumentError(
                f"node {self.graph.node_name(node)!r} is on {device!r}, which is no first device of a stage",
                node=self.graph.node_name(node),
            )
        return self.stages[device]

    def _device_maps(self) -> list[dict[str, str]]:
        used = {self.graph.requested_device(node.id): node.id for node in self.graph.op_nodes()}
        stages = {device: self.stage_of(node) for device, node in used.items()}
        maps = []
        for number in range(self.mesh.per_stage):
            place = {}
            for device, stage in stages.items():
                own = self.devices[stage * self.mesh.per_stage + number]
                place[device] = own if device == self.devices[stage * self.mesh.per_stage] else host_of(own)
            maps.append({"": self.devices[number], **place})
        return maps

    def _by_rank(self, nodes: Sequence[int]) -> dict[int, Callable[[int], NodeProperties]]:
        """The properties of nodes that differ, by the number of the copy."""
        found = own_names(self.graph, nodes, self.prefixes, 0)
        known: dict[tuple[int, int], Callable[[int], NodeProperties]] = {}
        for node in nodes:
            kind = self.graph.node_properties(node)
            differs = OF_RANK in kind.attrs or AXIS in kind.attrs or self.functions.differ(kind)
            if differs:
                key = id(kind), self.stage_of(node)
                known.setdefault(key, self._varied(kind, key[1]))
                found[node] = known[key]
        return found

    def _varied(self, kind: NodeProperties, stage: int) -> Callable[[int], NodeProperties]:
        made: dict[int, NodeProperties] = {}

        def of_copy(number: int) -> NodeProperties:
            if number not in made:
                made[number] = self._properties(kind, _CopyPlace(stage, number))
            return made[number]

        return of_copy

    def _properties(self, kind: NodeProperties, place: _CopyPlace) -> NodeProperties:
        attrs = kind.attrs
        if OF_RANK in attrs:
            value = np.array(self.value_of_rank(attrs[OF_RANK], place), np.int32)
            return kind.with_attr("value", encode(numpy_to_tensor(value), "tensor"))
        if calls_functions(kind, self.graph.functions):
            return self.functions.call(kind, place)
        if kind.op_def.record.node_class is NodeClass.COLLECTIVE or "group_key" in kind.op_def.attrs:
            rank = self._rank(place)
            return kind.with_attr("group_key", encode(self.mesh.key(attrs[AXIS].decode(), rank), "int"))
        return kind

    def _rank(self, place: _CopyPlace) -> int:
        return place.stage * self.mesh.per_stage + place.number

    def value_of_rank(self, what: bytes, place: _CopyPlace) -> int:
        """The value of a constant that says "position:AXES" or "key:AXES"."""
        function, _, axes = what.decode().partition(":")
        if function not in ("position", "key"):
            raise InvalidArgumentError(f"{OF_RANK}={what!r} is not known; write position:AXES or key:AXES")
        rank = self._rank(place)
        return self.mesh.position(axes, rank) if function == "position" else self.mesh.key(axes, rank)


class _FunctionsOfRanks:
    """Copies of functions with constants that differ by rank, made when a call needs them."""

    def __init__(self, graph: Graph, value: Callable[[bytes, _CopyPlace], int]) -> None:
        self._functions, self._value = graph.functions, value
        self._differ: dict[str, bool] = {}
        self._made: dict[tuple[str, _CopyPlace], FunctionDef] = {}

    def differ(self, kind: NodeProperties) -> bool:
        """Whether a function that nodes of a kind call differs by rank."""
        return calls_functions(kind, self._functions) and any(
            self._differs(call.name) for call in called_by(kind, self._functions)
        )

    def call(self, kind: NodeProperties, place: _CopyPlace) -> NodeProperties:
        """The properties of a call in the copy of a place."""
        attrs = {name: kind.attrs.message(name) for name in kind.attrs}
        for name, value in self._renamed(attrs, place):
            kind = kind.with_attr(name, value)
        return kind

    def library(self) -> FunctionDefLibrary:
        """The copies."""
        return FunctionDefLibrary(function=self._made.values())

    def _differs(self, name: str) -> bool:
        if name not in self._differ:
            self._differ[name] = False
            body = self._functions.find(name)
            self._differ[name] = body is not None and any(
                OF_RANK in node.attr or any(self._differs(called) for called in _called(node.attr))
                for node in body.node_def
            )
        return self._differ[name]

    def _renamed(self, attrs: Mapping[str, AttrValue], place: _CopyPlace) -> list[tuple[str, AttrValue]]:
        found = []
        for name, value in attrs.items():
            if value.HasField("func") and self._differs(value.func.name):
                copy = AttrValue()
                copy.CopyFrom(value)
                copy.func.name = self._copy(value.func.name, place)
                found.append((name, copy))
        return found

    def _copy(self, name: str, place: _CopyPlace) -> str:
        key = name, place
        if key not in self._made:
            definition = FunctionDef()
            body = self._functions.find(name)
            assert body is not None  # as it differs
            definition.CopyFrom(body)
            definition.signature.name = f"{name}_rank_{place.stage}_{place.number}"
            self._made[key] = definition
            for node in definition.node_def:
                if OF_RANK in node.attr:
                    value = np.array(self._value(node.attr[OF_RANK].s, place), np.int32)
                    node.attr["value"].tensor.CopyFrom(numpy_to_tensor(value))
                for attr, renamed in self._renamed(node.attr, place):
                    node.attr[attr].CopyFrom(renamed)
        return self._made[key].signature.name


def _called(attrs: Mapping[str, AttrValue]) -> list[str]:
    return [value.func.name for value in attrs.values() if value.HasField("func")]
