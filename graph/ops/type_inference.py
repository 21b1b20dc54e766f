"""Infers the port types of a node from its op's signature and its attrs.

Only attrs that determine types and counts are read, so large values stay serialised. Nothing else is validated here;
`graph.validate` does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import InvalidArgumentError, NotFoundError
from ..attrs import decode
from ..dtypes import DataType, make_ref
from ..protos import AttrValue
from .registry import ArgDef, OpSignature

PortTypes = tuple[DataType, ...]
_MAX_PORTS = 1 << 20  # far more than any real node has; without it a damaged count would fill the memory


def input_output_types(signature: OpSignature, attrs: Mapping[str, Any]) -> tuple[PortTypes, PortTypes]:
    """Flattened input types and output types of a node.

    Raises NotFoundError for a missing attr that determines a type or a count, InvalidArgumentError for a negative count
    and an argument without declared type. A type attr with another value gives `DataType.INVALID`, as in TensorFlow.
    """
    inputs = tuple(dtype for arg in signature.input_args for dtype in arg_types(arg, attrs))
    outputs = tuple(dtype for arg in signature.output_args for dtype in arg_types(arg, attrs))
    return inputs, outputs


def name_ranges(signature: OpSignature, attrs: Mapping[str, Any]) -> tuple[dict[str, range], dict[str, range]]:
    """The range of ports of each input argument and of each output argument. Raises as `input_output_types`."""
    return _ranges(signature.input_args, attrs), _ranges(signature.output_args, attrs)


def _ranges(args: tuple[ArgDef, ...], attrs: Mapping[str, Any]) -> dict[str, range]:
    ranges: dict[str, range] = {}
    start = 0
    for arg in args:
        stop = start + len(arg_types(arg, attrs))
        ranges[arg.name] = range(start, stop)
        start = stop
    return ranges


def arg_types(arg: ArgDef, attrs: Mapping[str, Any]) -> PortTypes:
    """Types of the ports of one declared argument: none, one or many."""
    if arg.type_list_attr and not arg.number_attr:
        types = _type_list(attrs, arg.type_list_attr)
    else:
        count = _count(attrs, arg.number_attr) if arg.number_attr else 1  # TensorFlow reads the number first
        types = (_single_type(arg, attrs),) * count
    return tuple(dtype and make_ref(dtype) for dtype in types) if arg.is_ref else types


def _single_type(arg: ArgDef, attrs: Mapping[str, Any]) -> DataType:
    if arg.type_attr:
        value = _read(attrs, arg.type_attr)
        return value if isinstance(value, DataType) else DataType.INVALID
    if arg.type == DataType.INVALID:
        raise InvalidArgumentError(f"No type fields in the declaration of argument '{arg.name}'")
    return arg.type


def _type_list(attrs: Mapping[str, Any], name: str) -> PortTypes:
    value = _read(attrs, name)
    return tuple(item for item in value if isinstance(item, DataType)) if isinstance(value, tuple) else ()


def _count(attrs: Mapping[str, Any], name: str) -> int:
    value = _read(attrs, name)
    if not isinstance(value, int) or isinstance(value, (bool, DataType)):
        raise InvalidArgumentError(f"AttrValue had value with another type when 'int' expected\n\t for attr '{name}'")
    if not -(1 << 31) <= value < 1 << 31:
        raise InvalidArgumentError(f"Number of outputs is too big: {value}")
    if not 0 <= value <= _MAX_PORTS:
        raise InvalidArgumentError(f"Value for number_attr() {value} {'< 0' if value < 0 else f'> {_MAX_PORTS}'}")
    return value


def _read(attrs: Mapping[str, Any], name: str) -> Any:
    try:
        value = attrs[name]
        return decode(value) if isinstance(value, AttrValue) else value
    except KeyError:
        raise NotFoundError(f"No attr named '{name}' in NodeDef:") from None
    except InvalidArgumentError:  # a number that is no DataType counts as a value of another kind
        return None
