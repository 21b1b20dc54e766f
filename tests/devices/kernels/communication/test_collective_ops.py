"""Members of collectives meet, whatever devices, tasks, loops and functions they are in; others are refused."""

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
from partita.graph.dtypes import Array
from tests.actors.sessions.deployments import Deployment, on_every_deployment
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
from tests.function_defs import function_of
from tests.strategies import cpu


@on_every_deployment
@settings(max_examples=30)
@given(meshes(), st.integers(0, 2**32 - 1))
async def test_members_get_what_their_group_brings(deployment: Deployment, mesh: Any, seed: int) -> None:
    """Rounds of groups with the same instances, in two steps at once; members are in the order of devices."""
    count, rounds = mesh
    start = [np.random.default_rng([seed, n]).uniform(-2, 2, ROWS).astype(np.float32) for n in range(count)]
    b, expected = mesh_graph(rounds, start, lambda n: (deployment is Deployment.TWO_TASKS and n % 2, n))
    names, feeds = [f"y{n}" for n in range(count)], {f"x{n}": value for n, value in enumerate(start)}

    async def check() -> None:
        for ours, theirs in zip(await session.run(names, feeds), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs, strict=True)

    async with deployment.open(b.graph_def(), count) as session, trio.open_nursery() as nursery:
        nursery.start_soon(check)
        nursery.start_soon(check)


@pytest.mark.parametrize("loop", [lowered_loop, functional_loop])
@pytest.mark.parametrize("often", [1, 3, 20])
async def test_members_in_loops_of_their_own_meet_by_iteration(loop: Callable[..., Tensor], often: int) -> None:
    """Each iteration is a meeting of its own; a loop that goes on alone is refused, and leaves nothing behind."""
    b = GraphBuilder()
    for n in range(2):
        x, limit = b.placeholder(f"x{n}", "float32", ()), b.placeholder(f"n{n}", "int32", ())
        b.identity(loop(b, n, x, limit), name=f"y{n}", device=cpu(n))
    feeds, total = {"x0": 1.0, "x1": 2.0, "n0": often, "n1": often}, 1.5
    for _ in range(often):
        total = 2 * total + 1
    async with open_session(b.graph_def(), "cpu:2") as session:
        assert await session.run(["y0", "y1"], feeds) == [total, total]
        with pytest.raises(InvalidArgumentError, match=r"group 1, instance 1: 1 of 2 members has not come.*CPU:1"):
            await session.run(["y0", "y1"], feeds | {"n1": often + 1})
        assert await session.run(["y0", "y1"], feeds) == [total, total]


async def test_one_function_takes_part_on_several_devices_and_several_times() -> None:
    """It gets its instance key as an argument, and is called twice on each of three devices."""
    inner = GraphBuilder()
    x, instance = inner.placeholder("x", "float32", (1,)), inner.placeholder("k", "int32", ())
    total = all_reduce(inner, x, 3, instance=instance)
    b = GraphBuilder()
    b.function(function_of("exchange", inner.graph_def(), ["x:0", "k:0"], [total.name]))
    for n in range(3):
        with b.device(cpu(n)):
            first = b.op("exchange", np.array([n + 1], np.float32), 1)[0]
            b.identity(b.op("exchange", first, 2)[0], name=f"y{n}")
    async with open_session(b.graph_def(), "cpu:3") as session:
        assert await session.run(["y0", "y1", "y2"]) == [[18.0]] * 3


_F1, _F2, _D1 = np.array([1], np.float32), np.array([1, 2], np.float32), np.array([1.0])
REFUSED: dict[str, tuple[GraphBuilder, type[PartitaError], str]] = {
    "shapes": (two(_F1, _F2), InvalidArgumentError, "Shape mismatch in group 1, instance 1"),
    "types": (two(_F1, _D1), InternalError, "group 1, instance 1: "),
    "sizes": (two(_F1, _F1, sizes=[2, 3]), InternalError, "group 1 has"),
    "more members": (two(_F1, _F1, _F1, sizes=[2, 2, 2]), InternalError, "comes to group 1, whose 2 members"),
    "no member": (two(_F1, sizes=[0]), InvalidArgumentError, "group_size must be at least 1"),
    "a member missing": (
        two(_F1, _F1, sizes=[3, 3]),
        InvalidArgumentError,
        "has 3 members, of which 2 are in the step",
    ),
    "other instances": (two(_F1, _F1, instances=[1, 2]), InvalidArgumentError, "has 2 members, of which 1 are in the"),
    "in time": (two(_F1, _F1, sizes=[3, 3], timeout_seconds=0.01), DeadlineExceededError, "1 of 3 members"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_groups_that_do_not_fit_are_refused(name: str) -> None:
    """The code is TensorFlow's, which waits for ever where a member is missing; the next step is as if nothing was."""
    b, error, message = REFUSED[name]
    b.identity(b.constant(np.float32(7)), name="other")
    fetches = [node.name for node in b.graph_def().node if node.name.startswith("y")]
    async with open_session(b.graph_def(), "cpu:3") as session:
        for _ in range(2):
            with pytest.raises(error, match=message):
                await session.run(fetches)
        assert await session.run("other") == [7]


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("CollectiveGatherV2", {}),
        ("CollectiveReduceScatterV2", {"merge_op": b"Add", "final_op": b"Id"}),
        ("CollectiveAllToAllV2", {}),
    ],
)
async def test_what_is_cut_or_joined_along_an_axis_is_no_scalar(op: str, attrs: dict[str, Any]) -> None:
    """Not even where the rank is known in the step alone; members with rows are as before."""
    b = GraphBuilder()
    with b.device(cpu(0)):
        b.op(op, b.placeholder("x", "float32", None), 1, 1, 1, [], name="y", **attrs)
    async with open_session(b.graph_def(), "cpu:1") as session:
        with pytest.raises(InvalidArgumentError, match=r"input is a scalar|has shape \[\]"):
            await session.run(["y"], {"x": 1.0})
        assert await session.run(["y"], {"x": [1.0]}) == [[1.0]]


