"""MapDefun: a function called with every row of its arguments, the results stacked.

A map of a short function runs in turns on its device; of any other so many calls are under way at a time. What a call
gives has to have the shape that the node promises for it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InternalError, InvalidArgumentError
from ...graph.analysis.dims import fits, shape_text
from ...graph.dtypes import DataType, Shape, numpy_dtype

if TYPE_CHECKING:
    from ...graph.ops.properties import NodeProperties
    from .callee import Callee
    from .pending import PendingCall

Values = Sequence[Any]  # tensors of any type
_AT_ONCE = 64  # rows whose calls are under way


@dataclass(frozen=True, slots=True)
class MapKernel:
    """Calls a function with each slice, along axis 0, of the first `num_arguments` inputs and with the others whole.

    `promised` are shape and type of what a call gives for each output.
    """

    callee: Callable[[Values], Callee]
    num_arguments: int
    promised: Sequence[tuple[Shape, DataType]]

    def start(self, call: PendingCall, *inputs: Any) -> None:
        """Begins with the first slices."""
        callee = self.callee(inputs)
        size, slices = self._slices(inputs)
        if callee.is_short:
            call.part.actor.go_on(call, self._turns(callee, slices, call.part.actor.deadline))
        else:
            _LongMap(call, callee, size, slices, self.stacked).start()

    def _turns(
        self, callee: Callee, slices: Iterator[Values], deadline: Callable[[], float]
    ) -> Generator[None, None, Values]:
        """Calls a short function for one slice after the other; yields when it is time for others."""
        end, rows = deadline(), []
        for arguments in slices:
            rows.append(callee.run(*arguments))
            if perf_counter() > end:
                yield
                end = deadline()
        return self.stacked(rows)

    def _slices(self, inputs: Values) -> tuple[int, Iterator[Values]]:
        """How many slices there are, and the arguments that each is called with."""
        mapped, captured = inputs[: self.num_arguments], inputs[self.num_arguments :]
        sizes = {np.shape(value)[0] if np.ndim(value) else -1 for value in mapped}
        if len(sizes) != 1 or -1 in sizes:
            raise InvalidArgumentError("All inputs must have the same dimension 0.")
        (size,) = sizes
        return size, ([*(value[row] for value in mapped), *captured] for row in range(size))

    def stacked(self, rows: Sequence[Values]) -> list[Any]:
        """The results of all slices, each output stacked."""
        if rows:
            return [self._output(shape, [row[k] for row in rows]) for k, (shape, _) in enumerate(self.promised)]
        for number, (shape, _) in enumerate(self.promised):
            if shape is None or None in shape:
                raise InternalError(f"Missing {number}-th output: there is no row, and its shape is not fully known")
        return [np.empty((0, *(shape or ())), numpy_dtype(dtype)) for shape, dtype in self.promised]

    def _output(self, promised: Shape, rows: list[Any]) -> Any:
        for row in rows:
            found = np.shape(row)
            if not fits(found, promised):
                expected, actual = shape_text(promised), shape_text(found)
                raise InvalidArgumentError(
                    f"Mismatch in function retval shape, {actual}, and expected output shape, {expected}."
                )
        return np.stack([np.asarray(row) for row in rows])


def promised_by(node: NodeProperties) -> list[tuple[Shape, DataType]]:
    """Shape and type of what a call gives for each output; InvalidArgumentError if the node does not say all."""
    shapes, types = node.attrs["output_shapes"], node.output_types
    if len(shapes) != len(types):
        raise InvalidArgumentError(
            f"`output_shapes` must be the same length as `output_types` ({len(shapes)} vs. {len(types)})"
        )
    return list(zip(shapes, types, strict=True))


class _LongMap:
    """A map whose function takes several turns: so many calls at a time, each that ends making room for the next."""

    __slots__ = ("_call", "_callee", "_found", "_left", "_slices", "_stacked")

    def __init__(
        self,
        call: PendingCall,
        callee: Callee,
        size: int,
        slices: Iterator[Values],
        stacked: Callable[[Sequence[Values]], Values],
    ) -> None:
        self._call = call
        self._callee = callee
        self._found: list[Values] = [()] * size
        self._left = size
        self._slices = enumerate(slices)
        self._stacked = stacked

    def start(self) -> None:
        """Begins with the first slices."""
        if not self._left:
            self._call.done(*self._stacked([]))
        for _ in range(min(_AT_ONCE, self._left)):
            self._next()

    def _next(self) -> None:
        number, arguments = next(self._slices)
        self._callee.start(self._call, arguments, partial(self._keep, number), f":{number}")

    def _keep(self, number: int, results: Values) -> None:
        self._found[number] = results
        self._left -= 1
        if not self._left:
            self._call.done(*self._stacked(self._found))
        elif self._left >= _AT_ONCE:
            self._next()
