"""BatchFunction: calls a function on a batch whose size is one of the allowed ones.

TensorFlow joins calls of several steps that come within a given time. Here each call is a batch by itself, as it is
there when no other comes in time. It is padded with copies of its first row; the rows of the padding are cut off from
the results:

    3 rows, sizes 2 and 4 allowed      rows 0 1 2 0      f      rows 0 1 2
    9 rows, at most 4                  rows 0..3, 4..7, 8 8     three calls, one after the other
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import FailedPreconditionError, InternalError, InvalidArgumentError, PartitaError
from ....graph.dtypes import Array
from ....graph.functions.body import instantiate_call
from ..checks import require
from ..functions import Function, NamedFunction, Scope
from ..registry import Call, Construction, Start, deferred_kernel


@dataclass(frozen=True, slots=True)
class _Sizes:
    largest: int
    allowed: tuple[int, ...]  # ascending; () if any size is
    splits: bool

    @classmethod
    def of(cls, node: Construction) -> _Sizes:
        """What the attrs say; InvalidArgumentError unless the last allowed size is the largest batch."""
        attrs = node.attrs
        allowed, largest = tuple(attrs["allowed_batch_sizes"]), int(attrs["max_batch_size"])
        splits = bool(attrs["enable_large_batch_splitting"])
        require(list(allowed) == sorted(set(allowed)), "allowed_batch_sizes entries must be monotonically increasing")
        require(
            not allowed or allowed[-1] == largest or (splits and allowed[-1] <= largest),
            "final entry in allowed_batch_sizes must equal max_batch_size when enable_large_batch_splitting is False",
        )
        return cls(allowed[-1] if splits and allowed else largest, allowed, splits)

    def padded(self, count: int) -> int:
        """The smallest allowed size for so many rows; no rows are a batch of none."""
        return next((size for size in self.allowed if size >= count), count) if count else 0


class _Batches:
    """The calls of the function for one call of the kernel, one after the other."""

    __slots__ = ("_call", "_captured", "_function", "_inputs", "_results", "_rows", "_sizes", "_start")

    def __init__(
        self, call: Call, function: Function, inputs: Sequence[Array], captured: Sequence[Any], sizes: _Sizes
    ) -> None:
        self._call = call
        self._function = function
        self._inputs = inputs
        self._captured = captured
        self._sizes = sizes
        self._rows = len(inputs[0])
        self._start = 0
        self._results: list[Sequence[Array]] = []

    def next(self) -> None:
        """Calls the function for the next rows."""
        rows = np.arange(self._start, min(self._start + self._sizes.largest, self._rows))
        padding = self._sizes.padded(len(rows)) - len(rows)
        chosen = np.concatenate([rows, np.full(padding, self._start, rows.dtype)])
        self._function([*(x[chosen] for x in self._inputs), *self._captured], self._got, self._call.fail)

    def _got(self, results: Sequence[Any]) -> None:
        rows = min(self._sizes.largest, self._rows - self._start)
        try:
            self._results.append([_cut(np.asarray(result), rows, self._sizes.padded(rows)) for result in results])
        except PartitaError as error:
            self._call.fail(error)
            return
        self._start += rows
        if self._start < self._rows:
            self.next()
        else:
            self._call.done(*map(_joined, zip(*self._results, strict=True)))


def _cut(result: Array, rows: int, padded: int) -> Array:
    if not result.ndim:
        raise FailedPreconditionError("Batched output tensor has 0 dimensions")
    if len(result) != padded:
        raise FailedPreconditionError(
            "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of the input "
            "tensors"
        )
    return result[:rows]


def _joined(parts: tuple[Array, ...]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@deferred_kernel("BatchFunction")
def batch_function(node: Construction) -> Start:
    """The results of a function of rows."""
    function, scope, sizes = node.function("f"), Scope(), _Sizes.of(node)
    num_inputs = len(node.attrs["Tin"])

    def start(call: Call, *inputs: Any) -> None:
        _check_types(node, function)
        rows = _checked(inputs[:num_inputs], sizes)
        _Batches(call, call.function(function, scope), rows, inputs[num_inputs:], sizes).next()

    return start


def _check_types(node: Construction, named: NamedFunction) -> None:
    """Raises unless the function takes and gives what the node does; raises also the errors of instantiation."""
    body = instantiate_call(named.provider.library, named.function)
    given = [*node.attrs["Tin"], *node.attrs["Tcaptured"]]
    if list(body.argument_types) != given:
        raise InvalidArgumentError(f"function {named.function.name!r} takes other tensors than the node has inputs")
    if list(body.result_types) != list(node.attrs["Tout"]):
        raise InternalError(f"function {named.function.name!r} gives other tensors than the node has outputs")


def _checked(inputs: Sequence[Any], sizes: _Sizes) -> list[Array]:
    rows = [np.asarray(x) for x in inputs]
    require(bool(rows), "a batch has at least one input")
    require(all(x.ndim for x in rows), "Batching input tensors must have at least one dimension")
    require(
        len({len(x) for x in rows}) == 1,
        "Batching input tensors supplied in a given op invocation must have equal 0th-dimension size",
    )
    if not (sizes.splits or len(rows[0]) <= sizes.largest):
        raise InvalidArgumentError(f"Task size {len(rows[0])} is larger than maximum input batch size {sizes.largest}")
    return rows
