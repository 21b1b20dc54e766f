"""Collectives whose members are in several processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import trio
from hypothesis import given, settings, strategies as st

from partita.actors import open_session
from partita.errors import DeadlineExceededError, InternalError, InvalidArgumentError, PartitaError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.protos import GraphDef
from tests.actors.running.remote.processes import open_processes
from tests.devices.kernels.communication.collective_graphs import (
    ROWS,
    all_reduce,
    functional_loop,
    held_up_by_a_queue,
    lowered_loop,
    mesh_graph,
    meshes,
    two,
)
from tests.strategies import cpu

F1, F2, D1 = np.array([1], np.float32), np.array([1, 2], np.float32), np.array([1.0])


@settings(max_examples=60)
@given(meshes(), st.text("ABC", min_size=11, max_size=11), st.integers(0, 2**32 - 1))
async def test_members_get_what_their_group_brings(mesh: Any, hosts: str, seed: int) -> None:
    """However devices are spread, in two steps at once; the bits are those of one process."""
    count, rounds = mesh
    start = [np.random.default_rng([seed, n]).uniform(-2, 2, ROWS).astype(np.float32) for n in range(count)]
    b, expected = mesh_graph(rounds, start, lambda n: n)
    names, feeds = [f"y{n}" for n in range(count)], {f"x{n}": value for n, value in enumerate(start)}
    async with open_processes(b.graph_def(), hosts[:count], order=seed) as session, trio.open_nursery() as nursery:

        async def check() -> None:
            for ours, theirs in zip(await session.run(names, feeds), expected, strict=True):
                np.testing.assert_array_equal(ours, theirs, strict=True)

        nursery.start_soon(check)
        nursery.start_soon(check)
    assert session.waiting() == 0


@pytest.mark.parametrize("loop", [lowered_loop, functional_loop])
@pytest.mark.parametrize("often", [1, 3, 20])
async def test_members_in_loops_of_their_own_meet_by_iteration(loop: Callable[..., Tensor], often: int) -> None:
    """A loop that goes on alone is found to be stuck, and leaves nothing behind."""
    b = GraphBuilder()
    for n in range(2):
        x, limit = b.placeholder(f"x{n}", "float32", ()), b.placeholder(f"n{n}", "int32", ())
        b.identity(loop(b, n, x, limit), name=f"y{n}", device=cpu(n))
    feeds, total = {"x0": 1.0, "x1": 2.0, "n0": often, "n1": often}, 1.5
    for _ in range(often):
        total = 2 * total + 1
    async with open_processes(b.graph_def(), "AB") as session:
        assert await session.run(["y0", "y1"], feeds) == [total, total]
        with pytest.raises(InvalidArgumentError, match=r"group 1, instance 1: 1 of 2 members has not come.*CPU:1"):
            await session.run(["y0", "y1"], feeds | {"n1": often + 1})
        assert await session.run(["y0", "y1"], feeds) == [total, total]
        assert session.waiting() == 0


REFUSED: dict[str, tuple[GraphBuilder, type[PartitaError]]] = {
    "shapes": (two(F1, F2), InvalidArgumentError),
    "types": (two(F1, D1), InternalError),
    "sizes": (two(F1, F1, sizes=[2, 3]), InternalError),
    "more members": (two(F1, F1, F1, sizes=[2, 2, 2]), InternalError),
    "no member": (two(F1, sizes=[0]), InvalidArgumentError),
    "a member missing": (two(F1, F1, sizes=[3, 3]), InvalidArgumentError),
    "other instances": (two(F1, F1, instances=[1, 2]), InvalidArgumentError),
    "in time": (two(F1, F1, sizes=[3, 3], timeout_seconds=0.01), DeadlineExceededError),
}


def with_fed_key(graph_def: GraphDef) -> GraphDef:
    """The same, but the key of all groups is fed: so no check before the step can refuse it."""
    fed = GraphDef.FromString(graph_def.SerializeToString())
    b = GraphBuilder()
    b.placeholder("key", "int32", ())
    fed.node.append(b.graph_def().node[0])
    for node in fed.node:
        if node.op == "CollectiveReduceV2":
            node.input[2] = "key"
    return fed


@pytest.mark.parametrize("name", REFUSED)
async def test_groups_that_do_not_fit_are_refused_as_in_one_process(name: str) -> None:
    """With one of the errors that the orders of coming give, at the member; the next step is as if nothing was."""
    b, error = REFUSED[name]
    b.identity(b.constant(np.float32(7)), name="other")
    graph_def, feeds = with_fed_key(b.graph_def()), {"key": 1}
    fetches = [node.name for node in graph_def.node if node.name.startswith("y")]
    async with open_session(graph_def, "cpu:3") as session:
        with pytest.raises(error) as expected:
            await session.run(fetches, feeds)
    async with open_processes(graph_def, "ABC") as processes:
        for _ in range(2):
            with pytest.raises(error) as caught:
                await processes.run(fetches, feeds)
            assert sorted(map(_plain, caught.value.message)) == sorted(map(_plain, expected.value.message))
            assert caught.value.op == expected.value.op
            assert processes.waiting() == 0
        assert await processes.run(["other"]) == [7]


def _plain(letter: str) -> str:
    """A letter of an error but for the numbers of devices and shapes, which may come in any order."""
    return "0" if letter.isdigit() else letter


@pytest.mark.parametrize("rows", [3, 4])
async def test_an_error_of_the_combination_is_one_of_the_last_member(rows: int) -> None:
    """Wherever the home is."""
    b = GraphBuilder()
    for n in range(2):
        with b.device(cpu(n)):
            x = b.placeholder(f"x{n}", "float32", None)
            y = b.op("CollectiveReduceScatterV2", x, 2, 1, 1, [], merge_op=b"Add", final_op=b"Id", name=f"m{n}")
            b.identity(y[0], name=f"y{n}")
    feeds = {f"x{n}": np.arange(rows, dtype=np.float32) for n in range(2)}
    failed = set()
    for order in range(6):
        async with open_processes(b.graph_def(), "AB", order=order) as session:
            if rows % 2:
                with pytest.raises(InvalidArgumentError, match="3 rows cannot be split over 2 members") as caught:
                    await session.run(["y0", "y1"], feeds)
                failed.add(caught.value.node)
            else:
                first, second = await session.run(["y0", "y1"], feeds)
                assert [*first, *second] == [0, 2, 4, 6]
    assert failed == ({"m0", "m1"} if rows % 2 else set())


async def test_a_shared_output_crosses_to_a_process_once() -> None:
    """The other members there get it from the first."""
    b = GraphBuilder()
    for n in range(4):
        with b.device(cpu(n)):
            b.identity(all_reduce(b, b.placeholder(f"x{n}", "float32", None), 4), name=f"y{n}")
    feeds = {f"x{n}": np.full(1000, n, np.float32) for n in range(4)}
    async with open_processes(b.graph_def(), "AABB") as session:
        for value in await session.run([f"y{n}" for n in range(4)], feeds):
            assert (value == 6).all()
        crossed = [size for key, size in session.pushed if "meeting" in key]
        assert sorted(crossed) == [0, 4000, 4000, 4000]


@pytest.mark.parametrize("op", ["communicator", "nccl", "unequal"])
async def test_other_kinds_of_members_meet_too(op: str) -> None:
    """In the order of their ranks, which a communicator turns around."""
    graph_def = _members_of(op)
    names = [f"y{n}" for n in range(3)]
    async with open_session(graph_def, "cpu:3") as session:
        expected = await session.run(names)
    for order in range(4):
        async with open_processes(graph_def, "ABA", order=order) as processes:
            for ours, theirs in zip(await processes.run(names), expected, strict=True):
                np.testing.assert_array_equal(ours, theirs, strict=True)


def _members_of(op: str) -> GraphDef:
    b = GraphBuilder()
    for n in range(3):
        with b.device(cpu(n)):
            x = b.constant(np.array([0.1, 1e8, -1e8][n : n + 1] * 3, np.float32) + np.float32(n))
            if op == "nccl":
                y = b.op("NcclAllReduce", x, reduction=b"sum", num_devices=3, shared_name=b"n")[0]
            elif op == "unequal":
                counts = np.roll(np.array([0, 1, 2], np.int32), n)
                parts = b.op("Partita>AllToAllV", x, counts, 3, 1, 1, [])
                y = b.op("ConcatV2", [parts[0], b.op("Cast", parts[1], DstT="float32")[0]], 0)[0]
            else:
                member = b.op("CollectiveInitializeCommunicator", 5, 2 - n, 3)
                y = b.op("CollectiveReduceV3", x, member[0], np.zeros((0, 0), np.int32), reduction=b"Add")[0]
            b.identity(y, name=f"y{n}")
    return b.graph_def()


async def test_a_member_waits_for_what_may_still_come() -> None:
    """A queue, which another step fills, holds the other member up: that is no deadlock."""
    got: list[Any] = []
    async with open_processes(held_up_by_a_queue(), "AB") as session, trio.open_nursery() as nursery:

        async def step() -> None:
            got.extend(await session.run(["y0", "y1"]))

        nursery.start_soon(step)
        await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()
        assert not got
        assert session.waiting() == 1
        await session.run([], {"x": [4.0]}, ["put"])
    assert np.array_equal(got, [[5.0], [5.0]])
    assert session.waiting() == 0


async def test_large_values_are_merged_in_a_thread_that_the_end_of_the_step_waits_for() -> None:
    """A cancelled step ends, and the next one has its values."""
    value = np.ones(5_000_000, np.float32)
    b = GraphBuilder()
    for n in range(2):
        with b.device(cpu(n)):
            b.identity(all_reduce(b, b.placeholder(f"x{n}", "float32", value.shape), 2), name=f"y{n}")
    feeds = {"x0": value, "x1": value}
    async with open_processes(b.graph_def(), "AB") as session:
        with trio.CancelScope() as scope:
            scope.cancel()
            await session.run(["y0", "y1"], feeds)
        assert session.waiting() == 0
        first, second = await session.run(["y0", "y1"], feeds)
        assert np.array_equal(first, value * 2)
        assert np.array_equal(second, value * 2)


async def test_a_failed_member_ends_the_group() -> None:
    """The error of the step is that of the member; what waited is let go."""
    b = GraphBuilder()
    with b.device(cpu(0)):
        b.identity(all_reduce(b, F1, 2), name="y0")
    with b.device(cpu(1)):
        bad = b.op("Reshape", b.placeholder("x", "float32", None), np.array([1], np.int32))[0]
        b.identity(all_reduce(b, bad, 2), name="y1")
    async with open_processes(b.graph_def(), "AB") as session:
        with pytest.raises(InvalidArgumentError) as caught:
            await session.run(["y0", "y1"], {"x": [1.0, 2.0]})
        assert caught.value.op == "Reshape"
        assert session.waiting() == 0
        assert await session.run(["y0", "y1"], {"x": [1.0]}) == [[2.0], [2.0]]
