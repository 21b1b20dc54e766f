"""The executor of a command, opened before it runs anything."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager

from ...executors.chosen import ExecutorChoice
from ..failure import configuring


@contextmanager
def opened_executor(where: ExecutorChoice) -> Iterator[Executor]:
    """The executor for the length of a block; ConfigurationError where it cannot be opened.

    What the block raises comes out as it is.
    """
    with ExitStack() as stack:
        with configuring():
            executor = stack.enter_context(where.opened())
        yield executor
