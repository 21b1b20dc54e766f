"""Members of collectives meet, whatever devices, tasks, loops and functions they are in; others are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
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
from partita.graph.protos import GraphDef, NameAttrList
from partita.graph.structured import while_loop
from tests.actors.sessions.deployments import Deployment, on_every_deployment
from tests.function_defs import function_of
from tests.strategies import cpu

ROWS = 12
_MERGES: dict[bytes, Any] = {b"Add": np.add, b"Mul": np.multiply, b"Min": np.minimum, b"Max": np.maximum}
_SHIFTS = dict(zip(_MERGES, (1, -1, 2, -3), strict=True))
"""of permutations, by what stands for a merge op"""


def all_reduce(
    b: GraphBuilder, x: Any, size: int, key: Any = 1, instance: Any = 1, *, merge: bytes = b"Add", **more: Any
) -> Tensor:
    """A node of CollectiveReduceV2."""
    settings = {"merge_op": merge, "final_op": b"Id"} | more
    return b.op("CollectiveReduceV2", x, size, key, instance, [], **settings)[0]


@st.composite
def meshes(draw: st.DrawFn) -> tuple[int, list[tuple[list[list[int]], str, bytes]]]:
    """A number of devices, and rounds of collectives: disjoint groups, the kind, the merge op."""
    count = draw(st.sampled_from([1, 2, 3, 4, 11]))
    rounds = []
    for _ in range(draw(st.integers(1, 4))):
        order = draw(st.permutations(range(count)))
        size = draw(st.sampled_from([n for n in range(1, count + 1) if count % n == 0]))
        groups = [list(order[at : at + size]) for at in range(0, count, size)]
        kind = draw(st.sampled_from(["reduce", "gather", "scatter", "exchange", "broadcast", "permute"]))
        rounds.append((groups, kind, draw(st.sampled_from([*_MERGES]))))
    return count, rounds


def expected_of(kind: str, values: Sequence[Array], merge: bytes) -> list[Array]:
    """What the members get for their values, in order of rank."""
    merged = reduce(_MERGES[merge], values)
    match kind:
        case "reduce":
            return [merged] * len(values)
        case "gather":
            return [np.concatenate(values)] * len(values)
        case "scatter":
            return list(np.split(merged, len(values)))
        case "exchange":
            return [np.stack([value[rank] for value in values]) for rank in range(len(values))]
        case "permute":
            return [values[(rank - _SHIFTS[merge]) % len(values)] for rank in range(len(values))]
    return [values[0]] * len(values)


def member(
    b: GraphBuilder, kind: str, x: Tensor, rows: int, who: Sequence[Any], merge: bytes, *, sends: bool
) -> Tensor:
    """One node of a round."""
    match kind:
        case "reduce":
            return b.op("CollectiveReduceV2", x, *who, [], merge_op=merge, final_op=b"Id")[0]
        case "scatter":
            return b.op("CollectiveReduceScatterV2", x, *who, [], merge_op=merge, final_op=b"Id")[0]
        case "gather":
            return b.op("CollectiveGatherV2", x, *who, [])[0]
        case "exchange":
            return b.op("CollectiveAllToAllV2", x, *who, [])[0]
        case "permute":
            return b.op("Partita>CollectivePermute", x, *who, [], shift=_SHIFTS[merge])[0]
    if sends:
        return b.op("CollectiveBcastSendV2", x, *who)[0]
    return b.op("CollectiveBcastRecvV2", *who, np.array([rows], np.int32), T="float32", control=[x.node])[0]


def mesh_graph(
    rounds: Sequence[tuple[list[list[int]], str, bytes]], start: Sequence[Array], rank: Callable[[int], Any]
) -> tuple[GraphBuilder, list[Array]]:
    """Nodes x0, x1, ... that are fed, y0, y1, ... behind the last round, and what these are for `start`.

    Members are in the order of `rank`.
    """
    b, values, keys = GraphBuilder(), list(start), dict[tuple[int, ...], int]()
    tensors = [b.placeholder(f"x{n}", "float32", (ROWS,)) for n in range(len(start))]
    for number, (groups, kind, merge) in enumerate(rounds):
        for group in groups:
            key = keys.setdefault(tuple(sorted(group)), len(keys))
            size, ranks = len(group), sorted(group, key=rank)
            rows = size if kind == "exchange" else ROWS // size * size
            brought = {n: np.resize(values[n], rows) for n in group}
            results = expected_of(kind, [brought[n] for n in ([group[0]] if kind == "broadcast" else ranks)], merge)
            for n in group:
                with b.device(cpu(n)):
                    x = b.op("GatherV2", tensors[n], np.int32(np.resize(np.arange(len(values[n])), rows)), 0)[0]
                    who = [size, key, number]
                    tensors[n] = member(b, kind, x, rows, who, merge, sends=n == group[0])
                values[n] = results[0] if kind == "broadcast" else results[ranks.index(n)]
    for n, tensor in enumerate(tensors):
        b.identity(tensor, name=f"y{n}", device=cpu(n))
    return b, values


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


def lowered_loop(b: GraphBuilder, n: int, x: Tensor, limit: Tensor) -> Tensor:
    """`limit` times value = sum over both devices of (value + n), in a loop of Switch and Merge on CPU n."""
    with b.device(cpu(n)):
        return while_loop(
            b,
            lambda i, _: b.op("Less", i, limit),
            lambda i, value: (i + 1, all_reduce(b, value + np.float32(n), 2)),
            [b.constant(0), x],
        )[1]


def functional_loop(b: GraphBuilder, n: int, x: Tensor, limit: Tensor) -> Tensor:
    """The same by a While node; the other device's calls the same functions."""
    if not n:
        b.function(function_of("go_on", _state(lambda c, i, limit, _v, _n: [c.op("Less", i, limit)]), STATE, ["r0:0"]))
        b.function(
            function_of(
                "body",
                _state(lambda c, i, limit, v, n: [i + 1, limit, all_reduce(c, v + n, 2), n]),
                STATE,
                ["r0:0", "r1:0", "r2:0", "r3:0"],
            )
        )
    inputs = [b.constant(0), limit, x, b.constant(np.float32(n))]
    go_on, body = (NameAttrList(name=name) for name in ("go_on", "body"))
    return b.op("While", inputs, cond=go_on, body=body, device=cpu(n))[2]


