"""The progress of a stage of work on a terminal: "⠋ importing 1,204 of 3,000 nodes, 1.2 s"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Timer

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

PATIENCE_S = 1.0


@contextmanager
def shown_late(console: Console, label: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """Shows progress if the block takes over a second; it gets a function that counts what is done."""
    columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.description}")]
    if total:
        columns.append(BarColumn(bar_width=20))
    progress = Progress(*columns, _Done(unit), console=console, transient=True)
    task = progress.add_task(label if total else f"{label},", total=total)
    timer = Timer(PATIENCE_S, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield partial(progress.advance, task)
    finally:
        timer.cancel()
        timer.join()
        if progress.live.is_started:  # stopping before the start would print an empty line
            progress.stop()


class _Done(ProgressColumn):
    """A column of the progress bar: "1,204 of 3,000 nodes, 1.2 s"."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        """The column of a task."""
        took = f"{task.elapsed or 0.0:.1f} s"
        if not task.total:
            return Text(took)
        return Text(f"{int(task.completed):,} of {int(task.total):,} {self._unit}".rstrip() + f", {took}")
