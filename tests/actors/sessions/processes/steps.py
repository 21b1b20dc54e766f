"""Steps that a test disturbs while they wait."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import numpy.typing as npt
import pytest
import trio

from partita.actors import Session
from partita.errors import PartitaError
from partita.graph.dtypes import Array
from tests.hangs import all_waiting


@asynccontextmanager
async def failing(
    session: Session, fetch: str, kind: type[PartitaError], match: str | None = None
) -> AsyncIterator[list[PartitaError]]:
    """A block that begins when a step waits, and after which the step has failed with an error, which the list has."""
    errors: list[PartitaError] = []

    async def run() -> None:
        with pytest.raises(kind, match=match) as caught:
            await session.run(fetch)
        errors.append(caught.value)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await all_waiting()
        yield errors


@asynccontextmanager
async def waiting(
    session: Session, fetch: str, feeds: Mapping[str, npt.ArrayLike] | None = None
) -> AsyncIterator[list[Array]]:
    """A block that begins when a step waits, and after which the list has what it has fetched."""
    fetched: list[Array] = []

    async def run() -> None:
        fetched.extend(await session.run(fetch, feeds))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await all_waiting()
        yield fetched
