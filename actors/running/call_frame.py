"""Checks the call frame of a request: the feeds that `_Arg` nodes read and the fetches that `_Retval` nodes write.

    run("y", {"x": 2.0})      feeds [float], fetches [float]
    _Arg of index 0, float        fits; of index 1, or an int: InvalidArgumentError
    two _Retval of index 0        InternalError

The checks are made once per request, so that steps need none. A partial run has no call frame: its feeds and fetches go
through the rendezvous.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...errors import InternalError, InvalidArgumentError
from ...graph.dtypes import DataType, dtype_name
from ...graph.functions.call_frame import check_argument_index, check_result_index, set_before, wrong_result_type

if TYPE_CHECKING:
    from ..plans.plan import FeedSlot, Plan, Result


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
                raise set_before(result.index)
            fetched.add(result.index)


def check_no_call_frame(plans: Iterable[Plan]) -> None:
    """Raises InternalError for `_Arg` and `_Retval` nodes of the user's graph, in a request without call frame."""
    if any(plan.arguments or plan.results for plan in plans):
        raise InternalError("no call frame")


def _check_argument(argument: FeedSlot, feeds: Sequence[DataType]) -> None:
    index = argument.index
    check_argument_index(index, len(feeds))
    if feeds[index] != argument.dtype:
        actual, expected = dtype_name(feeds[index]), dtype_name(argument.dtype)
        raise InvalidArgumentError(f"Type mismatch: actual {actual} vs. expect {expected}")


def _check_result(result: Result, fetches: Sequence[DataType]) -> None:
    index = result.index
    check_result_index(index, len(fetches))
    if fetches[index] != result.dtype:
        raise wrong_result_type(index, fetches[index], dtype_name(result.dtype))
