"""Small graphs of floats, written as lines, and their edges as texts."""

from __future__ import annotations

from partita.graph.attrs import encode
from partita.graph.graph import Graph
from partita.graph.protos import GraphDef

_FLOAT = encode("float32", "type")


def nodes(*lines: str) -> GraphDef:
    """A GraphDef from lines "name = Op(input, ...)"; every op is over floats."""
    graph_def = GraphDef()
    graph_def.versions.producer = 2474
    for line in lines:
        name, _, call = line.partition(" = ")
        op, _, inputs = call.removesuffix(")").partition("(")
        node = graph_def.node.add(name=name, op=op, input=[text for text in inputs.split(", ") if text])
        if op not in ("NoOp", "Placeholder"):
            node.attr["T"].CopyFrom(_FLOAT)
        if op == "Placeholder":
            node.attr["dtype"].CopyFrom(_FLOAT)
        if op == "Merge":
            node.attr["N"].i = len([text for text in node.input if not text.startswith("^")])
    return graph_def


def edges(graph: Graph) -> list[str]:
    return [
        f"{e.src.name}:{e.src_output}->{e.dst.name}:{e.dst_input}" for e in graph.edges() if e.src.is_op and e.dst.is_op
    ]
