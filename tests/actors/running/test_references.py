"""A reference variable that is passed on is read by the nodes that compute with it, at any distance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.actors import open_session
from partita.errors import FailedPreconditionError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array
from partita.graph.protos import GraphDef, RunMetadata, RunOptions
from tests.strategies import cpu

ROW = np.array([1, 2], np.float32)
FETCHES = ("before", "after", "passed", "direct", "update")
PLACES = st.tuples(*[st.integers(0, 2)] * 5)


def graph(places: tuple[int, ...]) -> GraphDef:
    """A variable passed through two identities, and read before and after an update."""
    b = GraphBuilder()
    on = [cpu(place) for place in places]
    variable = b.variable("v", "float32", (2,), device=cpu(0))
    b.op("Assign", variable, b.constant(ROW, device=cpu(0)), name="init", device=cpu(0))
    read = b.op("Identity", variable, name="read", device=on[0])
    passed = b.op("Identity", read, name="passed", device=on[1])
    before = b.op("Add", passed, passed, name="before", device=on[2])
    direct = b.op("Add", variable, variable, name="direct", device=on[3])
    value = b.constant(ROW, device=cpu(0), control=[before, direct])
    update = b.op("AssignAdd", variable, value, name="update", device=cpu(0))
    b.op("Neg", passed, name="after", device=on[4], control=[update])
    return b.graph_def()


async def fetched(places: tuple[int, ...], options: RunOptions | None = None) -> list[Array]:
    async with open_session(graph(places), "cpu:3") as session:
        await session.run((), targets="init")
        metadata = None if options is None else RunMetadata()
        return list(await session.run(FETCHES, options=options, metadata=metadata))


@given(PLACES, st.sampled_from([None, RunOptions(trace_level=RunOptions.FULL_TRACE)]))
async def test_whoever_computes_with_a_variable_sees_it_as_it_is_then(
    places: tuple[int, ...], options: RunOptions
) -> None:
    """A fetch of the reference gives the value at the end of the step."""
    before, after, passed, direct, update = await fetched(places, options)
    for value in (before, direct):
        np.testing.assert_array_equal(value, 2 * ROW)
    np.testing.assert_array_equal(after, -2 * ROW)
    for value in (passed, update):
        np.testing.assert_array_equal(value, 2 * ROW)


@given(PLACES)
async def test_what_is_passed_on_has_to_be_initialised(places: tuple[int, ...]) -> None:
    """Even if no node computes with it; the error names the first node that got it."""
    async with open_session(graph(places), "cpu:3") as session:
        with pytest.raises(FailedPreconditionError, match="Attempting to use uninitialized value v"):
            await session.run("passed")
        with pytest.raises(FailedPreconditionError, match="Attempting to use uninitialized value v"):
            await session.run((), targets="read")
