"""Infers the shapes of all tensors of a graph, or of all its partitions together, from the shapes of its feeds.

Without assumptions a shape only says what is true in every run. With an assumed size no size stays unknown, and each
kind of assumption is described once in words. Small integer values are followed too, since shapes are computed from
them. The shape of a loop's Merge is what all iterations have in common; with assumptions it is that of the first one.

    walk.py           the order of visits               fed.py           what is fed, and where
    cases.py          what is computed once             calls.py         calls of functions
    outcomes.py       the outcome of one node           tensor_facts.py  what is known of one tensor
    op_shapes.py      the shapes of one node            tensor_lists.py  what is written to lists, and read
    holders.py        what queues, stacks and other holders of tensors give back
    unknown_sizes.py  the error for a size that nobody knows
    known_steps.py    steps that were inferred before

Values are followed by the rules in `analysis/value_rules.py`. With x fed as (32, 4):

    x = Placeholder: (32, 4)      s = Shape(x): (2,), value [32, 4]      y = Fill(s, 0.0): (32, 4)
"""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis.joined import JoinedGraph
from ..dtypes import Shapes as Shapes
from ..graph import Graph
from ..tensor_id import parse_tensor_name
from .calls import CallShapes as CallShapes, ShapedCall as ShapedCall, walk_with_calls
from .fed import FedShapes as FedShapes
from .inferred import InferredShapes as InferredShapes
from .walk import GraphWalk, Refine


def infer_shapes(graph: Graph, feeds: FedShapes | None = None, refine: Refine | None = None) -> dict[str, Shapes]:
    """Node name -> one shape per output; in a shape None is an unknown size, and None is a shape of unknown rank.

    `feeds` maps tensor names to shapes (or arrays) that replace what the graph computes there; `refine` gets the
    properties, name and shapes of every node and returns its shapes. Raises InvalidArgumentError, naming the node,
    where shapes contradict an op, and for a feed of an unknown node.
    """
    return _inferred(GraphWalk(JoinedGraph({"": graph}), feeds or {}, refine=refine)).by_name()


def infer_joined(
    graph: JoinedGraph, feeds: FedShapes | None = None, *, assumed_size: int | None = None
) -> InferredShapes:
    """Shapes of all nodes of joined graphs in one step with these feeds; what is not fed has its default.

    With `assumed_size` no size stays unknown: an unknown size becomes that number, an unknown shape becomes that of the
    op's first input, or a scalar if there is none. A feed of an unknown node is listed among the assumptions. Raises
    InvalidArgumentError, naming the node, where shapes contradict an op.
    """
    return _inferred(GraphWalk(graph, feeds or {}, assumed_size=assumed_size, is_step=True))


def infer_body(
    graph: JoinedGraph,
    arguments: FedShapes,
    handles: Mapping[str, Shapes],
    called: CallShapes,
    *,
    assumed_size: int | None = None,
) -> InferredShapes:
    """Shapes in the partitions of a function's body, as `infer_joined`.

    `arguments` has shapes or values by the name of the argument's node, `handles` the shapes behind handles; arguments
    that the body does not read may be among them. `called` are the results of calls known so far; those of the body
    are added.
    """
    numbers = {name: n for n, name in enumerate(graph.names)}
    read = {name: argument for name, argument in arguments.items() if parse_tensor_name(name).node in numbers}
    walk = GraphWalk(graph, read, assumed_size=assumed_size, is_step=True)
    walk.called = called
    walk.handles = {numbers[name]: shapes for name, shapes in handles.items() if name in numbers}
    return _inferred(walk)


def _inferred(walk: GraphWalk) -> InferredShapes:
    walk_with_calls(walk, lambda call: GraphWalk.of_call(call, walk))
    return walk.inferred()
