"""What long functions say of how far they are: each takes `on_progress`, a function of one `Progress`.

    graph_def_to_graph(data, on_progress=print)     Progress(label='importing', done=4096, total=20000, unit='nodes')
                                                    ...
                                                    Progress(label='importing', done=20000, total=20000, unit='nodes')

The calls come in the thread that does the work, which need not be that of the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """How many things are done, of how many; `total` is None where nobody knows. The label is what is being done.

    `left_s` is how long the rest will take, in seconds, where the things that are done say that.
    """

    label: str
    done: int
    total: int | None = None
    unit: str = ""
    left_s: float | None = None


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
