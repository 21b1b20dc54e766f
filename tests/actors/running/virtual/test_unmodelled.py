"""What the simulation refuses to time, a session on a virtual clock refuses too, with the same error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partita.actors import open_session
from partita.devices import cut, simulate
from partita.errors import UnimplementedError
from partita.graph.builder import GraphBuilder
from partita.graph.ops.registry import lookup_op


async def test_a_collective_takes_no_small_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one whose record does not say what it exchanges values are computed on the real clock alone."""
    signature = lookup_op("CollectiveReduceV2")
    monkeypatch.setitem(vars(signature), "record", replace(signature.record, exchange=None))
    b = GraphBuilder()
    x = b.constant(np.ones(4, np.float32))
    b.op("CollectiveReduceV2", b.op("Neg", x), 1, 1, 1, [], name="sum", merge_op=b"Add", final_op=b"Id")
    graph_def = b.graph_def()
    async with open_session(graph_def, "cpu:1") as session:
        np.testing.assert_array_equal(np.ravel(await session.run("sum:0")), [-1, -1, -1, -1])
    with pytest.raises(UnimplementedError) as simulated:
        simulate(cut(graph_def, "cpu:1", fetches=["sum:0"]), "cpu:1")
    async with open_session(graph_def, "cpu:1", clock="virtual") as session:
        with pytest.raises(UnimplementedError, match="does not know what the members") as ran:
            await session.run("sum:0")
    assert (ran.value.message, ran.value.node, ran.value.op) == (simulated.value.message, "sum", "CollectiveReduceV2")
