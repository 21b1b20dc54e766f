"""`FunctionCallFrame`: the arguments and results of one call of a function, each set and read by its number.

    frame = FunctionCallFrame([DataType.FLOAT], [DataType.FLOAT])
    frame.set_args([x])                 the caller
    frame.set_retval(0, -frame.get_arg(0))          the body
    frame.consume_retvals()             the caller again -> [-x]

Values are numpy arrays. The rules and messages are those of TensorFlow's class of that name. Sessions check a whole
request by the same rules once, instead of each value at each step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import InternalError, InvalidArgumentError
from ..dtypes import Array, DataType, dtype_name, from_numpy, numpy_dtype


class FunctionCallFrame:
    """One call. Arguments are set all at once, results one by one and once each."""

    def __init__(self, arg_types: Sequence[int], ret_types: Sequence[int]) -> None:
        self.arg_types = tuple(map(DataType, arg_types))
        self.ret_types = tuple(map(DataType, ret_types))
        self._args: list[Array] = []
        self._retvals: list[Array | None] = [None] * len(self.ret_types)

    @property
    def num_args(self) -> int:
        """How many arguments the function takes."""
        return len(self.arg_types)

    @property
    def num_retvals(self) -> int:
        """How many results the function gives."""
        return len(self.ret_types)

    def set_args(self, args: Sequence[Array]) -> None:
        """Sets all arguments. Raises InvalidArgumentError for another number of them, or another element type."""
        check_count(len(args), self.num_args)
        for index, (value, dtype) in enumerate(zip(args, self.arg_types, strict=True)):
            if not _has_type(value, dtype):
                raise InvalidArgumentError(
                    f"Expects arg[{index}] to be {dtype_name(dtype)} but {_type_name(value)} is provided"
                )
        self._args = list(args)

    def get_arg(self, index: int) -> Array:
        """An argument; InvalidArgumentError for a number that none has, as all have before `set_args`."""
        check_argument_index(index, len(self._args))
        return self._args[index]

    def set_retval(self, index: int, value: Array) -> None:
        """Sets a result.

        Raises InvalidArgumentError for a number that none has, or another element type, InternalError the second time.
        """
        check_result_index(index, self.num_retvals)
        dtype = self.ret_types[index]
        if not _has_type(value, dtype):
            raise wrong_result_type(index, dtype, _type_name(value))
        if self._retvals[index] is not None:
            raise set_before(index)
        self._retvals[index] = value

    def get_retvals(self) -> list[Array]:
        """All results; InternalError for one that was not set."""
        return [_present(index, value) for index, value in enumerate(self._retvals)]

    def consume_retvals(self, *, allow_dead_tensors: bool = False) -> list[Array | None]:
        """All results, which the frame then has no more; InternalError for one that was not set.

        With `allow_dead_tensors` None stands for such a result.
        """
        values = self._retvals
        if not allow_dead_tensors:
            self.get_retvals()
        self._retvals = [None] * self.num_retvals
        return values


def check_count(provided: int, expected: int) -> None:
    """Raises InvalidArgumentError for another number of arguments than a function has."""
    if provided != expected:
        raise InvalidArgumentError(f"Expects {expected} arguments, but {provided} is provided")


def check_argument_index(index: int, count: int) -> None:
    """Raises InvalidArgumentError unless one of `count` arguments has the number `index`."""
    if not 0 <= index < count:
        raise InvalidArgumentError(f"GetArg {index} is not within [0, {count})")


def check_result_index(index: int, count: int) -> None:
    """Raises InvalidArgumentError unless one of `count` results has the number `index`."""
    if not 0 <= index < count:
        raise InvalidArgumentError(f"SetRetval {index} is not within [0, {count})")


def wrong_result_type(index: int, expected: int, provided: str) -> InvalidArgumentError:
    """The error for a result of another element type than the function declares."""
    return InvalidArgumentError(f"Expects ret[{index}] to be {dtype_name(expected)}, but {provided} is provided.")


def set_before(index: int) -> InternalError:
    """The error for a result that is set a second time."""
    return InternalError(f"Retval[{index}] has already been set.")


def _present(index: int, value: Array | None) -> Array:
    if value is None:
        raise InternalError(f"Retval[{index}] does not have value")
    return value


def _has_type(value: Array, dtype: DataType) -> bool:
    """Whether an array has an element type; strings, resources and variants are all objects."""
    return np.asarray(value).dtype == numpy_dtype(dtype)


def _type_name(value: Array) -> str:
    return dtype_name(from_numpy(np.asarray(value)))
