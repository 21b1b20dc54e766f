"""Passes over a whole graph: each returns a graph that computes the same, mostly a new one.

Before placement `lower_functional` replaces conditionals, loops and calls by simpler nodes; after partitioning
`optimising` makes the partitions cheaper to run.

The names below are imported when they are first used: most sessions need none of these passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import load_lazily

if TYPE_CHECKING:
    from .body_graph import body_graph as body_graph, stateful_nodes as stateful_nodes
    from .optimising.optimizer import optimize as optimize
    from .registry import (
        GraphContext as GraphContext,
        graph_passes as graph_passes,
        partition_passes as partition_passes,
    )
    from .static_shapes import (
        check_fed_shape as check_fed_shape,
        shapes_of_fed as shapes_of_fed,
        static_shapes as static_shapes,
    )
    from .surplus_outputs import drop_surplus_outputs as drop_surplus_outputs

load_lazily(__name__)
