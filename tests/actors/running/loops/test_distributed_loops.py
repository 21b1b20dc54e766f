"""Loops over devices and on one device: constant memory, no garbage, yields to other tasks, unusual shapes.

`SOAK=100000 pytest -s` on this file runs that many iterations instead of a few thousand, and prints the memory growth.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Any

import numpy as np
import pytest
import trio

from partita.actors import open_session
from partita.actors.running.pacing import DEFAULT_BUDGET_S
from partita.actors.sessions import workers
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.protos import GraphDef, RunMetadata, RunOptions
from tests.actors.running.loops.test_loops import add_loop
from tests.actors.sessions.test_session import replace_neg
from tests.large_graphs import counted_loop
from tests.runs import Watch, counted_garbage
from tests.strategies import cpu

FEW, MANY = 200, int(os.environ.get("SOAK", "4000"))
MOST_AHEAD = 4  # messages that wait at a rendezvous


def negating(where: int) -> GraphDef:
    """y = x * (-1) ** n, with the negation perhaps on another device; x is large enough to be noticed."""
    builder = GraphBuilder()
    x, n = builder.placeholder("x", "float32", (256,)), builder.placeholder("n", "int32", ())
    value, _ = add_loop(builder, "loop", x, n, lambda v: builder.op("Neg", v, device=cpu(where))[0])
    builder.identity(value, name="y", device=cpu(0))
    return builder.graph_def()


def feeds(count: int, value: float = 1) -> dict[str, Any]:
    """Feeds for this many iterations."""
    return {"x": np.full(256, value, np.float32), "n": count}


class Blocks:
    """A kernel of Neg that notes how many blocks of memory Python has allocated at each call.

    Blocks, not bytes: an array, a key or a float that an iteration keeps is at least one block.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held = np.zeros(2 * MANY, np.int64)
        self.calls = 0
        replace_neg(monkeypatch, self)

    def __call__(self, value: Any) -> Any:
        self.held[self.calls] = sys.getallocatedblocks()
        self.calls += 1
        return -value


@pytest.mark.parametrize("where", [0, 1])
async def test_iterations_keep_no_memory(monkeypatch: pytest.MonkeyPatch, where: int) -> None:
    """The second half of a loop has no more blocks than the first half, within a small tolerance."""
    blocks = Blocks(monkeypatch)
    async with open_session(negating(where), "cpu:2") as session:
        await session.run("y", feeds(FEW))
        gc.collect()
        blocks.calls = 0
        await session.run("y", feeds(MANY))
    assert blocks.calls == MANY
    first, second = (int(half.max()) for half in np.split(blocks.held[:MANY], 2))
    print(f"\nblocks held during the first {MANY // 2} iterations: {first}, during the others: {second}")
    assert second < first + MANY // 10


@pytest.mark.parametrize("budget_s", [0, DEFAULT_BUDGET_S])
async def test_a_device_that_waits_for_nobody_does_not_run_away_from_those_that_follow(
    monkeypatch: pytest.MonkeyPatch, budget_s: float
) -> None:
    """The counter is on the first device, a sum on the second, which sends nothing back.

    With a budget of zero every chunk takes too long, as on a busy machine.
    """
    watch = Watch()
    monkeypatch.setattr(workers, "LocalRendezvous", watch)
    async with open_session(counted_loop(MANY), "cpu:2", budget_s=budget_s, thread_limit_s=60) as session:
        for _ in range(2):
            await session.run("sum:0", {"x": np.float32(1)})
    assert watch.most_queued <= MOST_AHEAD


@pytest.mark.parametrize("where", [0, 1])
async def test_iterations_leave_nothing_to_the_garbage_collector(where: int) -> None:
    async with open_session(negating(where), "cpu:2") as session:
        await session.run("y", feeds(3))
        with counted_garbage() as left:
            for count in (0, 1, MANY):
                await session.run("y", feeds(count))
    assert left == [0]


@pytest.mark.parametrize("budget_s", [0, 0.001])
@pytest.mark.parametrize("where", [0, 1])
async def test_a_loop_without_end_gives_other_tasks_their_turn_and_can_be_cancelled(
    where: int, budget_s: float
) -> None:
    turns = 0
    async with open_session(negating(where), "cpu:2", budget_s=budget_s) as session:
        session.prepare(["x", "n"], "y")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.run, "y", feeds(2**31 - 1))
            while turns < 50:
                await trio.lowlevel.checkpoint()
                turns += 1
            assert session.statistics().steps_running == 1
            nursery.cancel_scope.cancel()
        assert session.statistics().steps_running == 0
        (got,) = await session.run("y", feeds(3))
        assert (got == -1).all()
    assert turns == 50


async def test_two_steps_run_one_loop_at_the_same_time() -> None:
    results: dict[int, Any] = {}
    async with open_session(negating(1), "cpu:2", budget_s=0) as session, trio.open_nursery() as nursery:

        async def run(count: int) -> None:
            (results[count],) = await session.run("y", feeds(count, count))

        for count in (30, 31, 7):
            nursery.start_soon(run, count)
    assert {count: float(value[0]) for count, value in results.items()} == {30: 30, 31: -31, 7: -7}


@pytest.mark.parametrize("where", [0, 1])
async def test_a_trace_has_what_is_in_a_loop_once_per_iteration(where: int) -> None:
    async with open_session(negating(where), "cpu:2") as session:
        metadata = RunMetadata()
        (got,) = await session.run(
            "y", feeds(5), options=RunOptions(trace_level=RunOptions.FULL_TRACE), metadata=metadata
        )
        assert (got == -1).all()
        traced_nodes = [(d.device, s.node_name) for d in metadata.step_stats.dev_stats for s in d.node_stats]
    assert traced_nodes.count((cpu(where), "Neg")) == 5
    assert traced_nodes.count((cpu(0), "Less")) == 6
    assert traced_nodes.count((cpu(0), "AddV2")) == 5
    assert traced_nodes.count((cpu(0), "y")) == 1
    assert "loop" not in {name for _, name in traced_nodes}


def shifting(where: int) -> GraphDef:
    """A loop unlike those of `tf.while_loop`: NextIteration is input 0 of one of its Merges."""
    builder = GraphBuilder()
    x, n = (
        builder.placeholder("x", "float32", (), device=cpu(0)),
        builder.placeholder("n", "float32", (), device=cpu(0)),
    )
    with builder.device(cpu(0)):
        entered = builder.op("Enter", x, frame_name="f")[0]
        limit = builder.op("Enter", n, frame_name="f", is_constant=True)[0]
        merge = builder.op("Merge", [builder.later("float32"), entered])
        switch = builder.op("Switch", merge[0], builder.op("LoopCond", builder.op("Less", merge[0], limit)))
    doubled: Tensor = builder.op("AddV2", switch[1], switch[1], device=cpu(where))[0]
    builder.close_loop(merge, builder.op("NextIteration", doubled, device=cpu(0))[0], port=0)
    builder.op("Exit", switch[0], name="y", device=cpu(0))
    return builder.graph_def()


@pytest.mark.parametrize("where", [0, 1])
async def test_an_odd_loop_is_interpreted(where: int) -> None:
    async with open_session(shifting(where), "cpu:2") as session:
        assert session.prepare(["x", "n"], "y").whole is not None
        assert await session.run("y", {"x": 3.0, "n": 40.0}) == [48]
