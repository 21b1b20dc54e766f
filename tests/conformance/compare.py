"""Compares two sets of partition graphs at three levels of strictness, without TensorFlow.

  L1  the same number of nodes of each (op, device); every send has exactly one receive; the same transfers.
  L2  the same graph up to the names of generated nodes: each gets a name made of its role, such as
      "<Recv x:0 from CPU:0 to CPU:1>"; then ops, devices, inputs (data in order, control as a set) and the attrs of
      original nodes are equal.
  L3  names, inputs and attrs are equal.

No level compares node order, `_Xla*` attrs, attrs that equal the op's default, order and repetition of control inputs,
versions, library and debug information; "x:0" equals "x"; tensors are compared by value.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from partita.errors import PartitaError
from partita.graph.ops.registry import find_op
from partita.graph.protos import AttrValue, GraphDef, NodeDef, TensorProto
from partita.graph.tensor import tensor_to_numpy

_SENDS = frozenset({"_Send", "_HostSend"})
_RECVS = frozenset({"_Recv", "_HostRecv"})
_CASTS = frozenset({"Cast", "_HostCast"})
_SYNCH = re.compile(r"synch_(\d+)(?:/_|_[GS])\d+")

Endpoint = tuple[str, int]
Transfer = tuple[str, str, str]  # source tensor ("x:0", or "^x" for a control edge), sending device, receiving device
Partitions = Mapping[str, GraphDef]


class ComparedNode:
    """A NodeDef after this normalisation."""

    def __init__(self, node: NodeDef) -> None:
        self.name = node.name
        self.op = node.op
        self.device = node.device
        self.data = [_endpoint(text) for text in node.input if not text.startswith("^")]
        self.control = sorted({text[1:] for text in node.input if text.startswith("^")})
        self.attrs = {key: value for key, value in node.attr.items() if not _is_noise(node.op, key, value)}

    def text(self, key: str) -> str:
        """A string attr, "" if it is missing."""
        return self.attrs[key].s.decode() if key in self.attrs else ""

    @property
    def channel(self) -> Transfer:
        """The fields that a send and its receive share."""
        return self.text("tensor_name"), self.text("send_device"), self.text("recv_device")

    @property
    def is_client_end(self) -> bool:
        """Whether the other end of this send or receive is the client."""
        return "client_terminated" in self.attrs and self.attrs["client_terminated"].b


def _endpoint(text: str) -> Endpoint:
    name, colon, port = text.rpartition(":")
    return (name, int(port)) if colon and port.isdecimal() else (text, 0)


def _is_noise(op: str, key: str, value: AttrValue) -> bool:
    if key.startswith("_Xla"):
        return True
    signature = find_op(op)
    default = None if signature is None else signature.defaults.get(key)
    return default is not None and same_attr(AttrValue.FromString(default), value)


def _is_empty(value: AttrValue) -> bool:
    kind = value.WhichOneof("value")
    return kind is None or (kind == "list" and value.list.ByteSize() == 0)


def same_attr(a: AttrValue, b: AttrValue) -> bool:
    """Whether two attr values are equal: NaN equals NaN, an unset value an empty list, tensors by value."""
    if a.SerializeToString(deterministic=True) == b.SerializeToString(deterministic=True):
        return True
    if a.WhichOneof("value") == b.WhichOneof("value") == "tensor":
        return _same_tensor(a.tensor, b.tensor)
    return _is_empty(a) and _is_empty(b)


def _same_tensor(a: TensorProto, b: TensorProto) -> bool:
    try:
        x, y = tensor_to_numpy(a), tensor_to_numpy(b)
    except PartitaError:  # a tensor that cannot be decoded equals only its own bytes, and those were compared
        return False
    if a.dtype != b.dtype or x.shape != y.shape:
        return False
    return bool(x.tolist() == y.tolist()) if x.dtype.kind == "O" else x.tobytes() == y.tobytes()


@dataclass
class Comparison:
    """Differences per level; an empty list is agreement."""

    differences: dict[str, list[str]] = field(default_factory=lambda: {"L1": [], "L2": [], "L3": []})

    def agrees(self, level: str) -> bool:
        """Whether there is no difference up to and including that level."""
        return not any(self.differences[lower] for lower in self.differences if lower <= level)

    def report(self, level: str, limit: int = 20) -> str:
        """The first `limit` differences of each level up to `level`, as lines."""
        lines = []
        for lower, differences in self.differences.items():
            if lower <= level and differences:
                lines += [f"{lower}: {len(differences)} differences", *(f"  {line}" for line in differences[:limit])]
        return "\n".join(lines)


class PartitionSet:
    """The graphs of all devices, normalised, with the roles of generated nodes."""

    def __init__(self, partitions: Partitions, original_names: Collection[str]) -> None:
        self.problems: list[str] = []
        self.nodes: dict[str, dict[str, ComparedNode]] = {}
        self._original = frozenset(original_names)
        for device, graph in sorted(partitions.items()):
            self.nodes[device] = {node.name: ComparedNode(node) for node in graph.node}
            if len(self.nodes[device]) != len(graph.node):
                self.problems.append(f"{device}: node names are not unique")
        self._consumers = self._find_consumers()
        self._sender: dict[Transfer, tuple[str, ComparedNode]] = {}
        self._receiver: dict[Transfer, tuple[str, ComparedNode]] = {}
        self._pair_up()
        self._roles: dict[tuple[str, str], str] = {}
        self.canonical = {device: self._canonical_names(device) for device in self.nodes}

    def all_nodes(self) -> Iterator[tuple[str, ComparedNode]]:
        """Every node with the device of its partition."""
        for device, graph in self.nodes.items():
            for node in graph.values():
                yield device, node

    def is_generated(self, node: ComparedNode) -> bool:
        """Whether partitioning made this node; the client's sends and receives are named after feeds and fetches."""
        return node.name not in self._original and node.op not in ("_Arg", "_Retval") and not node.is_client_end

    def counts(self) -> Counter[str]:
        """How often each op occurs on each device."""
        return Counter(f"{node.op} on {node.device or 'no device'}" for _, node in self.all_nodes())

    def transfers(self) -> Counter[str]:
        """How often each tensor or control edge is sent from one device to another."""
        pairs = [self._transfer(*sender) for sender in self._sender.values() if self.is_generated(sender[1])]
        return Counter(f"transfer of {what} from {source} to {target}" for what, source, target in pairs)

    def _find_consumers(self) -> dict[tuple[str, str], list[tuple[ComparedNode, int]]]:
        consumers: dict[tuple[str, str], list[tuple[ComparedNode, int]]] = defaultdict(list)
        for device, node in self.all_nodes():
            for slot, (name, _) in enumerate(node.data):
                consumers[device, name].append((node, slot))
            for name in node.control:
                consumers[device, name].append((node, -1))
        return consumers

    def _pair_up(self) -> None:
        """Pairs the send and the receive of every channel; notes problems."""
        ends: dict[Transfer, tuple[list[tuple[str, ComparedNode]], list[tuple[str, ComparedNode]]]]
        ends = defaultdict(lambda: ([], []))
        for device, node in self.all_nodes():
            if node.op in _SENDS | _RECVS and not node.is_client_end:
                ends[node.channel][node.op in _RECVS].append((device, node))
        for channel, (sends, receives) in sorted(ends.items()):
            if len(sends) != 1 or len(receives) != 1:
                self.problems.append(f"channel {channel}: {len(sends)} sends, {len(receives)} receives")
                continue
            self._sender[channel], self._receiver[channel] = sends[0], receives[0]
            if (sends[0][1].device, receives[0][1].device) != channel[1:]:
                self.problems.append(f"channel {channel}: ends on {sends[0][1].device}, {receives[0][1].device}")

    def _transfer(self, device: str, send: ComparedNode) -> Transfer:
        return (self._source(device, send), send.text("send_device"), send.text("recv_device"))

    def _source(self, device: str, node: ComparedNode) -> str:
        """The tensor of an original node that reaches a generated one through constants, casts and transfers."""
        if node.op in _RECVS:
            sender = self._sender.get(node.channel)
            return "nothing" if sender is None else self._source(*sender)
        if node.op == "Const":
            return f"^{node.control[0]}" if node.control else "nothing"
        if not node.data:
            return "nothing"
        name, port = node.data[0]
        before = self.nodes[device].get(name)
        if before is not None and self.is_generated(before) and before.op in _RECVS | _CASTS | {"Const", "Identity"}:
            return self._source(device, before)
        return f"{name}:{port}"

    def _canonical_names(self, device: str) -> dict[str, str]:
        """The canonical name of every node of a partition: its name, or its role."""
        names = {}
        alike: dict[str, list[ComparedNode]] = defaultdict(list)
        for node in self.nodes[device].values():
            if self.is_generated(node):
                alike[self.role(device, node)].append(node)
            else:
                names[node.name] = node.name
        for role, nodes in alike.items():
            if len(nodes) > 1:
                nodes.sort(key=lambda node: self._users(device, node, 3))
            for number, node in enumerate(nodes):
                names[node.name] = f"<{role}>" if len(nodes) == 1 else f"<{role} #{number}>"
        return names

    def _users(self, device: str, node: ComparedNode, depth: int) -> list[str]:
        """The consumers of an output, through generated nodes: they distinguish nodes of one role."""
        ends = []
        for user, slot in self._consumers.get((device, node.name), []):
            if not self.is_generated(user):
                ends.append(f"{user.name}:{slot}")
            elif depth:
                ends += [f"{user.op}>{end}" for end in self._users(device, user, depth - 1)]
        if node.op in _SENDS:
            receiver = self._receiver.get(node.channel)
            ends += [] if receiver is None else [f"{receiver[1].op}>{end}" for end in self._users(*receiver, depth - 1)]
        return sorted(ends)

    def role(self, device: str, node: ComparedNode) -> str:
        """The role of a generated node, from its op and its neighbours, never from its name."""
        key = (device, node.name)
        if key not in self._roles:
            self._roles[key] = f"{node.op.strip('_')} "  # a loop through this very node ends here
            self._roles[key] += self._purpose(device, node)
        return self._roles[key]

    def _purpose(self, device: str, node: ComparedNode) -> str:
        synch = _SYNCH.fullmatch(node.name)
        if node.op == "ControlTrigger" and synch:
            return f"epoch {synch[1]}"
        if node.op in _SENDS | _RECVS:
            sender = self._sender.get(node.channel)
            what = "nothing" if sender is None else self._source(*sender)
            return f"of {what} from {node.text('send_device')} to {node.text('recv_device')}"
        if node.op == "Enter":
            return f"of loop {node.text('frame_name')}"
        if node.op == "Const" and not node.control:
            return " ".join(
                sorted({f"into {self.role(device, user)}" for user, _ in self._generated_users(device, node)})
            )
        if node.op == "Const" or (node.op in _CASTS and self._feeds_send(device, node)):
            return f"{self._source(device, node)} to {', '.join(sorted(self._targets(device, node)))}"
        if node.data and node.data[0][0] in self.nodes[device]:
            before = self.nodes[device][node.data[0][0]]
            return f"after {self.role(device, before) if self.is_generated(before) else before.name}"
        self.problems.append(f"{device}: {node.name} ({node.op}) was generated for no reason that can be seen")
        return "without a reason"

    def _generated_users(self, device: str, node: ComparedNode) -> list[tuple[ComparedNode, int]]:
        return [item for item in self._consumers.get((device, node.name), []) if self.is_generated(item[0])]

    def _feeds_send(self, device: str, node: ComparedNode) -> bool:
        return any(user.op in _SENDS for user, _ in self._generated_users(device, node))

    def _targets(self, device: str, node: ComparedNode) -> set[str]:
        """The devices to which a constant or cast is sent."""
        devices: set[str] = set()
        for user, _ in self._generated_users(device, node):
            devices |= {user.text("recv_device")} if user.op in _SENDS else self._targets(device, user)
        return devices


