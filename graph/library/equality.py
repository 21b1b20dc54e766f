"""Whether two FunctionDefs define the same function, by TensorFlow's rules.

Ignored are the order of nodes, of control inputs and of declared attrs, the encoding of tensors, ":0" in an input, node
attrs that begin with "_", and debug information. Everything else counts, attrs with default values too.

    node_def: a = Mul(x, y, ^b), b = NoOp()        and        b = NoOp(), a = Mul(x:0, y, ^b)        are equal
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import suppress
from math import prod

from ...errors import PartitaError
from ..dtypes import DataType, is_ref, item_size
from ..protos import AttrValue, FunctionDef, NodeDef, OpDef, TensorProto
from ..tensor import numpy_to_tensor, shape_from_proto, tensor_to_numpy

_MOST_BYTES = 32 << 20  # larger tensors are compared by their bytes, as in TensorFlow
_TYPES = frozenset(int(t) for t in DataType if t and not is_ref(t) and (item_size(t) or t is DataType.STRING))


def same_function(a: FunctionDef, b: FunctionDef) -> bool:
    """Whether two definitions mean the same function."""
    return a == b or _meaning(a) == _meaning(b)


def _meaning(function: FunctionDef) -> Hashable:
    """The parts of a definition that count. Nodes of one name are all kept: such a function is malformed."""
    return (
        _declaration(function.signature),
        frozenset((name, _value(value)) for name, value in function.attr.items() if value.WhichOneof("value")),
        tuple(sorted(map(_node, function.node_def), key=lambda node: node[0])),
        frozenset(function.ret.items()),
        frozenset(function.control_ret.items()),
    )


def _declaration(signature: OpDef) -> Hashable:
    copied = OpDef()
    copied.CopyFrom(signature)
    copied.ClearField("attr")
    copied.ClearField("control_output")
    attrs = []
    for attr in signature.attr:
        plain = OpDef.AttrDef()
        plain.CopyFrom(attr)
        plain.default_value.CopyFrom(_normal(attr.default_value))
        plain.allowed_values.CopyFrom(_normal(attr.allowed_values))
        attrs.append((attr.HasField("default_value"), plain.SerializeToString(deterministic=True)))
    return copied.SerializeToString(deterministic=True), frozenset(attrs), frozenset(signature.control_output)


def _node(node: NodeDef) -> tuple[str, Hashable]:
    data = tuple(name.removesuffix(":0") for name in node.input if name[:1] != "^")
    control = frozenset(name for name in node.input if name[:1] == "^")
    attrs = frozenset((name, _value(value)) for name, value in node.attr.items() if name[:1] != "_")
    return node.name, (node.op, node.device, len(node.input), data, control, attrs)


def _value(value: AttrValue) -> bytes:
    return _normal(value).SerializeToString(deterministic=True)


def _normal(value: AttrValue) -> AttrValue:
    """The value with its tensors in a normal form that all equal tensors share."""
    normal = AttrValue()
    normal.CopyFrom(value)
    for tensor in _tensors(normal):
        with suppress(PartitaError):  # a malformed tensor equals only its own encoding
            if 0 < _num_bytes(tensor) <= _MOST_BYTES:
                tensor.CopyFrom(numpy_to_tensor(tensor_to_numpy(tensor), DataType(tensor.dtype)))
    return normal


def _num_bytes(tensor: TensorProto) -> int:
    """Bytes of the elements, one for each string; 0 for other objects and for malformed tensors."""
    shape = shape_from_proto(tensor.tensor_shape) or ()
    if int(tensor.dtype) not in _TYPES or None in shape:
        return 0
    return prod(size for size in shape if size is not None) * (item_size(tensor.dtype) or 1)


def _tensors(value: AttrValue) -> Iterable[TensorProto]:
    """The tensors in a value, including those in the attrs of functions that it names."""
    match value.WhichOneof("value"):
        case "tensor":
            yield value.tensor
        case "list":
            yield from value.list.tensor
    for function in (value.func,) if value.HasField("func") else value.list.func:
        for inner in function.attr.values():
            yield from _tensors(inner)
