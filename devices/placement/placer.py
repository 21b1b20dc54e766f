"""The placer: assigns a device to every node, as TensorFlow 2.21's `Placer` does, with its messages.

A node goes to a device that fits its request, has a kernel for it, and is shared by all nodes colocated with it. Nodes
that are assigned already stay where they are. Of several devices the best is taken (see `candidates`), with two
exceptions: an op that reads only the shape of its input goes to the device of the input; a node without inputs and with
one output (a generator) is placed in a second pass, on the device of its consumers if they all share one.

    node                       request            candidates         first pass    second pass
    c = Const                  none               GPU:0 CPU:0                      CPU:0, as all its consumers are there
    a = Add(x, c)              /device:CPU:0      CPU:0              CPU:0
    s = Shape(a)               none               GPU:0 CPU:0        CPU:0, as its input is there
    m = MatMul(a, a)           none               GPU:0 CPU:0        GPU:0

For a call that returns resources the placer looks into the body of the function: consumers of a result go to the device
where the body has the resource (`isolate_calls` makes room for that).

Nodes are handled in bulk: candidates are computed once per pair of node kind and requested device, or per colocation
group. The nodes that share candidates are a slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ...errors import InternalError, InvalidArgumentError, Reason
from ...graph.arrays import Flags, Numbers, first_seen
from ...graph.checking import are_checked
from ...graph.columns import SINK_ID
from ...graph.device_name import find_full_name
from ...graph.dtypes import DataType
from ...graph.functions.body import FunctionBody, instantiate_call
from ...graph.graph import Graph
from ...graph.graphdef.sources import check_graph
from ...graph.library.calls import called_function
from ...graph.node import Node
from ...graph.passes.isolate_calls import calls_giving_resources, isolate_calls
from ...graph.passes.lower_functional import lower_functional
from ...graph.validate import check_attrs
from ..cluster import Cluster
from .candidates import ANY, Constraint, DeviceSet
from .colocation import Colocation, ColocationGroup
from .messages import debug_string, no_kernel, refusal
from .node_kinds import NodeKind, kinds_of

_UNASSIGNED = 0
_MOST_KEPT = 64  # sets of devices of a cluster
_device_sets: WeakKeyDictionary[Cluster, dict[str, DeviceSet]] = WeakKeyDictionary()
_DEEPEST = 64  # nested calls that are searched for resources they return; deeper ones join no nodes


def place(
    graph: Graph, devices: Cluster | Sequence[str], *, allow_soft_placement: bool = True, default_device: str = ""
) -> None:
    """Assigns a device to every node of `graph`, in place.

    `devices` is a cluster or full device names; of several that fit a node, `default_device` ranks first. With
    `allow_soft_placement` a node that no requested device has a kernel for goes to another device of the requested
    task. Raises InvalidArgumentError for requests that are malformed or cannot be met and for ops without a kernel,
    InternalError for assigned devices that do not exist, FailedPreconditionError without devices. After an error the
    graph is unchanged.
    """
    check_graph(graph)
    if isinstance(devices, Cluster):
        device_set = _devices_of(devices, default_device)
    else:
        task = find_full_name(devices[0]) if devices else None
        device_set = DeviceSet(devices, task.task_name() if task is not None else "", default_device)
    if calls_giving_resources(graph):
        rehearsal = graph.clone()
        isolate_calls(rehearsal)
        _Placer(rehearsal, device_set, allow_soft_placement).run()  # raises while the graph is unchanged
        isolate_calls(graph)
    settled = graph.assigned_device_indices()
    _Placer(graph, device_set, allow_soft_placement).run()
    if are_checked():
        from .invariants import check_placed

        check_placed(graph, settled, device_set, soft=allow_soft_placement)


def _devices_of(cluster: Cluster, default_device: str) -> DeviceSet:
    """The devices of a cluster, kept for the latest defaults: the bodies of functions are placed one by one."""
    known = _device_sets.setdefault(cluster, {})
    if default_device not in known:
        if len(known) >= _MOST_KEPT:
            del known[next(iter(known))]
        known[default_device] = DeviceSet(cluster.names, cluster.client.task_name, default_device)
    return known[default_device]


@dataclass(slots=True)
class _Slot:
    """Nodes with the same candidates: of one kind and request, or of one group. `choices` are device name indices."""

    constraint: Constraint
    group: ColocationGroup | None = None
    choices: list[int] | None = None


@dataclass(frozen=True, slots=True)
class _Tie:
    """Arguments and results of a function, by number, that its body needs on one device, and their constraint."""

    arguments: frozenset[int]
    results: frozenset[int]
    constraint: Constraint


def _places(slot: int, slots: Sequence[int]) -> frozenset[int]:
    return frozenset(place for place, other in enumerate(slots) if other == slot)


class _Placer:
    """One placement: columns by node id, candidates by slot."""

    def __init__(
        self,
        graph: Graph,
        devices: DeviceSet,
        soft: bool,
        inside: frozenset[str] = frozenset(),
        ties: dict[bytes, list[_Tie]] | None = None,
    ) -> None:
        """`inside` are the functions whose bodies are being searched, `ties` the results for other functions."""
        self.graph = graph
        self.inside = inside
        self.ties: dict[bytes, list[_Tie]] = {} if ties is None else ties
        self.devices = devices
        self.soft = soft
        self.kinds, kind_column = kinds_of(graph, devices.types)
        self.kind: Numbers = np.array(kind_column, np.int64)
        self.assigned: Numbers = graph.assigned_device_indices().astype(np.int64)
        self._candidates: dict[Constraint, list[int]] = {}  # of a thousand devices: found once for all slots alike
        self.slots: list[_Slot] = []
        self.slot: Numbers = np.zeros(len(self.kind), np.int64)

    def run(self) -> None:
        """Places every node or raises."""
        self._make_slots()
        self._make_groups()
        open_nodes = (self.kind >= 0) & (self.assigned == _UNASSIGNED)
        open_nodes[: SINK_ID + 1] = False
        generators = open_nodes & self._has("is_generator")
        self._place_first(open_nodes & ~generators)
        self._place_generators(generators)
        self.graph.assign_devices(self.assigned.astype(np.int32))

    # Candidates

    def _has(self, flag: str) -> Flags:
        flags = np.array([getattr(kind, flag) for kind in self.kinds] + [False], np.bool_)
        return flags[self.kind]

    def _make_slots(self) -> None:
        """One slot per kind, requested and assigned device; errors name the first node of the first wrong slot."""
        names = len(self.graph.device_names())
        requested = self.graph.requested_device_indices().astype(np.int64)
        pair = (self.kind * names + requested) * names + self.assigned
        pair[self.kind < 0] = -1
        pair[: SINK_ID + 1] = -1
        first, self.slot = first_seen(pair)
        self.slots = [_Slot(self._own_constraint(i) if pair[i] >= 0 else Constraint(())) for i in first.tolist()]

    def _own_constraint(self, node_id: int) -> Constraint:
        kind: NodeKind = self.kinds[self.kind[node_id]]
        assigned = self.graph.assigned_device(node_id)
        if assigned:
            return self._settled(kind, assigned)
        if not kind.types:
            check_attrs(self.graph.node_name(node_id), kind.example.op_def, kind.example.attrs)
            name = self.graph.node_name(node_id)
            raise InvalidArgumentError(no_kernel(self.graph, node_id, self.devices), node=name).because(
                Reason.NO_KERNEL
            )
        name = self.graph.requested_device(node_id)
        requested = find_full_name(name)
        if requested is None:
            raise InvalidArgumentError(
                f"Malformed device specification '{name}' in node: {debug_string(self.graph, node_id)}",
                node=self.graph.node_name(node_id),
            )
        return Constraint(kind.types, requested, requested if kind.is_resource_generator else ANY)

    def _settled(self, kind: NodeKind, name: str) -> Constraint:
        parsed = find_full_name(name)
        if parsed is None:
            raise InternalError(f"Malformed assigned device '{name}'")
        if not self.devices.exists(name):
            raise InternalError(f"Assigned device '{name}' does not match any device")
        if parsed.type not in kind.types:
            raise InternalError(
                f"Assigned device '{name}' does not have registered OpKernel support for {kind.example.op}"
            )
        return Constraint(kind.types, parsed, ANY, parsed)

    def _make_groups(self) -> None:
        classes = np.flatnonzero(self._has("has_class"))
        follows = self._has("follows_inputs")
        if not classes.size and not follows.any():
            return
        colocation = Colocation(self.graph, lambda i: self.slots[self.slot[i]].constraint, soft=self.soft)
        calls = calls_giving_resources(self.graph)
        if follows.any():
            edges = self.graph.edge_arrays()
            positions = np.flatnonzero(follows[edges.dst] & (edges.dst_input >= 0)).tolist()
            colocation.join_edges(edges, positions, {call.id for call in calls})
        for call in calls:
            self._look_into(call, colocation)
        if classes.size:
            colocation.join_classes(classes.tolist())
        slot_of: dict[int, int] = {}
        for node_id, group in colocation.group_of.items():
            if id(group) not in slot_of:
                slot_of[id(group)] = len(self.slots)
                self.slots.append(_Slot(group.constraint, group))
            self.slot[node_id] = slot_of[id(group)]

    def _look_into(self, call: Node, colocation: Colocation) -> None:
        """Joins inputs of a call and consumers of its results that the body of the function needs on one device.

        The body is looked at after lowering. TensorFlow looks at it before, where a loop joins all its variables, and
        therefore refuses some graphs.
        """
        for tie in self._ties_of(call):
            members = [(e.src.id, False) for e in call.in_edges() if not e.is_control and e.dst_input in tie.arguments]
            members += [
                (e.dst.id, e.dst.input_types[e.dst_input] is DataType.RESOURCE)
                for e in call.out_edges()
                if not e.is_control and e.src_output in tie.results
            ]
            colocation.join_all(members, tie.constraint)

    def _ties_of(self, call: Node) -> list[_Tie]:
        """Which arguments and results of a call share a device; computed once per function."""
        library = self.graph.functions
        function = called_function(call.properties, library)
        if function is None or function.name in self.inside or len(self.inside) == _DEEPEST:
            return []
        key = function.SerializeToString(deterministic=True)
        ties = self.ties.get(key)
        if ties is None:
            body = instantiate_call(library, function)
            ties = self._ties_in(body, self.inside | {function.name})
            if not library.may_call_itself(function.name):  # else the answer depends on where the search began
                self.ties[key] = ties
        return ties

    def _ties_in(self, body: FunctionBody, inside: frozenset[str]) -> list[_Tie]:
        graph = lower_functional(body.graph)
        if graph is body.graph:
            graph = graph.clone()
        isolate_calls(graph)
        inner = _Placer(graph, self.devices, self.soft, inside, self.ties)
        inner._make_slots()
        inner._make_groups()
        arguments = inner.slot[[node.id for node in body.arguments]].tolist()
        results = inner.slot[[node.id for node in body.results]].tolist()
        return [
            _Tie(_places(slot, arguments), _places(slot, results), inner.slots[slot].constraint)
            for slot in dict.fromkeys([*arguments, *results])
            if inner.slots[slot].group is not None
        ]

    def _choices(self, node_id: int) -> list[int]:
        """Device name indices of the candidates, best first; raises when there are none."""
        slot: _Slot = self.slots[self.slot[node_id]]
        if slot.choices is None:
            known = self._candidates.get(slot.constraint)
            if known is None:
                names = self.devices.candidates(slot.constraint, soft=self.soft)
                if not names:
                    raise refusal(self.graph, node_id, slot.constraint, slot.group, self.devices)
                known = self._candidates[slot.constraint] = [self.graph.intern_device(name) for name in names]
            slot.choices = known
        return slot.choices

    # The two passes

    def _place_first(self, nodes: Flags) -> None:
        """All but generators: the default, or for readers of a shape the device of their input, in ascending id."""
        self._assign_defaults(np.flatnonzero(nodes))
        metadata = np.flatnonzero(nodes & self._has("is_metadata"))
        if not metadata.size:
            return
        for node_id in metadata.tolist():
            sources = self.graph.in_edge_ids(node_id)
            source = self.graph.edge_ends(sources[0])[0] if sources else SINK_ID
            is_placed = source < node_id or not nodes[source]
            if is_placed and int(self.assigned[source]) in self._choices(node_id):
                self.assigned[node_id] = self.assigned[source]

    def _assign_defaults(self, node_ids: npt.NDArray[np.intp]) -> None:
        if not node_ids.size:
            return
        defaults = np.zeros(len(self.slots), np.int64)
        for node_id in self._first_of_slots(node_ids):
            defaults[self.slot[node_id]] = self._choices(node_id)[0]
        self.assigned[node_ids] = defaults[self.slot[node_ids]]

    def _place_generators(self, nodes: Flags) -> None:
        """Nodes without inputs and with one output: on the device of all their consumers, if it is a candidate.

        As a loop: for each generator in ascending id, if the devices of its consumers (those of generators with a
        higher id are not known yet) are one device and that is a candidate, take it, else the default. Generators that
        feed other generators are rare and go through that loop; the others are done as columns.
        """
        node_ids = np.flatnonzero(nodes)
        if not node_ids.size:
            return
        low, high, waits = self._consumer_devices(nodes)
        allowed = self._allowed(node_ids)
        self._assign_defaults(node_ids)
        target = low[node_ids]
        joins = (target == high[node_ids]) & ~waits[node_ids] & (target > _UNASSIGNED)
        joins &= allowed[self.slot[node_ids], np.maximum(target, 0)]
        self.assigned[node_ids[joins]] = target[joins]
        for node_id in node_ids[waits[node_ids]].tolist():
            consumers = [self.graph.edge_ends(edge)[2] for edge in self.graph.out_edge_ids(node_id)]
            consumer_devices = {_UNASSIGNED if nodes[i] and i > node_id else int(self.assigned[i]) for i in consumers}
            if len(consumer_devices) == 1 and consumer_devices <= set(self._choices(node_id)):
                self.assigned[node_id] = consumer_devices.pop()

    def _consumer_devices(self, generators: Flags) -> tuple[Numbers, Numbers, Flags]:
        """By node id: lowest and highest device index of its consumers, and whether a consumer is a generator.

        Lowest == highest says that all consumers share a device, without a set per node.
        """
        edges = self.graph.edge_arrays()
        mine = generators[edges.src]
        src, dst = edges.src[mine], edges.dst[mine]
        low = np.full(len(self.kind), np.iinfo(np.int64).max)
        high = np.full(len(self.kind), -1)
        np.minimum.at(low, src, self.assigned[dst])
        np.maximum.at(high, src, self.assigned[dst])
        waits = np.zeros(len(self.kind), np.bool_)
        waits[src[generators[dst]]] = True
        low[high < 0] = -1
        return low, high, waits

    def _first_of_slots(self, node_ids: npt.NDArray[np.intp]) -> list[int]:
        """The first node of each slot of these nodes, which is the one that errors name."""
        first: list[int] = node_ids[first_seen(self.slot[node_ids]).first].tolist()
        return first

    def _allowed(self, node_ids: npt.NDArray[np.intp]) -> Flags:
        """[slot, device index] -> whether it is a candidate; filled in only for the slots of these nodes."""
        chosen = {int(self.slot[node_id]): self._choices(node_id) for node_id in self._first_of_slots(node_ids)}
        allowed = np.zeros((len(self.slots), len(self.graph.device_names())), np.bool_)
        for slot, choices in chosen.items():
            allowed[slot, choices] = True
        return allowed