def _count_differences(a: Counter[str], b: Counter[str]) -> list[str]:
    return [f"{key}: {a[key]} expected, {b[key]} found" for key in sorted(a.keys() | b.keys()) if a[key] != b[key]]


def _shown(node: ComparedNode, key: str) -> str:
    return " ".join(str(node.attrs[key]).split())[:160] if key in node.attrs else "absent"


def _attr_differences(place: str, a: ComparedNode, b: ComparedNode) -> list[str]:
    return [
        f"{place}: attr {key}: {_shown(a, key)} expected, {_shown(b, key)} found"
        for key in sorted(a.attrs.keys() | b.attrs.keys())
        if key not in a.attrs or key not in b.attrs or not same_attr(a.attrs[key], b.attrs[key])
    ]


def _node_differences(place: str, a: ComparedNode, b: ComparedNode) -> list[str]:
    pairs = [("op", a.op, b.op), ("device", a.device, b.device)]
    return [f"{place}: {what} {x} expected, {y} found" for what, x, y in pairs if x != y]


Wiring = tuple[list[Endpoint], list[str]]


def _wiring(node: ComparedNode, names: Mapping[str, str]) -> Wiring:
    data = [(names.get(name, name), port) for name, port in node.data]
    return data, sorted(names.get(name, name) for name in node.control)


