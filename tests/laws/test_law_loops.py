"""Law of loops: a program, compiled and cut, computes the values of the reference executor on the uncut graph.

Random programs of nested loops and conditionals, whose nodes are on any device. Compared are values, bit for bit, and
which fetches are dead.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from partita.actors import open_session
from partita.actors.plans.binding import Binder
from partita.actors.plans.instructions import DEAD
from partita.actors.running.reference import run_reference
from partita.devices.state import DeviceState
from partita.errors import InvalidArgumentError
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.passes.client_graph import client_graph
from partita.graph.passes.client_request import ClientRequest
from partita.graph.protos import RunMetadata, RunOptions
from tests.actors.programs import Program, programs
from tests.runs import assert_same_values
from tests.strategies import cpu

FULL_TRACE = RunOptions(trace_level=RunOptions.FULL_TRACE)
DEVICES = [cpu(i) for i in range(4)]


def interpreted(case: Program) -> list[Any]:
    """The fetches of the reference executor from the uncut graph; DEAD for dead ones."""
    graph = graph_def_to_graph(case.graph_def, add_default_attrs=True)
    graph.assign_devices(graph.requested_device_indices())
    client = client_graph(graph, ClientRequest(list(case.feeds), case.fetches, device=cpu(0)))
    binders = {device: Binder(device, DeviceState(seed=0)) for device in DEVICES}
    return run_reference([client], binders, list(case.feeds.values()), len(case.fetches))


async def check(case: Program) -> None:
    """Fetches all live values in one step, with and without a trace, and each dead fetch alone."""
    expected = dict(zip(case.fetches, interpreted(case), strict=True))
    alive = [name for name, value in expected.items() if value is not DEAD]
    async with open_session(case.graph_def, "cpu:4") as session:
        for _ in range(2 if alive else 0):
            assert_same_values(await session.run(alive, case.feeds), [expected[name] for name in alive])
        if alive:
            traced = await session.run(alive, case.feeds, options=FULL_TRACE, metadata=RunMetadata())
            assert_same_values(traced, [expected[name] for name in alive])
        for name in expected.keys() - set(alive):
            with pytest.raises(InvalidArgumentError, match=r"^Retval\[0\] does not have value"):
                await session.run(name, case.feeds)
        assert session.prepare(list(case.feeds), list(expected)).whole is None


@given(programs())
async def test_compiled_loops_compute_what_interpreted_ones_do(case: Program) -> None:
    """Over one to four devices."""
    await check(case)
