"""How long actors run: as long as a block of their user's code.

Flows in: what starts the actors and what ends them. Flows out: nothing. Always holds: when the block is over no actor
runs any more; what the block raises comes out as it was raised, not in a group.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def running(start: Callable[[trio.Nursery], None], end: Callable[[], None]) -> AsyncIterator[None]:
    """Within the block runs what `start` starts in a nursery; `end` is called after it, and must make that return."""
    failure: BaseException | None = None
    async with trio.open_nursery() as nursery:
        start(nursery)
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - kept from the nursery, which would wrap it in a group
            failure = error
        end()
    if failure is not None:
        raise failure
