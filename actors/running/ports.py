"""Converts feeds to tensors for kernels and fetches to arrays for users.

A fed array is never written to, and a fetched array is read-only. Whoever hands arrays to users copies those that are
`shared_with` a feed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import InvalidArgumentError
from ...graph.builder.tensor_names import Name, tensor_names
from ...graph.dtypes import DataType, dtype_name, from_numpy, numpy_dtype
from ..plans.binding import scalar_form
from ..plans.instructions import DEAD, owner, read

if TYPE_CHECKING:
    from ...graph.dtypes import Array

# Any: the keys are names, and a mapping with keys of one kind of name is none with keys of all kinds.
Feeds = Mapping[Any, npt.ArrayLike] | Iterable[tuple[Name, npt.ArrayLike]]

_WIDENS_TO = {"b": "b", "i": "iufc", "f": "fc", "c": "c"}  # kinds of Python numbers -> kinds of element types


class Port(NamedTuple):
    """Feed or fetch `number` of a request, with the name that the user gave."""

    number: int
    name: str
    dtype: DataType
    numpy_dtype: np.dtype[Any]  # Any: known at run time only


def split_feeds(feeds: Feeds | None) -> tuple[tuple[str, ...], list[Any]]:
    """Names and values of the feeds, in order; InvalidArgumentError unless they are a mapping or pairs."""
    if feeds is None:
        return (), []
    if isinstance(feeds, dict):
        return tensor_names(tuple(feeds)), list(feeds.values())
    try:
        pairs = list(feeds.items() if isinstance(feeds, Mapping) else feeds)
        keys, values = [name for name, _ in pairs], [value for _, value in pairs]
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f'feeds: {type(feeds).__name__} is no mapping from tensors to values; write for example {{"x": x}}'
        ) from None
    return tensor_names(tuple(keys)), values


def ports(names: Sequence[str], dtypes: Iterable[DataType]) -> tuple[Port, ...]:
    """A numbered port for each name and element type."""
    return tuple(
        Port(number, name, dtype, numpy_dtype(dtype))
        for number, (name, dtype) in enumerate(zip(names, dtypes, strict=True))
    )


def feed_value(port: Port, value: Any) -> Any:  # Any: users feed what they like
    """A fed value as a tensor. Arrays must have the exact element type, Python numbers and lists a kind that widens.

    The tensor may share memory with `value`, see `copies`. Raises InvalidArgumentError.
    """
    _, _, dtype, expected = port
    if isinstance(value, np.generic) and value.dtype == expected:
        return value
    if isinstance(value, np.ndarray | np.generic) and dtype is not DataType.STRING:
        array = np.asarray(value)
        if array.dtype != expected:
            raise _mismatch(port, dtype_name(from_numpy(array.dtype)))
    else:
        array = _converted(port, value)
    if array.ndim == 0:
        return scalar_form(array)
    view = array.view()
    view.flags.writeable = False
    return view


def _converted(port: Port, value: Any) -> Array:
    """An array from numbers, strings, nested lists, or an object with `__array__`."""
    number, name, dtype, expected = port
    try:
        if expected.hasobject:
            natural = value if isinstance(value, np.ndarray) else np.array(value, object)
            natural = _as_strings(natural) if dtype is DataType.STRING else natural
            fits = natural.dtype == expected
        else:
            natural = np.asarray(value)
            fits = expected.kind in _WIDENS_TO.get(natural.dtype.kind, "")
            fits = fits or natural.dtype == expected or not natural.size
        if fits:
            return np.asarray(natural if expected.hasobject else value, expected)
    except (ValueError, TypeError, OverflowError) as error:
        message = f"arg[{number}] cannot become a {dtype_name(dtype)} tensor: {error}"
        raise InvalidArgumentError(message, inputs=(name,)) from error
    raise _mismatch(port, dtype_name(_python_type(natural)))


def _python_type(array: Array) -> DataType:
    """The default element type of Python values."""
    plain = {"i": DataType.INT32, "f": DataType.FLOAT, "U": DataType.STRING, "S": DataType.STRING, "O": DataType.STRING}
    return plain.get(array.dtype.kind) or from_numpy(array.dtype)


def _as_strings(array: Array) -> Array:
    """Strings of any array as an object array of bytes; arrays of numbers unchanged, TypeError for other objects."""
    if array.dtype.kind not in "SUO":
        return array
    strings = np.empty(array.shape, object)
    for index, item in np.ndenumerate(array):
        if not isinstance(item, str | bytes):
            raise TypeError(f"{item!r} is no string")
        strings[index] = item.encode() if isinstance(item, str) else bytes(item)
    return strings


def _mismatch(port: Port, actual: str) -> InvalidArgumentError:
    message = f"Expects arg[{port.number}] to be {dtype_name(port.dtype)} but {actual} is provided"
    return InvalidArgumentError(message, inputs=(port.name,))


def copies(tensors: Sequence[Any]) -> list[Any]:
    """Tensors that share no memory with the arrays among `tensors`."""
    return [tensor.copy() if isinstance(tensor, np.ndarray) else tensor for tensor in tensors]


def fetched_array(port: Port, value: Any) -> Array:
    """A fetched tensor as a read-only array, which may share memory with a feed; InvalidArgumentError if it is dead."""
    if value is DEAD:
        raise InvalidArgumentError(f"Retval[{port.number}] does not have value", inputs=(port.name,))
    return read_only(value, port.numpy_dtype)


def shared_with(arrays: Sequence[Array], fed: Sequence[Any]) -> list[int]:
    """The numbers of the arrays that share memory with one of `fed`."""
    shared = []
    for value in fed:  # loops, because every step runs them
        if isinstance(value, np.ndarray):
            own = owner(value)
            for number, array in enumerate(arrays):
                if owner(array) is own and number not in shared:
                    shared.append(number)
    return shared


def read_only(value: Any, scalar_type: np.dtype[Any] | None = None) -> Array:  # Any: a tensor, or a variable
    """A tensor, a scalar, or the present value of a variable as a read-only array.

    Raises FailedPreconditionError for a variable that is not initialised.
    """
    tensor = read(value)
    array = tensor if isinstance(tensor, np.ndarray) else np.asarray(tensor, scalar_type)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array
