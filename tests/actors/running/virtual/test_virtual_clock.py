"""Simulated time in sessions: steps under way share devices, a step waits for another at a queue, errors end one step.

The times of ops are stated here, so that those of steps can be counted by hand.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from partita.actors import Session, open_session
from partita.devices.timing import OpCost, Timeline
from partita.errors import CancelledError, InternalError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.protos import GraphDef
from tests.actors.running.loops.test_loops import add_loop
from tests.strategies import cpu

TIMES_NS = {"Neg": 1000, "Exp": 300, "Error": 500, "AssignAdd": 100, "Delay": 3_600_000_000_000, "MatMul": 700}
HOUR_US = 3_600_000_000


class Costs:
    """The time of an op, whatever its shapes and device; an op that is not listed is free."""

    def cost(self, properties: Any, _inputs: object, _outputs: object, _spec: object) -> OpCost:  # Any: as CostSource
        """The cost of one run."""
        time_ns = TIMES_NS.get(properties.op, 0)
        return OpCost(time_ns, 0, 0, "measured" if time_ns else "free")


def opened(graph_def: GraphDef, devices: str = "cpu:2", **settings: Any) -> Any:  # Any: as `open_session`
    """A session on a virtual clock with these costs."""
    return open_session(graph_def, devices, clock="virtual", cost_source=Costs(), **settings)


def times(timeline: Timeline, node: str) -> tuple[int, int]:
    """When a node ran."""
    event = timeline.find(node)
    return event.start_ns, event.end_ns


def two_ops() -> GraphDef:
    """`slow` and `fast`, one on each CPU, and `failing`, which takes the first CPU before it fails."""
    b = GraphBuilder()
    x = b.constant(np.float32(2), device=cpu(0))
    b.op("Neg", x, name="slow", device=cpu(0))
    b.op("Exp", b.constant(np.float32(0), device=cpu(1)), name="fast", device=cpu(1))
    b.op("Error", x, name="failing", message="on purpose", device=cpu(0))
    return b.graph_def()


async def test_every_step_begins_at_the_present_and_its_timeline_at_0() -> None:
    """Two steps, one after the other, have the same timeline."""
    async with opened(two_ops()) as session:
        assert (await session.run("slow"))[0] == -2
        first = session.timeline()
        await session.run("slow")
        assert session.timeline().events == first.events
        assert first.makespan_ns == 1000


async def test_steps_under_way_share_devices() -> None:
    """Of two steps that start together, the second waits for the first where they need the same device."""
    makespans: list[int] = []

    async def run(session: Session, fetch: str) -> None:
        await session.run(fetch)
        makespans.append(session.timeline().makespan_ns)

    async with opened(two_ops()) as session:
        for together, expected in ((("slow", "slow"), [1000, 2000]), (("slow", "fast"), [300, 1000])):
            makespans.clear()
            async with trio.open_nursery() as nursery:
                for fetch in together:
                    nursery.start_soon(run, session, fetch)
            assert makespans == expected


async def test_nobody_sleeps() -> None:
    """An hour of simulated waiting passes at once."""
    b = GraphBuilder()
    b.op("Delay", b.constant(np.float32(1)), name="late", micros=HOUR_US)
    with trio.fail_after(60):
        async with opened(b.graph_def()) as session:
            await session.run("late")
            assert session.timeline().makespan_ns == HOUR_US * 1000


def updates() -> GraphDef:
    """A variable that is set to 1 after `slow`, to 2 after `fast`; which is later decides what is left."""
    b = GraphBuilder()
    x = b.constant(np.float32(1))
    v = b.variable("v", "float32", (), device=cpu(0))
    for number, op in ((1, "Neg"), (2, "Exp")):
        done = b.op(op, x, device=cpu(0 if op == "Neg" else 1))
        value = b.constant(np.float32(number), device=cpu(0), control=[done])
        b.op("Assign", v, value, name=f"set_{number}", device=cpu(0))
    return b.graph_def()


async def test_simulated_time_decides_which_effect_is_later() -> None:
    """The slow op ends last, so its value stays, whatever the order of kernels in real time."""
    async with opened(updates()) as session:
        await session.run([], targets=["set_1", "set_2"])
        assert (await session.run("v"))[0] == 1


def queue_graph() -> GraphDef:
    """Step `put` enqueues after a slow op on CPU:1; step `take` dequeues on CPU:0, and computes with what it gets."""
    b = GraphBuilder()
    queue = b.op("FIFOQueueV2", name="q", component_types=[DataType.FLOAT], capacity=1, device=cpu(0))[0]
    item = b.op("Neg", b.constant(np.float32(1), device=cpu(1)), name="item", device=cpu(1))
    b.op("QueueEnqueueV2", queue, [item[0]], name="put", device=cpu(0))
    taken = b.op("QueueDequeueV2", queue, name="taken", component_types=[DataType.FLOAT], device=cpu(0))
    b.op("Exp", taken[0], name="take", device=cpu(0))
    return b.graph_def()


async def test_a_step_waits_for_another_at_a_queue() -> None:
    """The dequeue ends when the element is enqueued in simulated time, and holds no device meanwhile."""
    timelines: dict[str, Timeline] = {}

    async def run(session: Session, name: str, *, fetch: bool) -> None:
        await session.run(name if fetch else [], targets=[] if fetch else [name])
        timelines[name] = session.timeline()

    async with opened(queue_graph()) as session, trio.open_nursery() as nursery:
        nursery.start_soon(partial(run, session, "take", fetch=True))
        nursery.start_soon(partial(run, session, "put", fetch=False))
    enqueued = times(timelines["put"], "put")[1]
    assert enqueued >= 1000  # after `item`, and its way to CPU:0
    assert times(timelines["take"], "taken") == (0, enqueued)
    assert times(timelines["take"], "take") == (enqueued, enqueued + 300)


async def test_a_step_that_nobody_feeds_waits_until_somebody_does() -> None:
    """Time does not move while all steps wait; a later step of the host feeds the waiting one."""
    taken: list[float] = []
    has_taken = trio.Event()

    async def take(session: Session) -> None:
        taken.extend((await session.run("take"))[0].ravel())
        has_taken.set()

    async with opened(queue_graph()) as session, trio.open_nursery() as nursery:
        nursery.start_soon(take, session)
        await wait_all_tasks_blocked()
        assert not taken
        await session.run([], targets="put")
        await has_taken.wait()
        assert taken == [np.exp(np.float32(-1))]


async def test_a_failing_op_ends_its_step_only() -> None:
    """The other step under way goes on, and what comes later finds idle devices."""
    async with opened(two_ops()) as session:
        ended: list[str] = []

        async def fail() -> None:
            with pytest.raises(InternalError, match="on purpose"):
                await session.run("failing")
            ended.append("failing")

        async def work() -> None:
            await session.run("fast")
            ended.append("fast")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            nursery.start_soon(work)
        assert sorted(ended) == ["failing", "fast"]
        await session.run("slow")
        assert session.timeline().makespan_ns == 1000


async def test_a_cancelled_step_and_a_closed_session_leave_nothing_running() -> None:
    """A step that waits at a queue is cancelled; another ends with the session."""
    async with trio.open_nursery() as nursery, opened(queue_graph()) as session:
        with trio.move_on_after(0):
            await session.run("take")
        assert session.statistics().steps_running == 0
        await session.run([], targets="put")  # nobody took the element

        async def wait() -> None:
            with pytest.raises(CancelledError, match="closed"):
                await session.run([], targets="put")  # the queue is full

        nursery.start_soon(wait)
        await wait_all_tasks_blocked()


async def test_a_loop_runs_its_iterations_one_after_the_other() -> None:
    """Every iteration has events of its own, with the number of the iteration."""
    b = GraphBuilder()
    x, n = (b.constant(np.array(value, dtype)) for value, dtype in ((1, np.float32), (3, np.int32)))
    value, _ = add_loop(b, "loop", x, n, lambda v: b.op("Neg", v, name="body")[0], 1)
    b.identity(value, name="y")
    async with opened(b.graph_def(), "cpu:1") as session:
        assert (await session.run("y"))[0] == -1
        events = [event for event in session.timeline().events if event.node == "body"]
    assert [event.iteration for event in events] == ["loop:0", "loop:1", "loop:2"]
    assert [event.start_ns for event in events] == [0, 1000, 2000]


async def test_kernels_of_a_gpu_are_launched_ahead() -> None:
    """A chain of kernels: launches overlap with kernels, and a value is read when its kernel has ended."""
    b = GraphBuilder()
    gpu = "/job:localhost/replica:0/task:0/device:GPU:0"
    value = b.constant(np.ones((2, 2), np.float32), device=gpu)
    for number in range(3):
        value = b.op("MatMul", value, value, name=f"m{number}", device=gpu)[0]
    b.op("Neg", value, name="host", device=cpu(0))
    async with opened(b.graph_def(), "cpu:1,gpu:1") as session:
        (result,) = await session.run("host")
        timeline = session.timeline()
    assert result.tolist() == [[-128.0] * 2] * 2
    launches = [event for event in timeline.events if event.kind == "launch"]
    launch_ns = launches[0].duration_ns
    assert [event.start_ns for event in launches] == [0, launch_ns, 2 * launch_ns]
