"""Steps on a virtual clock compute what steps in real time compute: loops, conditionals, functions, variables."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given

from partita.actors import open_session
from partita.actors.plans.instructions import DEAD
from partita.graph.dtypes import Array
from tests.actors.call_chains import WAYS, chain, frames_left
from tests.actors.programs import Program, programs
from tests.actors.running.function_programs import FunctionProgram, function_programs
from tests.laws.test_law_loops import interpreted
from tests.runs import HARD_PLACEMENT, assert_same_values
from tests.strategies import GraphCase, placed_cases


@given(programs())
async def test_loops_compute_what_the_reference_computes(case: Program) -> None:
    """Nested loops and conditionals over one to four devices."""
    expected = dict(zip(case.fetches, interpreted(case), strict=True))
    alive = [name for name, value in expected.items() if value is not DEAD]
    async with open_session(case.graph_def, "cpu:4", clock="virtual") as session:
        if alive:
            assert_same_values(await session.run(alive, case.feeds), [expected[name] for name in alive])


async def three_steps(case: FunctionProgram, clock: Literal["real", "virtual"]) -> list[Array]:
    """The fetches of three steps that change variables."""
    async with open_session(case.graph_def, "cpu:4", config=HARD_PLACEMENT, clock=clock) as session:
        await session.run([], targets=[case.init])
        return [value for _ in range(3) for value in await session.run(case.fetches, case.feeds)]


@given(function_programs(conflicting=False))
async def test_functions_compute_what_they_compute_in_real_time(case: FunctionProgram) -> None:
    """Calls, conditionals and loops of functions, whose nodes are on several devices."""
    assert_same_values(await three_steps(case, "virtual"), await three_steps(case, "real"))


@given(placed_cases())
async def test_graphs_compute_what_they_compute_in_real_time(placed: tuple[GraphCase, dict[str, str]]) -> None:
    """With conditionals, on any devices."""
    case, placement = placed
    async with open_session(case.on(placement), "cpu:4") as session:
        expected = await session.run(case.fetches, case.feeds, case.targets)
    async with open_session(case.on(placement), "cpu:4", clock="virtual") as session:
        assert_same_values(await session.run(case.fetches, case.feeds, case.targets), expected)


@pytest.mark.parametrize("way", WAYS)
async def test_calls_are_nested_deeper_than_python_nests_its_own(way: str) -> None:
    """The step, its timeline and its memory take no stack frame per call."""
    async with open_session(chain(3, way), clock="virtual") as session:  # imports what is imported on first use
        await session.run("y", {"x": np.float32(0)})
        assert session.timeline().dependency_bound_ns
    async with open_session(chain(300, way), clock="virtual") as session:
        with frames_left(150):
            assert await session.run("y", {"x": np.float32(0)}) == [300]
            timeline = session.timeline()
            assert timeline.dependency_bound_ns == timeline.makespan_ns
            assert sum(timeline.peak_bytes.values())