STATE = ["i:0", "limit:0", "v:0", "n:0"]


def _state(make: Callable[..., list[Any]]) -> GraphDef:
    """A graph of a function of the loop's state, with results r0, r1, ..."""
    c = GraphBuilder()
    arguments = [c.placeholder(name[0:-2], dtype, ()) for name, dtype in zip(STATE, TYPES, strict=True)]
    for k, result in enumerate(make(c, *arguments)):
        c.op("Identity", result, name=f"r{k}")
    return c.graph_def()


TYPES = ["int32", "int32", "float32", "float32"]


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


def two(*values: Any, sizes: Sequence[int] = (), instances: Sequence[int] = (), **more: Any) -> GraphBuilder:
    """One CollectiveReduceV2 on each CPU: y0, y1, ..."""
    b = GraphBuilder()
    for n, value in enumerate(values):
        with b.device(cpu(n)):
            size = sizes[n] if sizes else len(values)
            y = all_reduce(b, np.asarray(value), size, instance=instances[n] if instances else 1, **more)
            b.identity(y, name=f"y{n}")
    return b


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
    b = GraphBuilder()
    with b.device(cpu(1)):
        queue = b.op("FIFOQueueV2", component_types=["float32"], shapes=[(1,)], name="q")[0]
        taken = b.op("QueueDequeueV2", queue, component_types=["float32"])[0]
        b.identity(all_reduce(b, taken, 2), name="y1")
        b.op("QueueEnqueueV2", queue, [b.placeholder("x", "float32", (1,))], name="put")
    with b.device(cpu(0)):
        b.identity(all_reduce(b, _F1, 2), name="y0")
    got: list[Array] = []
    async with open_session(b.graph_def(), "cpu:2") as session, trio.open_nursery() as nursery:

        async def step() -> None:
            got.extend(await session.run(["y0", "y1"]))

        nursery.start_soon(step)
        await trio.testing.wait_all_tasks_blocked()
        assert not got
        await session.run([], {"x": [4.0]}, ["put"])
    assert np.array_equal(got, [[5.0], [5.0]])


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
