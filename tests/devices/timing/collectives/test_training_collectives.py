"""Collectives as training frameworks run them: launched ahead, and in another type than that of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from partita.devices import Cluster, cut, local_cluster
from partita.devices.timing import Timeline, TimelineEvent, simulate
from partita.errors import InvalidArgumentError
from partita.graph import GraphBuilder
from partita.graph.builder.handles import Tensor


def reduced(b: GraphBuilder, x: Tensor, name: str, **attrs: float) -> Tensor:
    """The sum over two ranks."""
    own: Any = {"merge_op": b"Add", "final_op": b"Id", **attrs}
    return b.op("CollectiveReduceV2", x, 2, 1, 1, [], **own, name=name)[0]


def behind_a_collective(*, ahead: bool) -> Timeline:
    """A step of two GPUs: kernels, a collective and more kernels, all of which wait for the one before them."""
    plain = local_cluster("gpu:2")
    spec = evolve(plain.ranked[0].spec, launch_overhead_ns=3_000, launches_ahead=ahead)
    cluster = Cluster([evolve(d, spec=spec) if d.type == "GPU" else d for d in plain], plain.topology.rules)
    b, targets = GraphBuilder(), []
    for rank in range(2):
        with b.device(f"/gpu:{rank}"):
            x = b.op("Fill", [1 << 20], np.float32(1), name=f"x{rank}")[0]
            y = reduced(b, b.op("Neg", x, name=f"before{rank}")[0], f"reduced{rank}")
            for k in range(4):
                y = b.op("Neg", y, name=f"behind{k}_{rank}")[0]
            targets.append(f"behind3_{rank}")
    return simulate(cut(b, cluster, targets=targets), cluster)


def test_a_host_may_launch_ahead_of_collectives() -> None:
    """What is behind one begins when it ends, and not a launch later; nothing else is earlier."""
    waits, ahead = behind_a_collective(ahead=False), behind_a_collective(ahead=True)
    ends = [timeline.find("reduced0").end_ns for timeline in (waits, ahead)]
    assert ends[0] == ends[1]
    assert waits.find("behind0_0").start_ns == ends[0] + 3_000
    assert ahead.find("behind0_0").start_ns == ends[0]
    assert ahead.find("behind3_0").end_ns == waits.find("behind3_0").end_ns - 3_000


@pytest.mark.parametrize("moved", [0.5, 2.0])
def test_a_framework_may_move_a_tensor_in_another_type(moved: float) -> None:
    """The attr says which part of its bytes the clock takes."""

    def event(rows: int, **attrs: float) -> TimelineEvent:
        b, outputs = GraphBuilder(), []
        for rank in range(2):
            with b.device(f"/gpu:{rank}"):
                x = b.op("Fill", [rows], np.float32(1))[0]
                outputs.append(reduced(b, x, f"reduced{rank}", **attrs))
        cluster = local_cluster("gpu:2")
        return simulate(cut(b, cluster, fetches=[output.name for output in outputs]), cluster).find("reduced0")

    as_marked, as_large = event(1 << 20, _moved=moved), event(int((1 << 20) * moved))
    assert (as_marked.duration_ns, as_marked.bytes) == (as_large.duration_ns, as_large.bytes)
    with pytest.raises(InvalidArgumentError, match=r"_moved = -1\.0 must be a float above 0"):
        event(4, _moved=-1.0)
