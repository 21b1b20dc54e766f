"""Law of refused members: where one member does not fit, a step over processes fails as one in one process does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.actors import open_session
from partita.errors import PartitaError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import GraphDef
from tests.actors.running.remote.processes import open_processes
from tests.strategies import cpu

KINDS = ("CollectiveReduceV2", "CollectiveGatherV2", "CollectiveReduceScatterV2")
ODD = ("nothing", "size", "type", "shape", "instance", "kind", "absent", "fails")


def graph_of(count: int, kind: str, odd: str, who: int) -> GraphDef:
    """y0, y1, ... of one group of `count` members, of which `who` is odd in some way. The key of the group is fed."""
    b = GraphBuilder()
    key = b.placeholder("key", "int32", ())
    for n in range(count):
        mine = odd if n == who else "nothing"
        with b.device(cpu(n)):
            value = np.arange(4 * count + 4 * (mine == "shape"), dtype=np.float64 if mine == "type" else np.float32)
            x = b.constant(value + n)
            if mine == "fails":
                x = b.op("CheckNumerics", x * np.float32("inf"), message="bad")[0]
            op = "CollectiveAllToAllV2" if mine == "kind" else kind
            if mine == "kind":
                x = b.op("Reshape", x, np.array([count, 4], np.int32))[0]
            merge: dict[str, Any] = {} if "Gather" in op or "All" in op else {"merge_op": b"Add", "final_op": b"Div"}
            y = b.op(op, x, count + (mine == "size"), key, 1 + (mine == "instance"), [], **merge)
            b.identity(y[0], name=f"y{n}")
    return b.graph_def()


@settings(max_examples=60)
@given(
    st.integers(2, 4),
    st.sampled_from(KINDS),
    st.sampled_from(ODD),
    st.integers(0, 3),
    st.text("ABC", min_size=4, max_size=4),
    st.integers(0, 9),
)
async def test_steps_end_as_in_one_process(count: int, kind: str, odd: str, who: int, hosts: str, order: int) -> None:
    """With the same bits, or with an error of the same class at a node of the same op; nothing waits afterwards."""
    who %= count
    graph_def, feeds = graph_of(count, kind, odd, who), {"key": 7}
    names = [f"y{n}" for n in range(count) if not (odd == "absent" and n == who)]
    failed: PartitaError | None = None
    async with open_session(graph_def, f"cpu:{count}") as session:
        try:
            expected = await session.run(names, feeds)
        except PartitaError as error:
            failed = error
    assert (failed is None) == (odd == "nothing")
    async with open_processes(graph_def, hosts[:count], order=order) as processes:
        if failed is None:
            for ours, theirs in zip(await processes.run(names, feeds), expected, strict=True):
                np.testing.assert_array_equal(ours, theirs, strict=True)
        else:
            with pytest.raises(type(failed)) as caught:
                await processes.run(names, feeds)
            assert (caught.value.op == failed.op) or odd == "kind"
        assert processes.waiting() == 0