@pytest.mark.parametrize("is_fed", [False, True], ids=["before the step", "in the step"])
async def test_what_could_never_end_is_refused(is_fed: bool) -> None:
    """A device that comes twice, and a member that is not fetched: before the step if all keys are known by then."""
    b = GraphBuilder()
    key = b.placeholder("key", "int32", ()) if is_fed else b.constant(1)
    with b.device(cpu(0)):
        first, second = (all_reduce(b, _F1, 2, instance=key) for _ in range(2))
    with b.device(cpu(1)):
        other = all_reduce(b, _F1, 2, instance=key)
    feeds = {"key": 1} if is_fed else {}
    async with open_session(b.graph_def(), "cpu:2") as session:
        with pytest.raises(InvalidArgumentError, match=r"group 1, instance 1: device .*CPU:0 comes twice"):
            await session.run([first.name, second.name], feeds)
        missing = "1 of 2 members has not come" if is_fed else "has 2 members, of which 1 are in the step"
        with pytest.raises(InvalidArgumentError, match=missing) as caught:
            await session.run(second.name, feeds)
        assert cpu(0) in caught.value.message
        assert await session.run([first.name, other.name], feeds) == [[2.0], [2.0]]


async def test_a_member_waits_for_what_may_still_come() -> None:
    """A queue, which another step fills, holds the other member up: that is no deadlock."""
    got: list[Array] = []
    async with open_session(held_up_by_a_queue(), "cpu:2") as session, trio.open_nursery() as nursery:

        async def step() -> None:
            got.extend(await session.run(["y0", "y1"]))

        nursery.start_soon(step)
        await trio.testing.wait_all_tasks_blocked()
        assert not got
        await session.run([], {"x": [4.0]}, ["put"])
    assert np.array_equal(got, [[5.0], [5.0]])


async def test_a_member_is_refused_when_a_slow_kernel_was_the_last_that_went_on() -> None:
    """Which ran in a thread, and after which there is no mail."""
    b = GraphBuilder()
    key = b.placeholder("key", "int32", ())
    with b.device(cpu(0)):
        b.identity(all_reduce(b, _F1, 2, key), name="y0")
    with b.device(cpu(1)):
        x = b.placeholder("x", "float32", None)
        b.op("MatMul", x, x, name="slow")
    feeds: dict[str, Any] = {"key": 1, "x": np.ones((50, 50), np.float32)}
    async with open_session(b.graph_def(), "cpu:2", thread_limit_s=0, budget_s=0) as session:
        for _ in range(4):
            with pytest.raises(InvalidArgumentError, match="nothing else can go on"):
                await session.run(["y0"], feeds, ["slow"])


async def test_large_values_are_merged_in_a_thread_that_the_end_of_the_step_waits_for() -> None:
    """A cancelled step ends, and the next one has its values."""
    value = np.ones(5_000_000, np.float32)
    b = GraphBuilder()
    for n in range(2):
        with b.device(cpu(n)):
            b.identity(all_reduce(b, b.placeholder(f"x{n}", "float32", value.shape), 2), name=f"y{n}")
    feeds = {"x0": value, "x1": value}
    async with open_session(b.graph_def(), "cpu:2") as session:
        with trio.CancelScope() as scope:
            scope.cancel()
            await session.run(["y0", "y1"], feeds)
        first, second = await session.run(["y0", "y1"], feeds)
        assert np.array_equal(first, value * 2)
        assert np.array_equal(second, value * 2)


async def test_a_failed_member_ends_the_group_once() -> None:
    """The error of the step is that of the member."""
    b = GraphBuilder()
    with b.device(cpu(0)):
        b.identity(all_reduce(b, _F1, 2), name="y0")
    with b.device(cpu(1)):
        bad = b.op("Reshape", b.placeholder("x", "float32", None), np.array([1], np.int32))[0]
        b.identity(all_reduce(b, bad, 2), name="y1")
    async with open_session(b.graph_def(), "cpu:2") as session:
        with pytest.raises(InvalidArgumentError) as caught:
            await session.run(["y0", "y1"], {"x": [1.0, 2.0]})
        assert caught.value.op == "Reshape"
        assert await session.run(["y0", "y1"], {"x": [1.0]}) == [[2.0], [2.0]]


async def test_members_of_a_permutation_agree_on_the_shift() -> None:
    """By 1 here and by 2 there would give one value to two members."""
    b = GraphBuilder()
    for n in range(3):
        with b.device(cpu(n)):
            b.op("Partita>CollectivePermute", np.array([n], np.float32), 3, 1, 1, [], shift=1 + n // 2, name=f"y{n}")
    async with open_session(b.graph_def(), "cpu:3") as session:
        with pytest.raises(InternalError, match=r"for a permutation by [12], .* for a permutation by [12]"):
            await session.run(["y0", "y1", "y2"])
