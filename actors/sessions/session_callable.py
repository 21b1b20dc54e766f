"""Requests that are named once and then called with values by position.

The names are checked and the request is prepared when the callable is made. Extending the graph does not change it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ...errors import InvalidArgumentError

if TYPE_CHECKING:
    from ...graph import RunMetadata
    from ...graph.dtypes import Array
    from .virtual_sessions import StepRecording

    _Run = Callable[[Sequence[Any], RunMetadata | None, StepRecording | None], Awaitable[list[Array]]]


class SessionCallable:
    """A request to be called with values. `Session.make_callable` makes it; `handle` is its number in the session."""

    __slots__ = ("_num_feeds", "_run", "handle")

    def __init__(
        self,
        handle: int,
        num_feeds: int,
        run: _Run,
    ) -> None:

        self.handle = handle
        self._num_feeds = num_feeds
        self._run: _Run | None = run

    async def __call__(
        self,
        *values: npt.ArrayLike,
        metadata: RunMetadata | None = None,
        recording: StepRecording | None = None,
    ) -> list[Array]:
        """Runs one step; `values` are fed in the order of the feeds. Returns and raises as `Session.run`.

        Raises InvalidArgumentError for another number of values, and after `release`.
        """
        if self._run is None:
            raise InvalidArgumentError(f"Attempted to run callable after handle was released: {self.handle}")
        if len(values) != self._num_feeds:
            raise InvalidArgumentError(f"Expected {self._num_feeds} feed tensors, but got {len(values)}")
        return await self._run(values, metadata, recording)

    def release(self) -> None:
        """Refuses later calls; a running call goes on. May be called again."""
        self._run = None
