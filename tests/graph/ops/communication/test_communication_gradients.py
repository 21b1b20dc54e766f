"""Gradients of collectives: what a sum over all members' outputs gains when one member's value grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.devices import cut, local_cluster, simulate
from partita.errors import UnimplementedError
from partita.graph import gradients
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Operation, Tensor
from partita.graph.dtypes import numpy_dtype
from tests.strategies import cpu

MEMBERS = 3
Make = Callable[[GraphBuilder, Tensor, int], Operation]


def _v2(op: str, **attrs: Any) -> Make:
    return lambda b, x, _: b.op(op, x, MEMBERS, 1, 5, [], **attrs)


def _reduce(final: bytes) -> Make:
    return _v2("CollectiveReduceV2", merge_op=b"Add", final_op=final)


def _scatter(final: bytes) -> Make:
    return _v2("CollectiveReduceScatterV2", merge_op=b"Add", final_op=final)


def _v1(b: GraphBuilder, x: Tensor, _: int) -> Operation:
    attrs: dict[str, Any] = {"merge_op": b"Add", "final_op": b"Div", "subdiv_offsets": [0]}
    return b.op("CollectiveReduce", x, group_size=MEMBERS, group_key=1, instance_key=5, **attrs)


def _gather_v1(b: GraphBuilder, x: Tensor, _: int) -> Operation:
    shape = (MEMBERS * MEMBERS,)
    return b.op("CollectiveGather", x, group_size=MEMBERS, group_key=1, instance_key=5, shape=shape)


def _v3(b: GraphBuilder, x: Tensor, n: int) -> Operation:
    communicator = b.op("CollectiveInitializeCommunicator", 4, n, MEMBERS)[0]
    return b.op("CollectiveReduceV3", x, communicator, np.zeros((0, 0), np.int32), reduction=b"Add")


def _nccl(b: GraphBuilder, x: Tensor, _: int) -> Operation:
    return b.op("NcclAllReduce", x, reduction=b"sum", num_devices=MEMBERS, shared_name=b"all")


_COUNTS = np.array([[0, 2, 1], [3, 0, 0], [1, 1, 1]])
"""rows from each member to each"""


def _unequal(b: GraphBuilder, x: Tensor, n: int) -> Operation:
    return b.op("Partita>AllToAllV", x, _COUNTS[n].astype(np.int32), MEMBERS, 1, 5, [])


def _permute(shift: int) -> Make:
    return _v2("Partita>CollectivePermute", shift=shift)


LINEAR = {
    "sum": _reduce(b"Id"),
    "mean": _reduce(b"Div"),
    "version 1": _v1,
    "version 3": _v3,
    "gather": _v2("CollectiveGatherV2"),
    "gather of version 1": _gather_v1,
    "sums of rows": _scatter(b"Id"),
    "means of rows": _scatter(b"Div"),
    "all-to-all": _v2("CollectiveAllToAllV2"),
    "all-to-all of unequal parts": _unequal,
    "permutation by 1": _permute(1),
    "permutation by -2": _permute(-2),
    "NCCL": _nccl,
}


def weighted(b: GraphBuilder, make: Make, kind: str = "CPU") -> tuple[list[Tensor], Tensor]:
    """The members' inputs x0, x1, ..., and a sum of all their outputs with weights that all differ."""
    xs, parts = [], []
    for n in range(MEMBERS):
        with b.device(cpu(n).replace("CPU", kind)):
            xs.append(b.placeholder(f"x{n}", "float64", (MEMBERS,)))
            y = make(b, xs[-1], n)[0]
            weights = b.op("Cos", b.op("Cast", b.op("Range", 0, b.op("Size", y), 1), DstT="float64")[0] + float(n))
            parts.append(b.op("Sum", y * weights, 0)[0])
    return xs, b.op("AddN", parts, name="f")[0]


@pytest.mark.parametrize("name", LINEAR)
async def test_gradients_are_what_a_member_adds_to_all(name: str) -> None:
    """The function is linear: its gradient is its value for unit vectors, for each member, and twice in one step."""
    kind = "GPU" if name == "NCCL" else "CPU"
    b = GraphBuilder()
    xs, f = weighted(b, LINEAR[name], kind)
    slopes = [gradients(b, [f.name], [x.name for x in xs]) for _ in range(2)]
    zeros = {x.name: np.zeros(MEMBERS) for x in xs}
    async with open_session(b.graph_def(), f"{kind.lower()}:{MEMBERS}") as session:
        for grads in (slopes[0], slopes[1], [*slopes[0], *slopes[1]]):
            computed = await session.run([grad for grad in grads if grad is not None], zeros)
            assert len(computed) == len(grads)
            for n, slope in enumerate(computed):
                for row in range(MEMBERS):
                    unit = zeros | {xs[n % MEMBERS].name: np.eye(MEMBERS)[row]}
                    np.testing.assert_allclose(slope[row], (await session.run(f.name, unit))[0], 1e-13, 1e-13)


