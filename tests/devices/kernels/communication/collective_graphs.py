"""Graphs of collectives, for tests: rounds of groups over devices, loops with collectives, one collective a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from hypothesis import strategies as st

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Array
from partita.graph.protos import GraphDef, NameAttrList
from partita.graph.structured import while_loop
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


def held_up_by_a_queue() -> GraphDef:
    """One member, `y0`, is there; the other, `y1`, waits for a tensor of a queue, which `put` fills with `x`."""
    b = GraphBuilder()
    with b.device(cpu(1)):
        queue = b.op("FIFOQueueV2", component_types=["float32"], shapes=[(1,)], name="q")[0]
        taken = b.op("QueueDequeueV2", queue, component_types=["float32"])[0]
        b.identity(all_reduce(b, taken, 2), name="y1")
        b.op("QueueEnqueueV2", queue, [b.placeholder("x", "float32", (1,))], name="put")
    with b.device(cpu(0)):
        b.identity(all_reduce(b, np.ones(1, np.float32), 2), name="y0")
    return b.graph_def()


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


def two(*values: Any, sizes: Sequence[int] = (), instances: Sequence[int] = (), **more: Any) -> GraphBuilder:
    """One CollectiveReduceV2 on each CPU: y0, y1, ..."""
    b = GraphBuilder()
    for n, value in enumerate(values):
        with b.device(cpu(n)):
            size = sizes[n] if sizes else len(values)
            y = all_reduce(b, np.asarray(value), size, instance=instances[n] if instances else 1, **more)
            b.identity(y, name=f"y{n}")
    return b
