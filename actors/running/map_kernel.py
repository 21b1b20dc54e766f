"""MapDefun: calls a function on every row of its arguments and stacks the results.

    MapDefun([[1, 2], [3, 4]]) of f(row) = sum(row)      f([1, 2]) -> 3, f([3, 4]) -> 7      output [3, 7]

A short function is called row by row on its device; of any other function 64 calls run at a time. Results must have
the shapes that the node's attr `output_shapes` promises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...devices.kernels.functions import Values
from ...errors import InternalError, InvalidArgumentError
from ...graph.analysis.dims import fits, shape_text
from ...graph.dtypes import DataType, Shape, numpy_dtype
from .callee import Callee, CallTurn
from .loops.looks import Looks

if TYPE_CHECKING:
    from ...graph.ops.properties import NodeProperties
    from .messages import TurnedWork
    from .pacing import Pacer
    from .pending import PendingCall

_MAX_RUNNING_CALLS = 64


@dataclass(frozen=True, slots=True)
class MapKernel:
    """Calls a function on each row, along axis 0, of the first `num_arguments` inputs and on the whole other inputs.

    `promised` has shape and type of each result of one call.
    """

    callee: Callable[[Values], Callee]
    num_arguments: int
    promised: Sequence[tuple[Shape, DataType]]

    def start(self, call: PendingCall, *inputs: Any) -> None:
        """Starts the deferred node."""
        callee = self.callee(inputs)
        num_rows, rows = self._rows(inputs, len(callee.argument_types))
        if callee.is_short:
            call.part.actor.continue_work(call, self._turns(callee, rows, call.part.actor.pacer))
        else:
            _LongMap(call, callee, num_rows, rows, self.stacked).start()

    def _turns(self, callee: Callee, rows: Iterator[Values], pacer: Pacer) -> TurnedWork:
        """Calls a short function on one row after the other."""
        looks, results = Looks(pacer), []
        looks.add(callee.segments)
        for arguments in rows:
            row = (yield from callee.run_in_turns(arguments, pacer)) if looks.is_watched else callee.run(*arguments)
            results.append(row)
            if len(results) == looks.next and looks.look():
                yield None
        return self.stacked(results)

    def _rows(self, inputs: Values, count: int) -> tuple[int, Iterator[Values]]:
        """The number of rows, and the arguments of the call for each: the first `count`, as TensorFlow drops others."""
        mapped, captured = inputs[: self.num_arguments], inputs[self.num_arguments :]
        sizes = {np.shape(value)[0] if np.ndim(value) else -1 for value in mapped}
        if len(sizes) != 1 or -1 in sizes:
            raise InvalidArgumentError("All inputs must have the same dimension 0.")
        (size,) = sizes
        taken = mapped[:count], captured[: max(count - len(mapped), 0)]
        return size, ([*(value[row] for value in taken[0]), *taken[1]] for row in range(size))

    def stacked(self, results: Sequence[Values]) -> list[Any]:
        """The outputs: the results of all rows, stacked. Raises for results of other shapes than promised."""
        if results:
            return [self._output(shape, [row[k] for row in results]) for k, (shape, _) in enumerate(self.promised)]
        for number, (shape, _) in enumerate(self.promised):
            if shape is None or None in shape:
                raise InternalError(f"Missing {number}-th output: there is no row, and its shape is not fully known")
        return [np.empty((0, *(shape or ())), numpy_dtype(dtype)) for shape, dtype in self.promised]

    def _output(self, promised: Shape, rows: list[Any]) -> Any:
        for row in rows:
            shape = np.shape(row)
            if not fits(shape, promised):
                expected, actual = shape_text(promised), shape_text(shape)
                raise InvalidArgumentError(
                    f"Mismatch in function retval shape, {actual}, and expected output shape, {expected}."
                )
        return np.stack([np.asarray(row) for row in rows])


def promised_by(node: NodeProperties) -> list[tuple[Shape, DataType]]:
    """Shape and type of each result of one call; InvalidArgumentError unless there is a shape for each output."""
    shapes, types = node.attrs["output_shapes"], node.output_types
    if len(shapes) != len(types):
        raise InvalidArgumentError(
            f"`output_shapes` must be the same length as `output_types` ({len(shapes)} vs. {len(types)})"
        )
    return list(zip(shapes, types, strict=True))


class _LongMap:
    """A map of a function that is not short: the end of each call starts the call for the next row."""

    __slots__ = ("_call", "_callee", "_num_missing", "_results", "_rows", "_stacked")

    def __init__(
        self,
        call: PendingCall,
        callee: Callee,
        num_rows: int,
        rows: Iterator[Values],
        stacked: Callable[[Sequence[Values]], Values],
    ) -> None:
        self._call = call
        self._callee = callee
        self._results: list[Values] = [()] * num_rows
        self._num_missing = num_rows
        self._rows = enumerate(rows)
        self._stacked = stacked

    def start(self) -> None:
        """Starts the calls for the first rows."""
        if not self._num_missing:
            self._call.done(*self._stacked([]))
        for _ in range(min(_MAX_RUNNING_CALLS, self._num_missing)):
            self._next()

    def _next(self) -> None:
        number, arguments = next(self._rows)
        self._callee.start(self._call, arguments, partial(self._keep, number), CallTurn(number))

    def _keep(self, number: int, results: Values) -> None:
        self._results[number] = results
        self._num_missing -= 1
        if not self._num_missing:
            self._call.done(*self._stacked(self._results))
        # 63 calls run besides this one, so that with 64 missing results a row has not begun.
        elif self._num_missing >= _MAX_RUNNING_CALLS:
            self._next()
