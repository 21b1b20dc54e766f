"""Small graphs over devices, for tests of sessions, above all over worker processes."""

from __future__ import annotations

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
from partita.graph.protos import GraphDef
from tests.strategies import cpu

FLOAT = DataType.FLOAT


def doubled() -> GraphDef:
    """y = -(x + x), the sum `d` on CPU:1."""
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", (), device=cpu(0))
    total = builder.op("AddV2", x, x, name="d", device=cpu(1))[0]
    builder.op("Neg", total, name="y", device=cpu(0))
    return builder.graph_def()


def variables_on_two_devices() -> tuple[GraphBuilder, Tensor]:
    """Variables, which `set0` and `set1` set to `x`, and whose negations on the other device are `neg0` and `neg1`."""
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", (), device=cpu(0))
    for i in range(2):
        v = builder.op("VarHandleOp", name=f"v{i}", dtype=FLOAT, shape=(), shared_name=f"v{i}", device=cpu(i))[0]
        builder.op("AssignVariableOp", v, x, name=f"set{i}", device=cpu(i))
        read = builder.op("ReadVariableOp", v, name=f"read{i}", dtype=FLOAT, device=cpu(i))[0]
        builder.op("Neg", read, name=f"neg{i}", device=cpu(1 - i))
    return builder, x


def stateful() -> GraphDef:
    """A variable `v` on each of two devices, and on the second a queue; `take` waits for an element."""
    builder, x = variables_on_two_devices()
    queue = builder.op("FIFOQueueV2", name="q", component_types=[FLOAT], shapes=[()], device=cpu(1))[0]
    builder.op("QueueEnqueueV2", queue, [x], Tcomponents=[FLOAT], name="put", device=cpu(1))
    taken = builder.op("QueueDequeueV2", queue, component_types=[FLOAT], name="take", device=cpu(1))[0]
    builder.op("Neg", taken, name="taken", device=cpu(0))
    return builder.graph_def()
