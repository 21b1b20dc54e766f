"""Graphs with one node "target" each, whose `_output_shapes` a sweep contradicts: a small one for every op there is.

Two sorts: nodes made from the signature of an op alone, with inputs of unknown shape; and the recorded calls of
kernels, whose inputs are constants. `python -m tests.graph.shape_inference.sweep.nodes FILE` writes them for
`tensorflow_answers`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from partita.graph.attrs import decode, encode
from partita.graph.dtypes import REF_OFFSET, DataType, base_type
from partita.graph.ops.partita_ops import partita_ops
from partita.graph.ops.registry import PRODUCER, AttrDef, OpSignature, lookup_op, op_names
from partita.graph.ops.type_inference import input_output_types
from partita.graph.protos import AttrValue, GraphDef
from partita.graph.tensor import numpy_to_tensor
from tests.devices.kernels.sweep.cases import TARGET, read_graphs, write_graphs

_VALUES: dict[str, object] = {"bool": False, "float": 1.0, "string": b"", "shape": (2, 3), "type": DataType.FLOAT}
_FUNCTION = "identity_of_a_float"


def graphs() -> Iterator[GraphDef]:
    """All graphs of the sweep: op after op of TensorFlow's, then the recorded calls."""
    own = {op.name for op in partita_ops()}
    for op in op_names():
        if op not in own:
            yield _graph_of(lookup_op(op))
    for data in read_graphs():
        yield GraphDef.FromString(data)


def _graph_of(signature: OpSignature) -> GraphDef:
    """A node of an op with the smallest attrs that its signature allows, and inputs of which nothing is known."""
    graph = GraphDef()
    graph.versions.producer = _producer(signature)
    node = graph.node.add(name=TARGET, op=signature.name)
    for name, attr in signature.attrs.items():
        node.attr[name].CopyFrom(_smallest(attr) if attr.default is None else AttrValue.FromString(attr.default))
    if signature.takes_functions:
        _add_identity(graph)
    attrs = {name: decode(value) for name, value in node.attr.items()}
    for port, dtype in enumerate(input_output_types(signature, attrs)[0]):
        made = graph.node.add(name=f"input_{port}", op="VariableV2" if dtype > REF_OFFSET else "Placeholder")
        made.attr["dtype"].CopyFrom(encode(base_type(dtype), "type"))
        made.attr["shape"].CopyFrom(encode(None, "shape"))
        node.input.append(made.name)
    return graph


def _producer(signature: OpSignature) -> int:
    """The newest version of graphs that has the op."""
    return PRODUCER if signature.deprecation is None else signature.deprecation[0] - 1


def _smallest(attr: AttrDef) -> AttrValue:
    """The smallest value of an attr without a default; lists have one item where they may."""
    if attr.type.startswith("list("):
        item = AttrDef(attr.name, attr.type[5:-1], None, None, attr.allowed)
        value = AttrValue()
        value.list.SetInParent()
        for _ in range(max(1, attr.minimum or 0)):
            value.list.MergeFrom(encode([decode(_smallest(item))], attr.type).list)
        return value
    if attr.type == "int":
        return encode(max(1, attr.minimum or 0), "int")
    if attr.type == "func":
        value = AttrValue()
        value.func.name = _FUNCTION
        return value
    if attr.type == "tensor":
        return AttrValue(tensor=numpy_to_tensor(np.ones((), np.float32)))
    allowed = attr.allowed
    has_float = attr.type == "type" and DataType.FLOAT in (allowed or ())
    return encode(allowed[0] if allowed and not has_float else _VALUES[attr.type], attr.type)


def _add_identity(graph: GraphDef) -> None:
    function = graph.library.function.add()
    function.signature.name = _FUNCTION
    function.signature.input_arg.add(name="x", type=1)
    function.signature.output_arg.add(name="y", type=1)
    node = function.node_def.add(name="i", op="Identity", input=["x"])
    node.attr["T"].CopyFrom(encode(DataType.FLOAT, "type"))
    function.ret["y"] = "i:output:0"


if __name__ == "__main__":
    write_graphs(Path(sys.argv[1]), (graph.SerializeToString(deterministic=True) for graph in graphs()))
