"""Training steps whose transfers share links: replicas on many GPUs, eight a host, and their cluster.

    image_training on one GPU --replicated--> a tower on each GPU, one update of each variable from the sum of gradients
    gradients                                 tiny nodes on every GPU, of which some are added up on a few GPUs

A tower is copied node by node: to take the gradients of each anew would take longer than what is measured.
"""

from __future__ import annotations

from random import Random

from partita.graph.protos import GraphDef
from partita.graph.protos.types_pb2 import DT_FLOAT
from partita.scenarios.workloads.image_training import image_training

from .workloads import GPUS_PER_HOST, Workload, stage_device

_HOST = "/job:worker/replica:0/task:0/device:CPU:0"
_ONE = stage_device(0)
_IMAGES = 8
_SHAPE = (1 << 16,)
_OPS = ("AddV2", "Mul", "Sub", "Maximum")
_GRADIENTS = 41  # of each GPU


def cluster(devices: int) -> str:
    """A cluster file of that many GPUs."""
    hosts = -(-devices // GPUS_PER_HOST)
    return f'[[device]]\njob = "worker"\ntasks = {hosts}\nspec = "H100-SXM"\ncount = {GPUS_PER_HOST}\n'


def data_parallel(network: str, gpus: int) -> Workload:
    """A training step of an image network with a tower on each GPU; variables are on the first host."""
    step = image_training(network, _IMAGES, _ONE, _HOST)
    one = step.graph.to_graph_def()
    towers = {node.name for node in one.node if node.device == _ONE}
    made = GraphDef(versions=one.versions)
    for node in one.node:
        if node.name not in towers:
            shared = made.node.add()
            shared.CopyFrom(node)
            if node.op == "ResourceApplyGradientDescent":
                shared.input[2] = _summed(made, node.input[2], gpus)
    for gpu in range(gpus):
        for node in one.node:
            if node.name in towers:
                copied = made.node.add()
                copied.CopyFrom(node)
                copied.name, copied.device = f"tower{gpu}/{node.name}", stage_device(gpu)
                copied.input[:] = [_of_tower(name, gpu, towers) for name in node.input]
                if node.op == "VarHandleOp":
                    copied.attr["shared_name"].s = copied.name.encode()
    fetches = tuple(f"tower{gpu}/{name}" for gpu in range(gpus) for name in step.fetches)
    feeds = {f"tower{gpu}/labels:0": (_IMAGES,) for gpu in range(gpus)}
    data = made.SerializeToString(deterministic=True)
    return Workload(f"{network} {gpus}", data, len(made.node), feeds, fetches, step.targets, gpus)


def gradients(nodes: int, gpus: int) -> Workload:
    """As many nodes on each GPU, and values of each that are added up on the first GPUs of hosts."""
    draw, made = Random(0), GraphDef()
    x = made.node.add(name="x", op="Placeholder", device=_ONE)
    x.attr["dtype"].type = DT_FLOAT
    for size in _SHAPE:
        x.attr["shape"].shape.dim.add(size=size)
    done = made.node.add(name="done", op="NoOp", device=_ONE)
    each = max(nodes // gpus, _GRADIENTS)
    for gpu in range(gpus):
        for index in range(each):
            inputs = f"gpu{gpu}/n{index - 4}" if index >= 4 else "x", f"gpu{gpu}/n{index - 1}" if index else "x"
            node = made.node.add(name=f"gpu{gpu}/n{index}", op=draw.choice(_OPS), input=inputs)
            node.device = stage_device(gpu)
            node.attr["T"].type = DT_FLOAT
    for k in range(_GRADIENTS):
        index = (k + 1) * each // _GRADIENTS - 1
        total = made.node.add(name=f"sum{k}", op="AddN", input=[f"gpu{gpu}/n{index}" for gpu in range(gpus)])
        total.device = stage_device(k * GPUS_PER_HOST % gpus)
        total.attr["N"].i, total.attr["T"].type = gpus, DT_FLOAT
        done.input.append(f"^sum{k}")
    data = made.SerializeToString(deterministic=True)
    return Workload(f"gradients {nodes} {gpus}", data, len(made.node), {"x:0": _SHAPE}, (), ("done",), gpus)


def _summed(made: GraphDef, gradient: str, gpus: int) -> str:
    """Adds the sum of a gradient of all towers."""
    total = made.node.add(name=f"{gradient}/sum", op="AddN", device=_HOST)
    total.input.extend(f"tower{gpu}/{gradient}" for gpu in range(gpus))
    total.attr["N"].i, total.attr["T"].type = gpus, DT_FLOAT
    return total.name


def _of_tower(name: str, gpu: int, towers: set[str]) -> str:
    control, text = ("^", name[1:]) if name.startswith("^") else ("", name)
    return f"{control}tower{gpu}/{text}" if text.partition(":")[0] in towers else name
