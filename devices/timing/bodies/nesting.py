"""Runs work that needs the results of other work of its kind, without Python's recursion.

A piece of work is a generator. It yields another one and gets its result, or the error that ended it:

    def height(tree: Tree) -> Nested[int]:
        heights = []
        for branch in tree.branches:
            heights.append((yield height(branch)))
        return 1 + max(heights, default=0)

    run_nested(height(tree))
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

from ....errors import PartitaError

T = TypeVar("T")
Nested: TypeAlias = Generator[Any, Any, T]  # Any: the type of a result depends on the work that was yielded


def run_nested(work: Nested[T]) -> T:
    """The result of work, or its error."""
    waiting: list[Nested[Any]] = [work]
    result: Any = None
    failed: PartitaError | None = None
    while True:
        try:
            inner = waiting[-1].send(result) if failed is None else waiting[-1].throw(failed)
        except StopIteration as done:
            waiting.pop()
            result, failed = done.value, None
            if not waiting:
                return result  # type: ignore[no-any-return]  # the last result is that of `work`
        except PartitaError as error:
            waiting.pop()
            if not waiting:
                raise
            failed = error
        else:
            waiting.append(inner)
            result = failed = None
