"""What long functions say of how far they are: each takes `on_progress`, a function of one `Progress`.

    graph_def_to_graph(data, on_progress=print)     Progress(label='importing', done=4096, total=20000, unit='nodes')
                                                    ...
                                                    Progress(label='importing', done=20000, total=20000, unit='nodes')

The calls come in the thread that does the work, which need not be that of the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self


class Progress(NamedTuple):
    """How many things are done, of how many; `total` is None where nobody knows. The label is what is being done."""

    label: str
    done: int
    total: int | None = None
    unit: str = ""


class TimedProgress(Progress):
    """Progress of work whose things say how long the rest of them will take: `left_s`, in seconds."""

    left_s: float

    def __new__(cls, label: str, done: int, total: int, unit: str, left_s: float) -> Self:
        """The time left is no item: what is told has four items, as ever."""
        progress = super().__new__(cls, label, done, total, unit)
        progress.left_s = left_s
        return progress


ProgressCallback = Callable[[Progress], object]
"""what `on_progress` takes; what it returns is not looked at, and what it raises ends the work"""


def no_progress(progress: Progress) -> None:
    """The callback of those who do not ask."""


def counted(on_progress: ProgressCallback, label: str, total: int | None = None, unit: str = "") -> Callable[[], None]:
    """A function that is called once for each thing that is done."""
    done = 0

    def one_more() -> None:
        nonlocal done
        done += 1
        on_progress(Progress(label, done, total, unit))

    return one_more
