"""The call frame of a request: where `_Arg` nodes find what is fed and `_Retval` nodes leave what is fetched.

Flows in: compiled plans, the element types of feeds and fetches. Flows out: nothing but errors. Always holds: in a
request that passed, every argument and every result of its plans belongs to one feed or fetch of the same type, so
that steps need not look. A partial run has no frame: its client comes to the rendezvous.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...errors import InternalError, InvalidArgumentError
from ...graph.dtypes import DataType, dtype_name

if TYPE_CHECKING:
    from ..plans.plan import Argument, Plan, Result


def check_call_frame(plans: Iterable[Plan], feeds: Sequence[DataType], fetches: Sequence[DataType]) -> None:
    """Raises InvalidArgumentError for `_Arg` and `_Retval` nodes of the user that no feed or fetch belongs to.

    Raises InternalError for a second `_Retval` of one fetch.
    """
    stored: set[int] = set()
    for plan in plans:
        for argument in plan.arguments:
            _check_argument(argument, feeds)
        for result in plan.results:
            _check_result(result, fetches)
            if result.index in stored:
                raise InternalError(f"Retval[{result.index}] has already been set.")
            stored.add(result.index)


def check_no_call_frame(plans: Iterable[Plan]) -> None:
    """Raises InternalError for `_Arg` and `_Retval` nodes of the user in a request that has no call frame."""
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
