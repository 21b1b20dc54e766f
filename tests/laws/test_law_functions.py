"""Law of functions: called functions compute the values of inlined functions, and of all nodes on one device.

Random programs of functions, whose nodes request any device or none and use variables on several devices. Compared bit
for bit are three steps that change the variables, and the variables afterwards.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given

from partita.actors import open_session
from partita.graph.dtypes import Array
from partita.graph.protos import ConfigProto, GraphDef
from tests.actors.running.function_programs import FunctionProgram, function_programs
from tests.runs import HARD_PLACEMENT, assert_same_values

SOFT = ConfigProto(allow_soft_placement=True)
INLINED = ConfigProto(allow_soft_placement=True)
INLINED.graph_options.optimizer_options.do_function_inlining = True


async def three_steps(
    case: FunctionProgram, graph_def: GraphDef, devices: str, config: ConfigProto, **settings: Any
) -> list[Array]:
    """The fetches of three steps."""
    async with open_session(graph_def, devices, config=config, **settings) as session:
        await session.run([], targets=[case.init])
        return [value for _ in range(3) for value in await session.run(case.fetches, case.feeds)]


@given(function_programs(conflicting=True))
async def test_called_functions_compute_what_inlined_ones_do(case: FunctionProgram) -> None:
    """Over one to four devices, compared with a single device."""
    expected = await three_steps(case, case.on_one_device(), "cpu:1", SOFT)
    assert_same_values(await three_steps(case, case.graph_def, "cpu:4", SOFT), expected)
    assert_same_values(await three_steps(case, case.graph_def, "cpu:4", INLINED), expected)


@given(function_programs(conflicting=False))
async def test_called_functions_are_placed_whenever_their_requests_agree(case: FunctionProgram) -> None:
    """Hard placement works if no request of a body conflicts with the caller's."""
    expected = await three_steps(case, case.on_one_device(), "cpu:1", HARD_PLACEMENT)
    assert_same_values(await three_steps(case, case.graph_def, "cpu:4", HARD_PLACEMENT), expected)
