"""The all-to-all of unequal parts: each member gets what the others' counts say, and its gradient sends it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import trio
from hypothesis import given, settings, strategies as st

from partita.actors import open_session
from partita.devices import cut, local_cluster, simulate
from partita.errors import InternalError, InvalidArgumentError, PartitaError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Array, DataType
from partita.graph.ops.memory_types import memory_types
from partita.graph.ops.properties import properties_of
from partita.graph.structured import while_loop
from tests.actors.sessions.deployments import Deployment, on_every_deployment
from tests.devices.kernels.harness import shapes
from tests.strategies import cpu

TYPES = ["float32", "float64", "float16", "int32", "int64"]
OF_FLOATS = {"T": DataType.FLOAT, "Tcounts": DataType.INT32}


def exchange(b: GraphBuilder, x: Any, counts: Any, size: int, instance: Any = 1, **more: Any) -> tuple[Tensor, Tensor]:
    """The rows that the node's member gets, and how many came from each."""
    rows, received = b.op("Partita>AllToAllV", x, counts, size, 1, instance, [], **more)
    return rows, received


def exchanged(values: Sequence[Array], counts: Array) -> list[Array]:
    """What the members get, row by row."""
    outputs: list[list[Array]] = [[] for _ in values]
    for sender, value in enumerate(values):
        rows = iter(value)
        for receiver, count in enumerate(counts[sender]):
            outputs[receiver].extend(next(rows) for _ in range(count))
    return [np.array(rows, values[0].dtype).reshape(len(rows), *values[0].shape[1:]) for rows in outputs]


@st.composite
def exchanges(draw: st.DrawFn) -> tuple[Array, tuple[int, ...], str, str]:
    """Counts from each member to each, often 0; the shape of a row; the type of the rows and of the counts."""
    size = draw(st.integers(1, 4))
    counts = draw(st.lists(st.sampled_from([0, 0, 1, 2, 5]), min_size=size * size, max_size=size * size))
    row = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    return (
        np.reshape(counts, (size, size)),
        row,
        draw(st.sampled_from(TYPES)),
        draw(st.sampled_from(["int32", "int64"])),
    )


@on_every_deployment
@settings(max_examples=30)
@given(exchanges(), st.integers(0, 2**32 - 1))
async def test_members_get_the_rows_that_are_sent_to_them(deployment: Deployment, drawn: Any, seed: int) -> None:
    """In the order of the senders, in two steps at once, and back again by the counts that came with them."""
    counts, row, dtype, counts_dtype = drawn
    size, b, rng = len(counts), GraphBuilder(), np.random.default_rng(seed)
    ranks = sorted(range(size), key=lambda n: (deployment is Deployment.TWO_TASKS and n % 2, n))
    for n in range(size):
        with b.device(cpu(n)):
            x = b.placeholder(f"x{n}", dtype, (None, *row))
            rows, received = exchange(b, x, b.placeholder(f"n{n}", counts_dtype, None), size)
            b.identity(rows, name=f"y{n}")
            b.identity(received, name=f"m{n}")
            b.identity(exchange(b, rows, received, size, 2)[0], name=f"z{n}")

    async def check(session: Any, values: Sequence[Array]) -> None:
        feeds = {f"x{ranks[rank]}": value for rank, value in enumerate(values)}
        feeds |= {f"n{ranks[rank]}": counts[rank].astype(counts_dtype) for rank in range(size)}
        fetches = [f"{name}{n}" for name in "ymz" for n in ranks]
        expected = [*exchanged(values, counts), *counts.T.astype(counts_dtype), *values]
        for ours, theirs in zip(await session.run(fetches, feeds), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs, strict=True)

    async with deployment.open(b.graph_def(), size) as session, trio.open_nursery() as nursery:
        for _ in range(2):
            values = [rng.integers(0, 100, (count, *row)).astype(dtype) for count in counts.sum(axis=1)]
            nursery.start_soon(check, session, values)


