"""The shapes of a step: its partitions as one graph, with what feeds, the caller and a trace tell of them.

partitions, feeds {"x": (2, 3)}, trace   ->   joined graph, output shapes of every node, facts of the trace
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import index
from typing import NamedTuple, SupportsIndex

from ...errors import InvalidArgumentError
from ...graph.analysis.joined import JoinedGraph
from ...graph.formats.traces import TraceSource
from ...graph.graph import Graph
from ...graph.graphdef.importer import graph_def_to_graph
from ...graph.graphdef.sources import GraphSource
from ...graph.shape_inference.infer import FedShapes, InferredShapes, Shapes, infer_joined
from ...graph.shape_inference.known_steps import shapes_of_step
from ..cluster import Cluster
from .feeds import checked_feeds, stated_shapes
from .tracing.coverage import check_coverage
from .tracing.facts import TraceFacts, read_trace
from .tracing.shapes import missing_shapes


class StepShapes(NamedTuple):
    """The shapes, in which unknown sizes may remain, and what the trace tells beside shapes."""

    inferred: InferredShapes
    facts: TraceFacts


def step_shapes(
    partitions: Mapping[str, Graph | GraphSource],
    cluster: Cluster,
    feeds: FedShapes | None,
    shapes: Mapping[str, Shapes] | None,
    trace: TraceSource | None,
    assumed_size: int | None,
) -> StepShapes:
    """The shapes of one step; arguments and errors are those of `simulate`."""
    assumed_size = _checked_size(assumed_size)
    by_name = {cluster.find(place).name: graph for place, graph in _checked(partitions).items()}
    graphs = {name: _as_graph(by_name[name]) for name in cluster.names if name in by_name}
    joined = JoinedGraph(graphs)
    fed = checked_feeds(feeds or {}, joined)
    all_feeds = {**stated_shapes(shapes or {}, fed, joined), **fed}
    facts = TraceFacts() if trace is None else read_trace(trace, joined)
    if facts.coverage is not None:
        facts = replace(facts, warnings=[*check_coverage(facts.coverage), *facts.warnings])
    if facts.shapes:
        all_feeds = {**missing_shapes(infer_joined(joined, all_feeds), facts.shapes, all_feeds), **all_feeds}
    return StepShapes(shapes_of_step(graphs.values(), joined, all_feeds, assumed_size=assumed_size), facts)


def _checked(partitions: Mapping[str, Graph | GraphSource]) -> Mapping[str, Graph | GraphSource]:
    """InvalidArgumentError for a single graph instead of a graph per device."""
    if not isinstance(partitions, Mapping):
        raise InvalidArgumentError(
            f"partitions: {type(partitions).__name__} is not a mapping from device names to graphs; "
            "cut the graph first, with partita.devices.cut"
        )
    return partitions


def _checked_size(size: object) -> int | None:
    """The size that unknown ones are taken as; InvalidArgumentError for what is none."""
    if size is not None and (not isinstance(size, SupportsIndex) or index(size) < 0):
        raise InvalidArgumentError(f"assumed_size = {size!r} must be a whole number of at least 0")
    return None if size is None else index(size)


def _as_graph(graph: Graph | GraphSource) -> Graph:
    if isinstance(graph, Graph):
        return graph
    return graph_def_to_graph(graph, add_default_attrs=True, allow_internal_names=True, expect_device=True)
