"""A callable that fetches inside a loop of Enter and Exit nodes gets the last live value; a run refuses two of them."""

from __future__ import annotations

from random import Random
from typing import Any, Literal

import pytest

from partita.actors import open_session
from partita.actors.plans.binding import Binder
from partita.actors.plans.instructions import DEAD
from partita.actors.running.reference import run_reference
from partita.devices.state import DeviceState
from partita.errors import InternalError, InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.passes.client_graph import client_graph
from partita.graph.passes.client_request import ClientRequest
from partita.graph.protos import GraphDef
from tests.strategies import cpu

LAST: dict[int, dict[str, Any]] = {  # TensorFlow's; of s:1 the latest, which TensorFlow's threads may overtake
    3: {"m:0": 3.0, "m:1": 1, "c:0": False, "s:0": 3.0, "s:1": 2.0, "a:0": 3.0, "n:0": 3.0, "x:0": 3.0, "e:0": 0.0},
    1: {"m:0": 1.0, "m:1": 1, "c:0": False, "s:0": 1.0, "s:1": 0.0, "a:0": 1.0, "n:0": 1.0, "x:0": 1.0, "e:0": 0.0},
    0: {"m:0": 0.0, "m:1": 0, "c:0": False, "s:0": 0.0, "s:1": [], "a:0": [], "n:0": [], "x:0": 0.0, "e:0": 0.0},
}
ONCE = {3: {"s:0", "x:0", "e:0"}, 1: {"s:0", "s:1", "a:0", "n:0", "x:0", "e:0"}, 0: {*LAST[0]} - {"s:1", "a:0", "n:0"}}
CASES = [(limit, fetch) for limit, values in LAST.items() for fetch in values]


def counting(limit: int, elsewhere: int) -> GraphDef:
    """Counts from 0 to a limit; the addition is on device `elsewhere`."""
    b = GraphBuilder()
    frame = {"frame_name": "f"}
    e = b.op("Enter", b.constant(0.0, device=cpu(0)), name="e", device=cpu(0), attrs=frame)
    last = b.op("Enter", b.constant(float(limit), device=cpu(0)), device=cpu(0), attrs=frame | {"is_constant": True})
    one = b.op(
        "Enter", b.constant(1.0, device=cpu(elsewhere)), device=cpu(elsewhere), attrs=frame | {"is_constant": True}
    )
    m = b.op("Merge", [e[0], e[0]], name="m", device=cpu(0))
    c = b.op("LoopCond", b.op("Less", m[0], last[0], device=cpu(0))[0], name="c", device=cpu(0))
    s = b.op("Switch", m[0], c[0], name="s", device=cpu(0))
    a = b.op("AddV2", s[1], one[0], name="a", device=cpu(elsewhere))
    b.op("NextIteration", a[0], name="n", device=cpu(0))
    b.op("Exit", s[0], name="x", device=cpu(0))
    graph_def = b.graph_def()
    next(node for node in graph_def.node if node.name == "m").input[1] = "n"
    return graph_def


@pytest.mark.parametrize(("limit", "fetch"), CASES)
@pytest.mark.parametrize("clock", ["real", "virtual"])
@pytest.mark.parametrize("elsewhere", [0, 1])
async def test_a_callable_has_the_last_live_value(
    limit: int, fetch: str, clock: Literal["real", "virtual"], elsewhere: int
) -> None:
    """An empty array where all values are dead; a run has a value only if it is the only one."""
    async with open_session(counting(limit, elsewhere), "cpu:2", clock=clock) as session:
        call = await session.make_callable([], [fetch])
        for _ in range(2):
            assert [value.tolist() for value in await call()] == [LAST[limit][fetch]]
        if fetch in ONCE[limit]:
            assert await session.run(fetch) == [LAST[limit][fetch]]
            return
        expected = InvalidArgumentError if LAST[limit][fetch] == [] else InternalError
        with pytest.raises(expected, match=r"^Retval\[0\] (does not have value|has already been set)"):
            await session.run(fetch)


@pytest.mark.parametrize(("limit", "fetch"), CASES)
@pytest.mark.parametrize("elsewhere", [0, 1])
def test_the_order_of_ready_nodes_does_not_change_the_last_value(limit: int, fetch: str, elsewhere: int) -> None:
    """The reference interpreter picks ready nodes at random."""
    graph = graph_def_to_graph(counting(limit, elsewhere), add_default_attrs=True)
    graph.assign_devices(graph.requested_device_indices())
    client = client_graph(graph, ClientRequest(fetches=[fetch], device=cpu(0)))
    for seed in range(5):
        binders = {cpu(k): Binder(cpu(k), DeviceState(seed=0)) for k in range(2)}
        (value,) = run_reference([client], binders, [], 1, Random(seed).randrange, keeps_last=True)
        assert (value is DEAD) == (LAST[limit][fetch] == [])
        assert value is DEAD or value == LAST[limit][fetch]
