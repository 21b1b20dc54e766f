"""Graphs to measure with: many tiny nodes, in chains, in drawn graphs, over devices.

A `Workload` is a serialised GraphDef and a request for it. The same arguments give the same bytes, and (nearly) every
node is needed for the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from partita.graph.ops.registry import PRODUCER
from partita.graph.protos import GraphDef, NodeDef
from partita.graph.protos.types_pb2 import DT_FLOAT, DT_INT32

Shape = tuple[int, ...]
_FLOAT = DT_FLOAT
_OPS = ("AddV2", "Mul", "Sub", "Maximum")
GPUS_PER_HOST = 8
_LOOK_BACK = 50  # how far back a drawn node's inputs may be


@dataclass(frozen=True, slots=True)
class Workload:
    """A graph and a request. Feeds are float32, all 0.5, of the given shapes; times are divided by `nodes`."""

    name: str
    data: bytes
    nodes: int
    feeds: Mapping[str, Shape]
    fetches: tuple[str, ...] = ()
    targets: tuple[str, ...] = field(default=())
    devices: int = 1


def device_name(index: int) -> str:
    """Full name of a CPU of the local task."""
    return f"/job:localhost/replica:0/task:0/device:CPU:{index}"


def stage_device(stage: int) -> str:
    """Full name of a GPU of a cluster whose hosts have eight each."""
    host, index = divmod(stage, GPUS_PER_HOST)
    return f"/job:worker/replica:0/task:{host}/device:GPU:{index}"


class _Writer:
    """Writes nodes directly into a GraphDef: a builder that checks would take longer than the measured code."""

    def __init__(self, shape: Shape | None) -> None:
        self.graph = GraphDef()
        self.graph.versions.producer = PRODUCER
        self.x = self.add("x", "Placeholder")
        self.x.attr["dtype"].type = _FLOAT
        if shape is not None:
            self.x.attr["shape"].shape.SetInParent()
            for size in shape:
                self.x.attr["shape"].shape.dim.add(size=size)

    def add(self, name: str, op: str, *inputs: str, device: int | None = None) -> NodeDef:
        """A node on CPU `device`; None for no request."""
        node: NodeDef = self.graph.node.add(name=name, op=op, input=inputs)
        if device is not None:
            node.device = device_name(device)
        return node

    def math(self, name: str, op: str, *inputs: str, device: int | None = None) -> str:
        """A float32 node; its name."""
        self.add(name, op, *inputs, device=device).attr["T"].type = _FLOAT
        return name

    def workload(
        self, name: str, nodes: int, shape: Shape, fetch: str = "", target: str = "", devices: int = 1
    ) -> Workload:
        """What has been written so far, as a workload."""
        fetches, targets = (f"{fetch}:0",) if fetch else (), (target,) if target else ()
        return Workload(
            name, self.graph.SerializeToString(deterministic=True), nodes, {"x:0": shape}, fetches, targets, devices
        )


def drawn(nodes: int, shape: Shape = (), *, devices: int = 1, pinned: bool = True) -> Workload:
    """A drawn graph of binary ops, each on one of the last 50 values; on several devices each node on a drawn one."""
    draw, writer = Random(0), _Writer(shape)
    names = ["x"]
    for index in range(nodes):
        recent = names[-_LOOK_BACK:]
        device = draw.randrange(devices) if pinned else None
        inputs = draw.choice(recent), draw.choice(recent)
        names.append(writer.math(f"scope{index % 17}/n{index}", draw.choice(_OPS), *inputs, device=device))
    if pinned and devices > 1:
        writer.x.device = device_name(draw.randrange(devices))
    name = f"drawn {nodes} {shape} {devices} {pinned}"
    return writer.workload(name, nodes, shape, names[-1], devices=devices)


def chain(nodes: int, shape: Shape = (), *, devices: int = 1) -> Workload:
    """Binary ops, each on the value before and the fed one; over several devices the chain visits one after another."""
    writer, last = _Writer(shape), "x"
    for index in range(nodes):
        op = ("Maximum", "Mul", "AddV2", "Sub")[index % 4]
        last = writer.math(f"n{index}", op, last, "x", device=index % devices)
    return writer.workload(f"chain {nodes} {shape} {devices}", nodes, shape, last, devices=devices)


def stages(nodes: int, shape: Shape = (), *, devices: int) -> Workload:
    """A pipeline over GPUs of many hosts: as many nodes on each, some of which read values of the stage before.

    Every node reads the one that is four before it, so all are needed, and a drawn one of the last 50.
    """
    draw, writer, before = Random(0), _Writer(shape), list[str]()
    writer.x.device = stage_device(0)
    done = writer.add("done", "NoOp")
    done.device = stage_device(0)
    for stage in range(devices):
        own: list[str] = []
        for index in range(nodes // devices):
            recent = own[-_LOOK_BACK:] or ["x"]
            other = before[index] if before and index % _LOOK_BACK == 0 else draw.choice(recent)
            node = writer.add(f"stage{stage}/n{index}", draw.choice(_OPS), own[-4] if index >= 4 else "x", other)
            node.attr["T"].type = _FLOAT
            node.device = stage_device(stage)
            own.append(node.name)
        done.input.extend(f"^{name}" for name in own[-4:])
        before = own
    return writer.workload(f"stages {nodes} {shape} {devices}", nodes, shape, target="done", devices=devices)


def called(calls: int, shape: Shape = ()) -> Workload:
    """A chain of calls of one function, whose body is one op."""
    writer, last = _Writer(shape), "x"
    function = writer.graph.library.function.add(ret={"y": "negated:y:0"})
    function.signature.name = "negative"
    function.signature.input_arg.add(name="x", type=_FLOAT)
    function.signature.output_arg.add(name="y", type=_FLOAT)
    function.node_def.add(name="negated", op="Neg", input=["x"]).attr["T"].type = _FLOAT
    for index in range(calls):
        node = writer.add(f"call{index}", "PartitionedCall", last)
        node.attr["f"].func.name = "negative"
        for types in ("Tin", "Tout"):
            node.attr[types].list.type.append(_FLOAT)
        last = node.name
    return writer.workload(f"called {calls} {shape}", calls, shape, last)


def nested(calls: int, shape: Shape = ()) -> Workload:
    """A function that calls another, and so on: each has a body of its own, of one op and the call."""
    writer = _Writer(shape)
    _call(writer.add("call", "PartitionedCall", "x"), 0)
    for index in range(calls):
        is_last = index == calls - 1
        function = writer.graph.library.function.add(ret={"y": "negated:y:0" if is_last else "call:output:0"})
        function.signature.name = f"nested{index}"
        function.signature.input_arg.add(name="x", type=_FLOAT)
        function.signature.output_arg.add(name="y", type=_FLOAT)
        function.node_def.add(name="negated", op="Neg", input=["x"]).attr["T"].type = _FLOAT
        if not is_last:
            _call(function.node_def.add(name="call", op="PartitionedCall", input=["negated:y:0"]), index + 1)
    return writer.workload(f"nested {calls} {shape}", calls, shape, "call")


def _call(node: NodeDef, index: int) -> None:
    node.attr["f"].func.name = f"nested{index}"
    for types in ("Tin", "Tout"):
        node.attr[types].list.type.append(_FLOAT)


def shaped(ops: int) -> Workload:
    """A vector to which an element is added again and again, and an op on each: every op has other shapes."""
    writer, last = _Writer((1,)), "x"
    axis = writer.add("axis", "Const")
    axis.attr["dtype"].type, axis.attr["value"].tensor.dtype = DT_INT32, DT_INT32
    axis.attr["value"].tensor.tensor_shape.SetInParent()
    axis.attr["value"].tensor.int_val.append(0)
    for index in range(ops // 2):
        joined = writer.add(f"joined{index}", "ConcatV2", last, "x", "axis")
        joined.attr["N"].i, joined.attr["T"].type, joined.attr["Tidx"].type = 2, _FLOAT, DT_INT32
        last = writer.math(f"squared{index}", "Mul", joined.name, joined.name)
    return writer.workload(f"shaped {ops}", ops // 2 * 2, (1,), last)


def hops(devices: int) -> Workload:
    """One node on each device, each reading the one before."""
    writer, last = _Writer(()), "x"
    for index in range(devices):
        last = writer.math(f"n{index}", "Neg", last, device=index)
    return writer.workload(f"hops {devices}", devices, (), last, devices=devices)


def pairs(count: int, *, devices: int) -> Workload:
    """`count` values made on one device and read on the next, or, with `devices` 1, on the same."""
    writer = _Writer(())
    writer.x.device = device_name(0)
    done = writer.add("done", "NoOp", device=devices - 1)
    for index in range(count):
        made = writer.math(f"made{index}", "Neg", "x", device=0)
        read = writer.math(f"read{index}", "Neg", made, device=devices - 1)
        done.input.append(f"^{read}")
    return writer.workload(f"pairs {count} {devices}", count, (), target="done", devices=devices)
