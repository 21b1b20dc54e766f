"""Names of feeds, fetches and targets in every form that callers may use.

A name is text, a tensor or operation of a `GraphBuilder`, a node of a `Graph`, or a `TensorId`; a handle stands for its
name, whichever graph it came from. Order and duplicates are kept. Other types raise InvalidArgumentError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from ...errors import InvalidArgumentError, shown
from ..node import Node
from ..tensor_id import TensorId
from .handles import Operation, Tensor

Name: TypeAlias = str | Tensor | Operation | Node | TensorId
Names: TypeAlias = Name | Iterable[Name]


def tensor_names(names: Names) -> tuple[str, ...]:
    """The names as text, a single one as a tuple of one; InvalidArgumentError for a value that names nothing."""
    if isinstance(names, str):
        return (names,)
    items = tuple(names) if type(names) is list or type(names) is tuple else _several(names)
    try:
        "".join(items)  # type: ignore[arg-type]  # the quickest test that all are text
    except TypeError:
        return tuple(map(_text, items))
    return items  # type: ignore[return-value]  # all are text


def _several(names: Names) -> tuple[Name, ...]:
    """The names in a collection, or a single name as a tuple."""
    if isinstance(names, (Tensor, Operation, Node, TensorId)):
        return (names,)
    if names is None or isinstance(names, (bytes, Mapping)) or not isinstance(names, Iterable):
        raise _no_name(names)
    if isinstance(names, (set, frozenset)):
        raise InvalidArgumentError(f"{type(names).__name__} has no order; give a list of names")
    return tuple(names)


def _text(name: Name) -> str:
    if isinstance(name, (str, Tensor, Operation, Node)):
        return name if isinstance(name, str) else name.name
    if isinstance(name, TensorId):
        return str(name)
    raise _no_name(name)


def _no_name(value: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{type(value).__name__} {shown(value)} names no tensor; "
        'give a name ("y" or "y:1"), or a tensor of a GraphBuilder'
    )