def _wiring_differences(place: str, a: Wiring, b: Wiring) -> list[str]:
    pairs = [("data inputs", a[0], b[0]), ("control inputs", a[1], b[1])]
    return [f"{place}: {what} {x} expected, {y} found" for what, x, y in pairs if x != y]


def _graph_differences(a: PartitionSet, b: PartitionSet, device: str, level: str) -> list[str]:
    graph_a, graph_b = a.nodes.get(device, {}), b.nodes.get(device, {})
    names_a = a.canonical.get(device, {}) if level == "L2" else {name: name for name in graph_a}
    names_b = b.canonical.get(device, {}) if level == "L2" else {name: name for name in graph_b}
    by_name_a = {names_a[name]: node for name, node in graph_a.items()}
    by_name_b = {names_b[name]: node for name, node in graph_b.items()}
    differences = [f"{device}: {name} is missing" for name in sorted(by_name_a.keys() - by_name_b.keys())]
    differences += [f"{device}: {name} is not expected" for name in sorted(by_name_b.keys() - by_name_a.keys())]
    for name in sorted(by_name_a.keys() & by_name_b.keys()):
        node_a, node_b, place = by_name_a[name], by_name_b[name], f"{device}: {name}"
        differences += _node_differences(place, node_a, node_b)
        differences += _wiring_differences(place, _wiring(node_a, names_a), _wiring(node_b, names_b))
        if level == "L3" or not a.is_generated(node_a):
            differences += _attr_differences(place, node_a, node_b)
    return differences


def compare(expected: Partitions, actual: Partitions, original_names: Collection[str]) -> Comparison:
    """Differences of `actual` from `expected` on every level.

    `original_names` are the node names of the graph that was cut; a user's own name may look generated ("x/_3").
    """
    a, b = PartitionSet(expected, original_names), PartitionSet(actual, original_names)
    result = Comparison()
    result.differences["L1"] += [f"expected graphs: {text}" for text in a.problems]
    result.differences["L1"] += [f"found graphs: {text}" for text in b.problems]
    result.differences["L1"] += _count_differences(a.counts(), b.counts())
    result.differences["L1"] += _count_differences(a.transfers(), b.transfers())
    for level in ("L2", "L3"):
        for device in sorted(a.nodes.keys() | b.nodes.keys()):
            result.differences[level] += _graph_differences(a, b, device, level)
    return result
