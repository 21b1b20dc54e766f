"""The short way to write graphs.

    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None, 4))
    w = b.variable("w", "float32", (4, 2))
    y = b.op("MatMul", x, w, name="y", transpose_a=False)
    with b.device("/gpu:0"):
        z = b.op("Relu", y + 1.0)
    graph_def = b.graph_def()

`front_end.py` makes the nodes; this file collects them in a GraphDef, with the functions that they may call.
"""

from __future__ import annotations

from ...errors import NotFoundError
from ..graph import Graph
from ..graphdef.importer import graph_def_to_graph
from ..ops.registry import OpSignature, lookup_op, op_names
from ..protos import FunctionDef, GraphDef
from ..suggestions import meant
from .front_end import NodeMaker
from .sinks import MessageSink


class GraphBuilder(NodeMaker):
    """Writes a GraphDef node by node; each call returns the tensors that later ones take as inputs."""

    def __init__(self) -> None:
        """An empty graph of this program's version."""
        self._messages = MessageSink()
        super().__init__(self._messages)
        self._functions: dict[str, OpSignature] = {}

    def function(self, definition: FunctionDef) -> None:
        """Adds a function to the graph's library; from then on its name is an op."""
        self._messages.graph_def.library.function.append(definition)
        self._functions[definition.signature.name] = OpSignature(definition.signature)

    def graph_def(self) -> GraphDef:
        """The graph so far, as a copy."""
        copy = GraphDef()
        copy.CopyFrom(self._messages.graph_def)
        return copy

    def SerializeToString(self) -> bytes:  # noqa: N802 - named by protobuf, whose messages it may stand in for
        """The graph so far as a GraphDef in bytes, so that a builder is accepted wherever a GraphDef is."""
        return self._messages.graph_def.SerializeToString()

    def graph(self) -> Graph:
        """The graph so far, imported as a session does it; raises import errors (an open `later`, a cycle)."""
        return graph_def_to_graph(self._messages.graph_def)

    def replace(self, graph: Graph) -> None:
        """Goes on from `graph`, a changed import of this one: tensors keep their names, so earlier ones stay valid."""
        self._messages.replace(self, graph)

    def _signature(self, op: str) -> OpSignature:
        """The signature of a function or a registered op; NotFoundError with a suggestion for other names."""
        if op in self._functions:
            return self._functions[op]
        try:
            return lookup_op(op)
        except NotFoundError as error:
            hint = meant(str(op), [*op_names(), *self._functions])
            raise NotFoundError(f"{error.message.removesuffix('.')}{hint or '.'}", op=str(op)) from None
