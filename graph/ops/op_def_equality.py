"""Whether declarations of ops, or attr values in them, mean the same, and hashes that agree with that.

As in TensorFlow, the order of attrs and of control outputs does not count, nor does the encoding of tensors in default
and allowed values. The order of arguments, names, descriptions and flags do.

    Op(a: int, b: type = float)        and        Op(b: type = float, a: int)        are declared alike
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import suppress
from math import prod

from ...errors import PartitaError
from ..dtypes import DataType, is_ref, item_size
from ..protos import AttrValue, OpDef, TensorProto
from ..tensor import numpy_to_tensor, shape_from_proto, tensor_to_numpy

_MOST_BYTES = 32 << 20  # larger tensors are compared by their bytes, as in TensorFlow
_TYPES = frozenset(int(t) for t in DataType if t and not is_ref(t) and (item_size(t) or t is DataType.STRING))


def same_op_def(a: OpDef, b: OpDef) -> bool:
    """Whether two declarations of an op mean the same."""
    return a == b or op_def_meaning(a) == op_def_meaning(b)


def op_def_hash(op: OpDef) -> int:
    """Equal for declarations that mean the same; the same in this process only."""
    return hash(op_def_meaning(op))


def same_attr_def(a: OpDef.AttrDef, b: OpDef.AttrDef) -> bool:
    """Whether two declarations of an attr mean the same."""
    return a == b or _attr_meaning(a) == _attr_meaning(b)


def attr_def_hash(attr: OpDef.AttrDef) -> int:
    """Equal for declarations that mean the same; the same in this process only."""
    return hash(_attr_meaning(attr))


def op_def_meaning(op: OpDef) -> Hashable:
    """The parts of a declaration that count."""
    plain = OpDef()
    plain.CopyFrom(op)
    plain.ClearField("attr")
    plain.ClearField("control_output")
    attrs = frozenset(map(_attr_meaning, op.attr))
    return plain.SerializeToString(deterministic=True), attrs, frozenset(op.control_output)


def _attr_meaning(attr: OpDef.AttrDef) -> Hashable:
    plain = OpDef.AttrDef()
    plain.CopyFrom(attr)
    plain.default_value.CopyFrom(_normal(attr.default_value))
    plain.allowed_values.CopyFrom(_normal(attr.allowed_values))
    return attr.HasField("default_value"), plain.SerializeToString(deterministic=True)


def value_meaning(value: AttrValue) -> bytes:
    """The same bytes for values that are equal but for the encoding of their tensors."""
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
