"""Gradients: adds to a graph the nodes that compute d ys / d xs.

Flows in: a graph, names of tensors. Flows out: the same graph with more nodes, and the names of the gradients. Always
holds: what flows back through an op is said by its rule in `ops/gradients`, nowhere else.

    forward.py     the graph as the walk sees it: loops folded into single nodes
    backward.py    the walk from ys to xs
    loops.py       the loops of a graph taken apart            liveness.py   which branch a value is live in
    undo_loop.py   a loop that goes back through another, with frame.py and history.py: what it recalls and how
    symbolic.py    gradients that say nothing about ops: a SymbolicGradient node for every node between
    function.py    what such a node computes: the gradient of a function or of an op
"""

from __future__ import annotations

from .backward import gradients as gradients
from .function import gradient_function as gradient_function
from .symbolic import add_symbolic_gradients as add_symbolic_gradients
