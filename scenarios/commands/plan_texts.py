"""The last stage of `partita show`: the plans that a worker compiles from the graphs of its devices, as text."""

from __future__ import annotations

from ...actors.plans.levels import Unfoldable
from ...actors.sessions.graph_manager import GraphManager
from ...devices.pipeline import Partitioned
from ...graph import Graph
from .failure import ConfigurationError


def plan_texts(partitioned: Partitioned, graph: Graph) -> dict[str, str]:
    """The text of the plan of every part, compiled as a worker does; `graph` has the functions that parts may call."""
    worker = GraphManager(partitioned.pipeline.cluster)
    functions = worker.functions_of(graph, soft=partitioned.pipeline.allow_soft_placement)
    try:
        work = worker.graphs.work(worker.graphs.add(partitioned, functions, from_elsewhere=False))
    except Unfoldable as error:
        raise ConfigurationError(f"--stage plan: the graph is interpreted, there is no plan of it: {error}") from error
    return {name: str(plan) for name, (plan, _) in zip(partitioned.graphs, work, strict=True)}
