"""Law 2: an optimised graph gives the values of the plain graph, bit for bit, on any number of devices.

Dead fetches stay dead: folded and merged nodes are in the same branches as the nodes they replace.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, strategies as st

from partita.actors.plans.binding import Binder
from partita.actors.plans.instructions import DEAD
from partita.actors.running.evaluation import ConstantEvaluator
from partita.actors.running.reference import run_reference
from partita.actors.sessions.local_session import open_session
from partita.devices.state import DeviceState
from partita.graph.dtypes import Array
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.partition.split import split_graph
from partita.graph.passes.client_graph import client_graph
from partita.graph.passes.client_request import ClientRequest
from partita.graph.passes.optimising.optimizer import optimize
from partita.graph.passes.selection import Passes
from partita.graph.protos import ConfigProto, GraphDef, GraphOptions, OptimizerOptions
from tests.actors.graphs import Conditional, conditionals
from tests.actors.programs import Program, programs
from tests.runs import assert_same_values, cpus, values
from tests.strategies import GraphCase, cpu, placed_cases


async def _optimised(graph_def: GraphDef, case: GraphCase, *, inlining: bool) -> list[Array]:
    """The fetches of a session at optimiser level L1."""
    options = GraphOptions(optimizer_options=OptimizerOptions(do_function_inlining=inlining))
    config = ConfigProto(allow_soft_placement=False, graph_options=options)
    async with open_session(graph_def, cpus(4), config=config) as session:
        return await session.run(list(case.fetches), dict(case.feeds), list(case.targets))


@given(placed_cases(max_steps=20), st.booleans())
async def test_optimised_equals_plain(placed: tuple[GraphCase, dict[str, str]], inlining: bool) -> None:
    """Folding, merging and removing nodes of every partition changes no fetched value."""
    case, placement = placed
    graph_def = case.on(placement)
    assert_same_values(await _optimised(graph_def, case, inlining=inlining), await values(graph_def, case))


@given(st.one_of(conditionals(), programs(devices=3)), st.booleans())
def test_what_is_dead_stays_dead(case: Conditional | Program, inlining: bool) -> None:
    """Fetches of conditionals and loops are alive or dead as in the plain graph."""
    graph = graph_def_to_graph(case.graph_def, add_default_attrs=True)
    graph.assign_devices(graph.requested_device_indices())
    parts = split_graph(client_graph(graph, ClientRequest(list(case.feeds), case.fetches, device=cpu(0))))
    options = OptimizerOptions(do_function_inlining=inlining)
    wanted, evaluator = Passes.of(GraphOptions(optimizer_options=options)), ConstantEvaluator()
    optimised = [optimize(part, wanted, evaluator) for part in parts.values()]
    binders = {cpu(i): Binder(cpu(i), DeviceState(seed=0)) for i in range(3)}
    plain, ours = (
        run_reference(graphs, binders, list(case.feeds.values()), len(case.fetches))
        for graphs in (parts.values(), optimised)
    )
    assert list(map(_bits, ours)) == list(map(_bits, plain))


def _bits(value: Any) -> bytes | None:  # Any: a tensor, or DEAD
    return None if value is DEAD else np.asarray(value).tobytes()