def trading_loop(b: GraphBuilder, n: int, x: Tensor, limit: Tensor) -> Tensor:
    """`limit` times all rows go to the other of two members, in a loop on CPU n."""

    def body(i: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        rows, none = b.op("Size", value)[0], b.constant(0)
        return i + 1, exchange(b, value, b.op("Pack", [rows, none] if n else [none, rows]), 2)[0]

    with b.device(cpu(n)):
        return while_loop(b, lambda i, _: b.op("Less", i, limit), body, [b.constant(0), x])[1]


@pytest.mark.parametrize("often", [1, 4])
async def test_each_iteration_of_a_loop_is_an_exchange(often: int) -> None:
    """Members that give all their rows away each time have their own after an even number of times."""
    b = GraphBuilder()
    for n in range(2):
        x, limit = b.placeholder(f"x{n}", "float32", (None,)), b.placeholder(f"limit{n}", "int32", ())
        b.identity(trading_loop(b, n, x, limit), name=f"y{n}", device=cpu(n))
    start = [np.array([1, 2, 3], np.float32), np.array([4], np.float32)]
    async with open_session(b.graph_def(), "cpu:2") as session:
        feeds: dict[str, Any] = {"x0": start[0], "x1": start[1], "limit0": often, "limit1": often}
        got = await session.run(["y0", "y1"], feeds)
    for ours, theirs in zip(got, start[::-1] if often % 2 else start, strict=True):
        np.testing.assert_array_equal(ours, theirs)


REFUSED: dict[str, tuple[Any, Any, type[PartitaError], str]] = {
    "negative": ([1.0], [2, -1], InvalidArgumentError, r"send_counts must not be negative, but are \[2, -1\]"),
    "too few": ([1.0], [1], InvalidArgumentError, r"a count for each of 2 members, but their shape is \[1\]"),
    "too many": ([1.0], [1, 0, 0], InvalidArgumentError, r"a count for each of 2 members, but their shape is \[3\]"),
    "a scalar count": ([1.0], 1, InvalidArgumentError, r"a count for each of 2 members, but their shape is \[\]"),
    "fewer than rows": (
        [1.0, 2.0],
        [1, 0],
        InvalidArgumentError,
        r"send_counts \[1, 0\] add up to 1 rows, but the input has 2",
    ),
    "more than rows": ([1.0], [2**31 - 1, 2], InvalidArgumentError, "add up to 2147483649 rows, but the input has 1"),
    "a scalar": (1.0, [0, 0], InvalidArgumentError, "its input is a scalar"),
    "rows of another shape": (
        [[1.0]],
        [1, 0],
        InvalidArgumentError,
        r"Shape mismatch in group 1, instance 1: .*\[\?,1\]",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_counts_that_do_not_fit_are_refused(name: str) -> None:
    """The error says which; the next step is as if nothing was."""
    data, counts, error, message = REFUSED[name]
    b = GraphBuilder()
    for n in range(2):
        with b.device(cpu(n)):
            x, sent = b.placeholder(f"x{n}", "float32", None), b.placeholder(f"n{n}", "int32", None)
            b.identity(exchange(b, x, sent, 2)[0], name=f"y{n}")
    good: dict[str, Any] = {"x0": [1.0], "n0": [0, 1], "x1": [2.0], "n1": [1, 0]}
    async with open_session(b.graph_def(), "cpu:2") as session:
        with pytest.raises(error, match=message):
            await session.run(["y0", "y1"], good | {"x1": np.float32(data), "n1": np.int32(counts)})
        assert await session.run(["y0", "y1"], good) == [[2.0], [1.0]]


async def test_it_does_not_meet_an_all_to_all_of_equal_parts() -> None:
    """They are different collectives, whatever the counts."""
    b = GraphBuilder()
    with b.device(cpu(0)):
        b.identity(exchange(b, np.zeros(2, np.float32), [1, 1], 2)[0], name="y0")
    with b.device(cpu(1)):
        b.op("CollectiveAllToAllV2", np.zeros(2, np.float32), 2, 1, 1, [], name="y1")
    async with open_session(b.graph_def(), "cpu:2") as session:
        with pytest.raises(InternalError, match="for an all-to-all of unequal parts"):
            await session.run(["y0", "y1"])


def time_of(op: str, rows: list[int]) -> int:
    """Nanoseconds of an exchange between two GPUs that bring so many rows each."""
    b, cluster = GraphBuilder(), local_cluster("gpu:2")
    for n, count in enumerate(rows):
        with b.device(cpu(n).replace("CPU", "GPU")):
            x = b.op("Empty", b.constant([count, 1000]), dtype="float32")[0]
            counts = [b.constant([count - 1, 1])] if op == "Partita>AllToAllV" else []
            b.op(op, x, *counts, 2, 1, 1, [], name=f"y{n}")
    return simulate(cut(b.graph_def(), cluster, targets=["y0", "y1"]), cluster).find("y0").duration_ns


def test_on_the_clock_the_largest_member_counts() -> None:
    """An exchange of unequal parts takes what an all-to-all of equal ones takes in which all bring as much."""
    assert time_of("Partita>AllToAllV", [10, 1000]) == time_of("CollectiveAllToAllV2", [1000, 1000])
    assert time_of("Partita>AllToAllV", [10, 10]) < time_of("Partita>AllToAllV", [10, 1000])


def test_counts_and_keys_are_in_host_memory() -> None:
    """On a GPU only the rows are in its own memory."""
    types = memory_types(properties_of("Partita>AllToAllV", {"T": "float32"}), "GPU")
    assert types == ((False, True, True, True, True), (False, True))


def test_shapes_are_known_but_for_the_rows() -> None:
    """The counts are as many as members; a number of them that is known to be wrong is refused before any step."""
    group: tuple[Any, ...] = (np.int32(3), np.int32(1), np.int32(1), [])
    assert shapes("Partita>AllToAllV", (7, 2), None, *group, **OF_FLOATS) == [(None, 2), (3,)]
    assert shapes("Partita>AllToAllV", None, (4,), (), *group[1:], **OF_FLOATS) == [None, (4,)]
    with pytest.raises(InvalidArgumentError, match="Dimension 0 in both shapes must be equal, but are 2 and 3"):
        shapes("Partita>AllToAllV", (7, 2), (2,), *group, **OF_FLOATS)


def test_on_the_clock_the_busiest_member_may_send_more() -> None:
    """By the attr `_imbalance` so many times the mean; a number below 1, or none, is refused."""

    def duration(op: str, rows: int, **attrs: Any) -> int:
        b, cluster = GraphBuilder(), local_cluster("gpu:2")
        for n in range(2):
            with b.device(cpu(n).replace("CPU", "GPU")):
                counts = [b.placeholder(f"n{n}", "int32", (2,))] if op == "Partita>AllToAllV" else []
                x = b.op("Empty", b.constant([rows, 1 << 10]), dtype="float32")[0]
                b.op(op, x, *counts, 2, 1, 1, [], name=f"y{n}", attrs=attrs)
        fed = ["n0", "n1"] if op == "Partita>AllToAllV" else []
        return simulate(cut(b.graph_def(), cluster, feeds=fed, targets=["y0", "y1"]), cluster).find("y0").duration_ns

    assert duration("Partita>AllToAllV", 2000, _imbalance=1.5) == duration("CollectiveAllToAllV2", 3000)
    assert duration("Partita>AllToAllV", 2000, _imbalance=1.0) == duration("Partita>AllToAllV", 2000)
    for wrong in (0.5, float("inf"), float("nan"), b"much", 2):
        with pytest.raises(InvalidArgumentError, match=r"attr _imbalance = .* must be a float from 1.0 on"):
            duration("Partita>AllToAllV", 2000, _imbalance=wrong)
