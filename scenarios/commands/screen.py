"""What the user sees: results on stdout, progress on stderr.

Flows in: texts, tables, stages of work. Flows out: lines on the terminal. Always holds: stdout carries results only,
so that it can be piped; a stage that takes under a second says nothing, and none does where stderr is no terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Timer

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ...graph.dtypes import Array, dtype_name, from_numpy
from .feeds import shape_text

PATIENCE_S = 1.0
_SHOWN = 8  # elements that a value is shown with


class Screen:
    """The two consoles of a command."""

    def __init__(self) -> None:
        self.out = Console(highlight=False, soft_wrap=True)
        self.err = Console(stderr=True, highlight=False)

    def line(self, text: str = "") -> None:
        """One line of the result, as it is."""
        self.out.print(Text(text))

    def json(self, text: str) -> None:
        """A JSON document, without colours or wrapping, and nothing else."""
        self.out.file.write(text + "\n")

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
        """A table; the first `left` columns are texts, the others numbers."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column, heading in enumerate(headings):
            table.add_column(heading, justify="left" if column < left else "right", overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        if not self.out.is_terminal:  # a file or a pipe has room for whole names
            self.out.width = max(self.out.width, _needed(headings, rows))
        self.out.print(table)

    @contextmanager
    def working(self, label: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """Shows `label`, and how many of `total` are done, once the body has taken a second.

        The body reports how many more are done by calling what it gets, from any thread. Where stderr is no terminal
        nothing is shown.
        """
        columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
        progress = Progress(*columns[: 4 if total else 2], console=self.err, transient=True)
        task = progress.add_task(label, total=total)
        if not self.err.is_terminal:
            yield partial(progress.advance, task)
            return
        timer = Timer(PATIENCE_S, progress.start)
        timer.daemon = True
        timer.start()
        try:
            yield partial(progress.advance, task)
        finally:
            timer.cancel()
            timer.join()
            if progress.live.is_started:  # else it would print an empty line
                progress.stop()


def _needed(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) + 2 for column in zip(headings, *rows, strict=True))


def value_text(value: Array) -> str:
    """One line on a tensor: type, shape, and its elements or, of many numbers, their range and mean."""
    head = f"{dtype_name(from_numpy(value))} {shape_text(value.shape)}"
    if value.size == 0:
        return f"{head} empty"
    if value.size <= _SHOWN or value.dtype == object or value.dtype.kind in "bc":
        flat = value.reshape(-1)
        shown = ", ".join(_element(item) for item in flat[:_SHOWN])
        return f"{head} {shown}{', ...' if value.size > _SHOWN else ''}"
    # Twice the precision, since narrow types overflow in a mean.
    numbers = value.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    odd = f", {numbers.size - finite.size} not finite" if finite.size < numbers.size else ""
    if not finite.size:
        return f"{head}{odd.removeprefix(',')}"
    return f"{head} min {finite.min():.6g}, mean {finite.mean():.6g}, max {finite.max():.6g}{odd}"


def _element(item: object) -> str:
    if isinstance(item, bytes):
        return repr(item)[1:]
    if isinstance(item, np.complexfloating):
        return f"{complex(item):.6g}"
    return (
        str(bool(item)) if isinstance(item, np.bool_) else f"{item:.6g}" if isinstance(item, np.floating) else str(item)
    )
