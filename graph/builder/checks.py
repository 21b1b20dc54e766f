"""Errors for wrong arguments of a `GraphBuilder`: misspelt attrs and devices, and values that are no tensors.

They are raised where the mistake is written, and suggest what was probably meant. No number changes its meaning on the
way into a Const: 2.5 does not become an int32, None does not become NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, shown
from ..device_name import COMPONENTS, find_full_name, find_local_name
from ..dtypes import Array, DataType, dtype_name, numpy_dtype
from ..ops.attr_checks import check_value
from ..ops.device_kinds import kind_names
from ..ops.registry import OpSignature
from ..protos import NodeDef
from ..suggestions import meant, nearest
from ..validate import check_attrs
from .handles import Operation, Tensor

_PLACEHOLDER = "/job:NAME/replica:N/task:N/device:TYPE:N or a part of it"
_SHORTEST_SLIP = 4  # letters: a type of three letters resembles too many others
# numpy kinds of values -> kinds that they may be converted to: an integer may become a float, not the reverse.
_BECOMES = {"b": "b", "i": "iufc", "u": "iufc", "f": "fc", "c": "c"}


def check_attr_names(signature: OpSignature, attrs: Mapping[str, Any], node: str) -> None:
    """InvalidArgumentError for an attr that the op does not declare; names that begin with "_" are always allowed."""
    for name in attrs:
        if name not in signature.attrs and not name.startswith("_"):
            hint = meant(name, signature.attrs)
            known = hint or (f"; its attrs are {', '.join(signature.attrs)}" if signature.attrs else "; it has none")
            raise InvalidArgumentError(
                f"{signature.name} has no attr {name!r}{known}", node=node or None, op=signature.name
            )


def check_attr_values(name: str, signature: OpSignature, names: Iterable[str], node: NodeDef) -> None:
    """InvalidArgumentError for a bad value of an attr in `names`, and for an attr without a value."""
    for key in names:
        declared = signature.attrs.get(key)
        if declared is not None and not node.attr[key].placeholder:  # the caller of the function gives it a value
            try:
                check_value(node.attr[key], declared)
            except InvalidArgumentError as error:
                raise error.located(node=name, op=signature.name) from None
    if any(key not in node.attr for key in signature.attrs):
        check_attrs(name, signature, dict(node.attr))


def requested_device(name: str) -> str:
    """The name as a node requests it: "gpu:1", "GPU:1" and "/device:gpu:1" become "/device:GPU:1".

    The same goes for every registered kind of device. Raises InvalidArgumentError for what is no device name, and for a
    misspelt type.
    """
    return _requested_device(name, kind_names())


@lru_cache(maxsize=1 << 12)
def _requested_device(name: str, kinds: tuple[str, ...]) -> str:
    if not isinstance(name, str):
        raise InvalidArgumentError(f"{name!r} is no device name; write {_PLACEHOLDER}")
    parsed = find_local_name(name) or find_full_name(name)
    if parsed is None:
        raise InvalidArgumentError(f"{name!r} is no device name{_misspelt_part(name) or f'; write {_PLACEHOLDER}'}")
    if parsed.type is None or parsed.type in kinds:
        return str(parsed) if find_local_name(name) else name
    if parsed.type.upper() in kinds:
        return str(replace(parsed, type=parsed.type.upper()))
    meant_kind = nearest(parsed.type.upper(), kinds) if len(parsed.type) >= _SHORTEST_SLIP else None
    if meant_kind is not None:
        raise InvalidArgumentError(f"{name!r} names a device of type {parsed.type!r}; did you mean {meant_kind!r}?")
    return str(parsed) if find_local_name(name) else name


def _misspelt_part(name: str) -> str:
    """A hint for the first part of a name that no device name has."""
    for part in name.strip("/").split("/"):
        word = part.partition(":")[0]
        if word.lower() not in COMPONENTS:
            return meant(word, COMPONENTS)
    return ""


def check_is_value(value: object) -> None:
    """InvalidArgumentError for a value that is no tensor and cannot become a Const, such as None, a graph or a path."""
    if isinstance(value, (bool, int, float, complex, bytes, np.ndarray, np.generic)) or hasattr(value, "__array__"):
        return
    if isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, (Tensor, Operation)):
                raise InvalidArgumentError(
                    f"a list that holds {item!r} is given for one tensor; join them with Pack or ConcatV2 first"
                )
            if not isinstance(item, str):
                check_is_value(item)
        return
    raise InvalidArgumentError(
        f"{type(value).__name__} {shown(value)} is no tensor; give a tensor, the name of one, a number or an array"
    )


def array_of(value: Any, dtype: DataType) -> Array:
    """The value as an array of `dtype`; InvalidArgumentError where the conversion would change its meaning."""
    wanted = numpy_dtype(dtype)
    if wanted.hasobject:
        return np.asarray(value, wanted)
    natural = np.asarray(value)
    fits = natural.dtype == wanted or not natural.size or wanted.kind in _BECOMES.get(natural.dtype.kind, "V")
    try:
        if fits or natural.dtype.kind == "V" or wanted.kind == "V":
            with np.errstate(over="ignore"):  # as in TensorFlow, a float that is too large becomes infinity
                return np.asarray(value, wanted)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"{shown(value)} cannot become {dtype_name(dtype)}: {error}") from None
    raise InvalidArgumentError(
        f"{shown(value)} ({natural.dtype.name}) cannot become {dtype_name(dtype)}; convert it, or the tensor beside it"
    )


def is_several(nodes: object) -> bool:
    """Whether a value is a collection of nodes rather than one node or its name."""
    return isinstance(nodes, Iterable) and not isinstance(nodes, (str, Tensor, Operation))
