"""What runs while a worker is killed: a step over four devices that takes some milliseconds, and has state on each.

total     products that go round the devices, the same in every step
counts    a variable on each device, read before the step adds one to it; on CPU:2 there is a queue, too
count     the target that adds
init      the target that sets the variables to 0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.actors import Session, open_session
from partita.devices.catalog import device_spec
from partita.devices.cluster import Cluster
from partita.devices.device import Device
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.protos import GraphDef

# Of a width at which BLAS uses no threads: where it does, a product that is held up between two lines of Python for
# 50 ms may run on two, and have other last bits (`devices/kernels/blas_threads.py`).
DEVICES, HOPS, WIDTH = 4, 48, 20
X = np.linspace(-1, 2, WIDTH * WIDTH, dtype=np.float32).reshape(WIDTH, WIDTH)
_QUEUE: dict[str, Any] = {"component_types": [DataType.FLOAT]}


def cluster(num_tasks: int) -> Cluster:
    """Four CPUs, which the tasks share."""
    spec, each = device_spec("generic-cpu"), DEVICES // num_tasks
    return Cluster([Device(spec, k % each, task=k // each) for k in range(DEVICES)])


def scene(devices: Sequence[str]) -> GraphDef:
    """The graph on these devices."""
    builder = GraphBuilder()
    y = builder.placeholder("x", "float32", X.shape, device=devices[0])
    w = builder.constant(np.float32(0.1) * X.T, name="w", device=devices[0])
    for hop in range(HOPS):
        with builder.device(devices[hop % DEVICES]):
            y = builder.op("Tanh", builder.op("MatMul", y, w))[0]
    counts = [_counter(builder, device, number) for number, device in enumerate(devices)]
    with builder.device(devices[0]):
        total = builder.op("Sum", y, [0, 1], name="total")
        builder.op("CheckNumerics", total, message="as asked", name="checked", device=devices[-1])
        builder.op("Pack", counts, name="counts")
        builder.group(*(f"add_{number}" for number in range(DEVICES)), name="add")
        builder.group("add", "put", name="count")
        builder.group(*(f"set_{number}" for number in range(DEVICES)), name="init")
    return builder.graph_def()


def _counter(builder: GraphBuilder, device: str, number: int) -> str:
    """A variable, what reads it, and what adds one to it afterwards; a queue that takes what is read."""
    name = f"v_{number}"
    with builder.device(device):
        v = builder.op("VarHandleOp", name=name, shared_name=name, dtype=DataType.FLOAT, shape=())[0]
        builder.op("AssignVariableOp", v, builder.constant(0.0, "float32"), name=f"set_{number}")
        read = builder.op("ReadVariableOp", v, dtype=DataType.FLOAT, name=f"read_{number}")[0]
        with builder.control_dependencies(read):
            builder.op("AssignAddVariableOp", v, builder.constant(1.0, "float32"), name=f"add_{number}")
        if number == 2:
            queue = builder.op("FIFOQueueV2", name="queue", capacity=1 << 20, attrs=_QUEUE)[0]
            builder.op("QueueEnqueueV2", queue, [read], Tcomponents=[DataType.FLOAT], name="put")
    return f"read_{number}"


async def right_total() -> float:
    """What one process computes."""
    devices = cluster(1)
    async with open_session(scene(devices.names), devices) as session:
        (total,) = await session.run("total", {"x": X})
    return float(total)


async def step(session: Session) -> tuple[float, list[float]]:
    """One step: the total and the counts before it."""
    total, counts = await session.run(["total", "counts"], {"x": X}, "count")
    return float(total), counts.tolist()
