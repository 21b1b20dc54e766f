"""Gradients: adds the nodes that compute d ys / d xs to a graph.

The gradient rules of ops are in `ops/<family>/*_gradients.py`; nothing here depends on an op's meaning.

    forward.py     the differentiated graph, with loops folded into single nodes
    backward.py    the walk from ys to xs
    loops.py       the structure of loops                      liveness.py   in which branch a value is alive
    undo_loop.py   gradients of loops, as loops; frame.py and history.py save and restore forward values
    symbolic.py    TensorFlow's `AddSymbolicGradients`: one SymbolicGradient node for every node between
    function.py    the body of such a node: the gradient of a function or of an op
"""

from __future__ import annotations

from .backward import gradients as gradients
from .function import gradient_function as gradient_function
from .symbolic import add_symbolic_gradients as add_symbolic_gradients
