"""Functions whose parts are in several processes."""

from __future__ import annotations

from hypothesis import given, strategies as st

from partita.actors import open_session
from partita.errors import UnimplementedError
from partita.graph.dtypes import Array
from partita.graph.protos import ConfigProto
from tests.actors.running.function_programs import FunctionProgram, function_programs
from tests.actors.running.remote.processes import open_processes
from tests.runs import assert_same_values

SOFT = ConfigProto(allow_soft_placement=True)


async def in_one_process(case: FunctionProgram) -> list[Array]:
    """The fetches of three steps."""
    async with open_session(case.graph_def, "cpu:4", config=SOFT) as session:
        await session.run([], targets=[case.init])
        return [value for _ in range(3) for value in await session.run(case.fetches, case.feeds)]


@given(function_programs(conflicting=True), st.text("ABC", min_size=4, max_size=4), st.integers(0, 9))
async def test_functions_compute_what_they_do_in_one_process(case: FunctionProgram, hosts: str, order: int) -> None:
    """However devices are spread over processes, and whatever comes first."""
    expected = await in_one_process(case)
    async with open_processes(case.graph_def, hosts, soft=True, order=order) as session:
        await session.run([], targets=[case.init])
        try:
            values = [value for _ in range(3) for value in await session.run(case.fetches, case.feeds)]
        except UnimplementedError as error:
            assert "loop" in error.message  # noqa: PT017 - few cases have one that only the interpreter can run
            return
    assert_same_values(values, expected)
