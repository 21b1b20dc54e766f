"""Law 4, in part: the actors run the nodes that the simulation times, on the same devices.

Times are not compared: sessions do not run on a virtual clock.
"""

from __future__ import annotations

from hypothesis import assume, given, reject

from partita.actors import RunMetadata, RunOptions, open_session
from partita.devices import cut, local_cluster, simulate
from partita.errors import InvalidArgumentError
from tests.runs import cpus
from tests.strategies import GraphCase, placed_cases


@given(placed_cases())
async def test_the_actors_run_the_nodes_that_the_simulation_times(placed: tuple[GraphCase, dict[str, str]]) -> None:
    """A traced step has every node that takes simulated time, and no node that the timeline lacks.

    In graphs without conditionals: the simulation counts both branches.
    """
    case, placement = placed
    assume(all(node.op != "Switch" for node in case.graph_def.node))
    graph_def, cluster = case.on(placement), local_cluster(cpus(4))
    partitions = cut(graph_def, cluster, feeds=list(case.feeds), fetches=case.fetches, targets=case.targets)
    try:
        timeline = simulate(partitions, cluster, feeds={name: value.shape for name, value in case.feeds.items()})
    except InvalidArgumentError:  # nothing in the request takes time
        reject()
    metadata, options = RunMetadata(), RunOptions(trace_level=RunOptions.FULL_TRACE)
    async with open_session(graph_def, cluster) as session:
        await session.run(case.fetches, case.feeds, case.targets, options=options, metadata=metadata)
    ran = {(device.device, node.node_name) for device in metadata.step_stats.dev_stats for node in device.node_stats}
    computed = [event for event in timeline.events if event.kind == "compute"]
    assert {(event.device, event.node) for event in computed if event.duration_ns > 0} <= ran
    assert ran <= {(event.device, event.node) for event in computed}
