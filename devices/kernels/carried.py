"""Tensors that carry one Python object: a tensor array, a stack, a list of tensors, an optional value.

Only the tensors refer to the object, not the device (although TensorFlow calls the tensors of tensor arrays and stacks
handles): it is garbage as soon as the tensors are, however the step ends.

In the first versions of the ops a handle is two strings, or a reference to them; there the second string carries the
object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from ...errors import InvalidArgumentError, NotFoundError, UnimplementedError
from ...graph.analysis.dims import shape_text
from ...graph.dtypes import Array, DataType, base_type, is_ref
from ..state import Variable

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


class _Name(bytes):
    """A string that carries the object it names."""

    thing: object


def handle_carrying(thing: object, dtype: DataType, container: str, name: str) -> Array | Variable:
    """The handle that carries `thing`, in the form of the type: a scalar, two strings, or a reference to them."""
    if base_type(dtype) is not DataType.STRING:
        return carrying(thing)
    bearer = _Name(name.encode())
    bearer.thing = thing
    strings = np.array([container.encode(), bearer], object)
    return Variable(name, DataType.STRING, strings, strings.shape) if is_ref(dtype) else strings


def _named(strings: Array) -> object:
    """What a handle of two strings carries; NotFoundError for strings that name nothing here."""
    if strings.shape != (2,):
        raise InvalidArgumentError(f"handle must be 2-element vector, but had shape: {shape_text(strings.shape)}")
    container, name = strings.tolist()
    if not isinstance(name, _Name):
        names = f"{container.decode(errors='replace')}/{name.decode(errors='replace')}"
        raise NotFoundError(f"Resource {names} does not exist in this step.")
    return name.thing


def carried(value: Array | Variable, kind: type[Thing], what: str) -> Thing:
    """The object of class `kind` that a handle of any form carries; InvalidArgumentError if it carries none."""
    if value.__class__ is np.ndarray and not value.ndim:  # nearly every handle
        thing = value.item()
        if thing.__class__ is kind:
            return thing
    value = value.read() if isinstance(value, Variable) else value
    thing = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    if isinstance(thing, np.ndarray) and thing.size and isinstance(thing.flat[0], bytes):
        thing = _named(thing)
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
    if not arrays[0].ndim:
        return carrying(function(*[array.item() for array in arrays]))
    result = np.empty(arrays[0].shape, object)
    for place in np.ndindex(result.shape):
        result[place] = function(*[array[place] for array in arrays])
    return result


def _summable(thing: Any) -> Summable:  # whatever a variant carries
    return thing if _is_summable(thing.__class__) else _refuse(thing)


@cache
def _is_summable(kind: type) -> bool:
    """Whether objects of a class are `Summable`; Python takes long to compare them with a protocol."""
    return issubclass(kind, Summable)


def _refuse(thing: object) -> Summable:
    raise UnimplementedError(f"a variant of {type(thing).__name__} cannot be added up; only lists and optionals can")
