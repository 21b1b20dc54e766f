"""A traced step of called functions computes what a plain one does, and a run of a node leaves one record."""

from __future__ import annotations

from collections import Counter

from hypothesis import given

from partita.actors import RunMetadata, RunOptions, open_session
from partita.graph.protos import ConfigProto
from tests.actors.running.function_programs import FunctionProgram, function_programs
from tests.runs import assert_same_values

SOFT = ConfigProto(allow_soft_placement=True)
FULL_TRACE = RunOptions(trace_level=RunOptions.FULL_TRACE)


@given(function_programs(conflicting=True))
async def test_a_traced_step_of_called_functions_computes_what_a_plain_one_does(case: FunctionProgram) -> None:
    """Three steps that change variables, on four devices.

    Two records are alike only where condition and body of a While have nodes of one name.
    """
    steps = []
    metadata = RunMetadata()
    for options in (None, FULL_TRACE):
        async with open_session(case.graph_def, "cpu:4", config=SOFT) as session:
            await session.run([], targets=[case.init])
            steps += [await session.run(case.fetches, case.feeds, options=options, metadata=metadata) for _ in range(3)]
    for plain, traced in zip(steps[:3], steps[3:], strict=True):
        assert_same_values(traced, plain)
    runs = Counter(
        (device.device, node.node_name, node.timeline_label)
        for device in metadata.step_stats.dev_stats
        for node in device.node_stats
    )
    whiles = {name for (_, name, label) in runs if " = While" in label}
    assert all(count == 1 or name.rpartition("/")[0] in whiles for (_, name, _), count in runs.items())
    assert max(runs.values()) <= 2
