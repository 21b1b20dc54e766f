"""Golden texts of the plans of small graphs: what a device does and what it waits for, also inside of loops."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from partita.actors.plans.binding import Binder
from partita.actors.plans.compiler import compile_plans
from partita.devices import cut
from partita.devices.state import DeviceState
from partita.graph.builder import GraphBuilder
from partita.graph.protos import GraphDef
from tests.actors.running.loops.test_loops import add_loop, doubling
from tests.goldens import assert_file, assert_text
from tests.strategies import cpu


def texts(graph_def: GraphDef, fetch: str, feeds: list[str]) -> str:
    """The plans of a request over two devices, with device names and incarnations shortened."""
    parts = cut(graph_def, "cpu:2", feeds=feeds, fetches=[fetch])
    plans = compile_plans([(part, Binder(name, DeviceState(0))) for name, part in parts.items()])
    text = "\n\n".join(map(str, plans))
    return text.replace("/job:localhost/replica:0/task:0/device:", "").replace(";0000000000000001;", ";1;")


def test_a_chain_over_two_devices() -> None:
    """Messages, and the segments that wait for them."""
    b = GraphBuilder()
    neg = b.op("Neg", b.placeholder("x", "float32", (), device=cpu(0)), name="neg", device=cpu(0))[0]
    added = b.op("Add", neg, b.constant(np.float32(1)), name="sum", device=cpu(1))[0]
    b.op("Mul", added, neg, name="y", device=cpu(0))
    assert_text(
        texts(b.graph_def(), "y", ["x"]),
        """
        plan of CPU:0
          slots 9
          argument 0 (float) -> s5
          message 0 -> s8, key CPU:1;1;CPU:0;edge_5_sum;0:0
        segment 0, at once
          s6 = Neg(s5)    # neg
          _Send(s6)    # neg/_0: send CPU:0;1;CPU:1;edge_3_neg;0:0
        segment 1, after message 0
          s7 = Mul(s8, s6)    # y
        result 0 (float) = s7

        plan of CPU:1
          slots 8
          holds s5 = float32 1.0
          message 0 -> s6, key CPU:0;1;CPU:1;edge_3_neg;0:0
        segment 0, at once
        segment 1, after message 0
          s7 = Add(s6, s5)    # sum
          _Send(s7)    # sum/_2: send CPU:1;1;CPU:0;edge_5_sum;0:0
        """,
    )


def test_a_loop_over_two_devices() -> None:
    """What each device does in an iteration, and the stems of its messages."""
    b = GraphBuilder()
    x, n = b.placeholder("x", "float32", ()), b.placeholder("n", "int32", ())
    value, _ = add_loop(b, "loop", x, n, lambda v: b.op("AddV2", v, v, name="double", device=cpu(1))[0])
    b.identity(value, name="y", device=cpu(0))
    assert_file(texts(b.graph_def(), "y", ["x", "n"]), Path(__file__).parent / "data" / "loop_of_two.txt")


def test_a_loop_of_one_device() -> None:
    """Condition and body, and what goes from one iteration to the next."""
    assert_text(
        texts(doubling(), "y", ["x", "n"]),
        """
        plan of CPU:0
          slots 9
          holds s7 = int32 0
          argument 0 (float) -> s5
          argument 1 (int32) -> s6
        segment 0, at once
          While(s5, s7, s6)    # loop: call 0
        segment 1, after call 0
        result 0 (float) = s8
        call 0, loop -> s8
          loop of this device, 12 slots; begins with s5, s6, s7
            holds s10 = int32 1
          every iteration
            s8 = Less(s6, s7)    # Less
          ends unless s8, with s5; else
            s9 = AddV2(s5, s5)    # AddV2
            s11 = AddV2(s6, s10)    # AddV2_1
          the next one gets s9, s11
        """,
    )


def test_a_deferred_node() -> None:
    """Nodes behind a dequeue are in a segment after its call."""
    b = GraphBuilder()
    queue = b.op("FIFOQueueV2", component_types=["float32"], name="queue", device=cpu(0))[0]
    fill = b.op("QueueEnqueueV2", queue, [b.placeholder("x", "float32", ())], name="fill", device=cpu(0))
    taken = b.op("QueueDequeueV2", queue, component_types=["float32"], name="taken", control=[fill.name], device=cpu(0))
    b.op("Neg", taken[0], name="y", device=cpu(0))
    assert_text(
        texts(b.graph_def(), "y", ["x"]),
        """
        plan of CPU:0
          slots 9
          argument 0 (float) -> s6
        segment 0, at once
          s5 = FIFOQueueV2()    # queue
          QueueEnqueueV2(s5, s6)    # fill: call 0
        segment 1, after call 0
          QueueDequeueV2(s5)    # taken: call 1
        segment 2, after call 1
          s8 = Neg(s7)    # y
        result 0 (float) = s8
        call 0, fill
          starts QueueEnqueueV2
        call 1, taken -> s7
          starts QueueDequeueV2
        """,
    )
