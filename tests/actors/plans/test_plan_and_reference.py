"""Plans, on one device or many, compute what the reference executor computes, whatever order that one chooses."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.actors import open_session
from partita.actors.plans.binding import Binder
from partita.actors.plans.instructions import DEAD
from partita.actors.running.reference import run_reference
from partita.devices.state import DeviceState
from partita.errors import InternalError, InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.partition.split import split_graph
from partita.graph.passes.client_graph import client_graph
from partita.graph.passes.client_request import ClientRequest
from tests.actors.graphs import Conditional, conditionals
from tests.strategies import cpu

DEVICES = [cpu(i) for i in range(3)]


def reference(case: Conditional, seed: int | None, *, cut: bool) -> list[Any]:
    """What the reference executor fetches, with the order of ready nodes drawn from `seed`."""
    graph = graph_def_to_graph(case.graph_def, add_default_attrs=True)
    graph.assign_devices(graph.requested_device_indices())
    client = client_graph(graph, ClientRequest(list(case.feeds), case.fetches, device=cpu(0)))
    parts = list(split_graph(client).values()) if cut else [client]
    binders = {device: Binder(device, DeviceState(seed=0)) for device in DEVICES}
    choose = None if seed is None else Random(seed).randrange
    return run_reference(parts, binders, list(case.feeds.values()), len(case.fetches), choose)


async def planned(case: Conditional) -> list[Any]:
    """What a session fetches, one tensor at a time so that a dead one does not hide the others."""
    values: list[Any] = []
    async with open_session(case.graph_def, "cpu:3") as session:
        for fetch in case.fetches:
            try:
                values += await session.run(fetch, case.feeds)
            except InvalidArgumentError as error:
                values.append(DEAD if error.message == "Retval[0] does not have value" else error)
    return values


def assert_same(ours: list[Any], theirs: list[Any]) -> None:
    assert [value is DEAD for value in ours] == [value is DEAD for value in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert a is b or np.asarray(a).tobytes() == np.asarray(b).tobytes()


@given(conditionals())
async def test_a_session_fetches_what_the_reference_does(case: Conditional) -> None:
    assert_same(await planned(case), reference(case, None, cut=True))


@given(conditionals(), st.integers(0, 2**32))
def test_the_order_of_ready_nodes_does_not_matter(case: Conditional, seed: int) -> None:
    assert_same(reference(case, seed, cut=True), reference(case, None, cut=False))


@given(conditionals())
async def test_all_fetches_together_are_dead_if_one_is(case: Conditional) -> None:
    expected = reference(case, None, cut=False)

    async def main() -> list[Any]:
        async with open_session(case.graph_def, "cpu:3") as session:
            return list(await session.run(case.fetches, case.feeds))

    if any(value is DEAD for value in expected):
        first = next(i for i, value in enumerate(expected) if value is DEAD)
        with pytest.raises(InvalidArgumentError, match=rf"^Retval\[{first}\] does not have value"):
            await main()
    else:
        assert_same(await main(), expected)


def test_a_partition_alone_waits_for_the_others_in_vain() -> None:
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", (), device=cpu(0))
    builder.op("Neg", x, name="y", device=cpu(1))
    graph = builder.graph()
    graph.assign_devices(graph.requested_device_indices())
    parts = split_graph(client_graph(graph, ClientRequest(["x"], ["y"], device=cpu(0))))
    binders = {device: Binder(device, DeviceState(seed=0)) for device in DEVICES}
    with pytest.raises(InternalError, match="nobody sends"):
        run_reference([parts[cpu(1)]], binders, [np.float32(1)], 1)
