"""Checks the call frame of a request: the feeds that `_Arg` nodes read and the fetches that `_Retval` nodes write.

The checks are made once per request, so that steps need none. A partial run has no call frame: its feeds and fetches go
through the rendezvous.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...errors import InternalError, InvalidArgumentError
from ...graph.dtypes import DataType, dtype_name

if TYPE_CHECKING:
    from ..plans.plan import Argument, Plan, Result


def check_call_frame(plans: Iterable[Plan], feeds: Sequence[DataType], fetches: Sequence[DataType]) -> None:
    """Checks index and type of every `_Arg` against the feeds and of every `_Retval` against the fetches.

    Raises InvalidArgumentError for one that does not fit, InternalError for a second `_Retval` of one fetch.
    """
    fetched: set[int] = set()
    for plan in plans:
        for argument in plan.arguments:
            _check_argument(argument, feeds)
        for result in plan.results:
            _check_result(result, fetches)
            if result.index in fetched:
                raise InternalError(f"Retval[{result.index}] has already been set.")
            fetched.add(result.index)


def check_no_call_frame(plans: Iterable[Plan]) -> None:
    """Raises InternalError for `_Arg` and `_Retval` nodes of the user's graph, in a request without call frame."""
    if any(plan.arguments or plan.results for plan in plans):
        raise InternalError("no call frame")


def _check_argument(argument: Argument, feeds: Sequence[DataType]) -> None:
    index = argument.index
    if not 0 <= index < len(feeds):
        raise InvalidArgumentError(f"GetArg {index} is not within [0, {len(feeds)})")
    if feeds[index] != argument.dtype:
        actual, expected = dtype_name(feeds[index]), dtype_name(argument.dtype)
        raise InvalidArgumentError(f"Type mismatch: actual {actual} vs. expect {expected}")


def _check_result(result: Result, fetches: Sequence[DataType]) -> None:
    index = result.index
    if not 0 <= index < len(fetches):
        raise InvalidArgumentError(f"SetRetval {index} is not within [0, {len(fetches)})")
    if fetches[index] != result.dtype:
        expected, provided = dtype_name(fetches[index]), dtype_name(result.dtype)
        raise InvalidArgumentError(f"Expects ret[{index}] to be {expected}, but {provided} is provided.")
