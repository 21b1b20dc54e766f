"""Passes over a whole graph: each returns a graph that computes the same, mostly a new one.

Before placement `lower_functional` replaces conditionals, loops and calls by simpler nodes; after partitioning
`optimising` makes the partitions cheaper to run.

The names below are imported when they are first used: most sessions need none of these passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import load_lazily

if TYPE_CHECKING:
    from .body_graph import body_graph, stateful_nodes
    from .optimising.optimizer import optimize
    from .registry import GraphContext, GraphPass, PartitionContext, PartitionPass, graph_passes, register_pass
    from .static_shapes import check_fed_shape, shapes_of_fed, static_shapes
    from .surplus_outputs import drop_surplus_outputs

__all__ = [
    "GraphContext",
    "GraphPass",
    "PartitionContext",
    "PartitionPass",
    "body_graph",
    "check_fed_shape",
    "drop_surplus_outputs",
    "graph_passes",
    "optimize",
    "register_pass",
    "shapes_of_fed",
    "stateful_nodes",
    "static_shapes",
]

load_lazily(
    __name__,
    {
        "body_graph": ["body_graph", "stateful_nodes"],
        "optimising.optimizer": ["optimize"],
        "registry": [
            "GraphContext",
            "GraphPass",
            "PartitionContext",
            "PartitionPass",
            "graph_passes",
            "register_pass",
        ],
        "static_shapes": ["check_fed_shape", "shapes_of_fed", "static_shapes"],
        "surplus_outputs": ["drop_surplus_outputs"],
    },
)