@pytest.mark.parametrize(
    "name", ["mean", "gather", "gather of version 1", "means of rows", "all-to-all", "all-to-all of unequal parts"]
)
async def test_gradients_of_gradients_have_instances_of_their_own(name: str) -> None:
    """Of the sum of squares' gradient: fetched together with it and with the function, all are right."""
    b = GraphBuilder()
    xs, f = weighted(b, LINEAR[name])
    first = [grad or "" for grad in gradients(b, [b.op("Square", f)[0].name], [x.name for x in xs])]
    second = [grad or "" for grad in gradients(b, first, [x.name for x in xs])]
    linear = [grad or "" for grad in gradients(b, [f.name], [x.name for x in xs])]
    values = {x.name: np.arange(MEMBERS) + float(n) for n, x in enumerate(xs)}
    async with open_session(b.graph_def(), f"cpu:{MEMBERS}") as session:
        (value,), *rest = await session.run([f.name], values), *await session.run([*first, *second, *linear], values)
        ones, twos, slopes = np.reshape(rest, (3, MEMBERS, MEMBERS))
    np.testing.assert_allclose(ones, 2 * value * slopes, 1e-12)
    np.testing.assert_allclose(twos, 2 * slopes * slopes.sum(), 1e-12, 1e-12)


async def test_other_merge_ops_have_no_gradient() -> None:
    """It is refused, not answered with zeros."""
    b = GraphBuilder()
    xs, f = weighted(b, _v2("CollectiveReduceV2", merge_op=b"Max", final_op=b"Id"))
    with pytest.raises(UnimplementedError, match="only sums have a gradient"):
        gradients(b, [f.name], [xs[0].name])


X = np.array([0.5, -1.5])
WEIGHTS = np.array([[1.0, 2.0], [3.0, 5.0], [7.0, 11.0]])
DTYPES = ["float64", "float32", "float16", "bfloat16"]


def copies(dtype: str = "float64", kind: str = "CPU", **attrs: Any) -> tuple[GraphBuilder, list[Tensor], list[Tensor]]:
    """On each device the same x, and a function of its own of it: the square times its weights."""
    b, xs, ys = GraphBuilder(), list[Tensor](), list[Tensor]()
    for n in range(MEMBERS):
        with b.device(cpu(n).replace("CPU", kind)):
            xs.append(b.placeholder(f"x{n}", dtype, X.shape))
            copy = b.op("Partita>CopiedOver", xs[-1], MEMBERS, 4, 9, name=f"copy{n}", attrs=attrs)[0]
            weights = b.op("Cast", b.constant(WEIGHTS[n]), DstT=dtype)[0]
            ys.append(b.op("Mul", b.op("Square", copy), weights, name=f"y{n}")[0])
    return b, xs, ys


@pytest.mark.parametrize("dtype", DTYPES)
async def test_copies_get_the_gradients_of_all(dtype: str) -> None:
    """d of the sum of all y by the x that all share, on each device; the value is x itself."""
    b, xs, ys = copies(dtype)
    slopes = gradients(b, ys, xs)
    async with open_session(b.graph_def(), f"cpu:{MEMBERS}") as session:
        feeds = {x.name: X.astype(numpy_dtype(x.dtype)) for x in xs}
        values = await session.run([f"copy{n}" for n in range(MEMBERS)], feeds)
        found = await session.run([str(slope) for slope in slopes], feeds)
    for value, slope in zip(values, found, strict=True):
        np.testing.assert_array_equal(np.asarray(value, float), X)
        np.testing.assert_allclose(np.asarray(slope, float), 2 * X * WEIGHTS.sum(0))


async def test_the_sum_over_copies_has_the_seat_that_the_op_says() -> None:
    """Group and size as given; the instance, the mesh and the axis as of gradients of collectives."""
    b, xs, ys = copies(_instance=2, _axis=b"tp", _mesh=b"pp:1,dp:1,cp:1,tp:3")
    gradients(b, ys, xs)
    sums = [node for node in b.graph().op_nodes() if node.op == "CollectiveReduceV2"]
    assert [node.attrs["_instance"] for node in sums] == [2 + (1 << 24)] * MEMBERS
    assert {(node.attrs["_axis"], node.attrs["_mesh"]) for node in sums} == {(b"tp", b"pp:1,dp:1,cp:1,tp:3")}
    inputs = [sorted(node.in_edges(), key=lambda edge: edge.dst_input)[1:] for node in sums]
    seats = [[edge.src.attrs["value"].item() for edge in edges] for edges in inputs]
    assert seats == [[MEMBERS, 4, 9]] * MEMBERS


def test_a_copy_takes_no_time() -> None:
    """On the clock it is its input under another name."""
    b, xs, ys = copies(kind="GPU")
    cluster = local_cluster(f"gpu:{MEMBERS}")
    timeline = simulate(cut(b.graph_def(), cluster, feeds=xs, fetches=ys), cluster)
    assert timeline.find("copy0").duration_ns == 0
    assert timeline.find("y0").start_ns > 0


async def test_a_copy_may_be_made_often() -> None:
    """It is no collective: it may run any number of times in a step."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (2,))
    once = b.op("Partita>CopiedOver", x, 8, 1, 1)[0]
    b.op("Partita>CopiedOver", once, 8, 1, 1, name="twice")
    async with open_session(b.graph_def()) as session:
        np.testing.assert_array_equal(
            (await session.run("twice", {"x": X.astype(np.float32)}))[0], X.astype(np.float32)
        )
