"""Tensors that carry one Python object: a tensor array, a stack, a list of tensors, an optional value.

Only the tensors refer to the object, not the device (although TensorFlow calls the tensors of tensor arrays and stacks
handles): it is garbage as soon as the tensors are, however the step ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from ...errors import InvalidArgumentError, UnimplementedError
from ...graph.dtypes import Array, DataType

Thing = TypeVar("Thing")


@runtime_checkable
class Summable(Protocol):
    """The interface of objects whose variants have gradients: they can be added, and have a zero."""

    def plus(self, other: Self) -> Self:
        """The sum, tensor by tensor; InvalidArgumentError unless both have the same form."""

    def zeros(self) -> Self:
        """The same object with zeros in place of all numbers."""


def carrying(thing: object) -> Array:
    """The scalar tensor that carries `thing`."""
    array = np.empty((), object)
    array[()] = thing
    return array


def carried(value: Array, kind: type[Thing], what: str) -> Thing:
    """The object of class `kind` that a tensor carries; InvalidArgumentError if it carries none."""
    thing = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    if not isinstance(thing, kind):
        raise InvalidArgumentError(f"Input handle is not {what}. Saw: {type(thing).__name__!r}")
    return thing


def sum_of(a: Array, b: Array, dtype: DataType) -> Array:
    """The sum of two tensors of one shape, variants included."""
    if dtype is not DataType.VARIANT:
        return np.asarray(a + b)
    return _each(lambda x, y: _summable(x).plus(y) if type(x) is type(y) else _refuse(y), a, b)


def zeros_like(value: Array, dtype: DataType) -> Array:
    """Zeros (empty strings) in the shape of `value`; for a variant, the zero of the object that it carries."""
    if dtype is DataType.VARIANT:
        return _each(lambda x: _summable(x).zeros(), value)
    return np.full(value.shape, b"", object) if dtype is DataType.STRING else np.zeros(value.shape, value.dtype)


def _each(function: Callable[..., object], *arrays: Array) -> Array:
    """`function` of the objects that tensors of one shape carry, element by element."""
    result = np.empty(arrays[0].shape, object)
    for place in np.ndindex(result.shape):
        result[place] = function(*[array[place] for array in arrays])
    return result


def _summable(thing: Any) -> Summable:  # whatever a variant carries
    return thing if isinstance(thing, Summable) else _refuse(thing)


def _refuse(thing: object) -> Summable:
    raise UnimplementedError(f"a variant of {type(thing).__name__} cannot be added up; only lists and optionals can")
