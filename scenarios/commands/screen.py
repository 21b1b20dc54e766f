"""Output for the user: results on stdout, progress on stderr.

stdout has results only, so that it can be piped. Progress is shown for stages of work that take over a second, and only
if stderr is a terminal. On a terminal no line is wider than it: texts are wrapped between words, a table that is too
wide becomes a list of its cells, and one that is too long is cut, and says so. In a file or pipe nothing is wrapped or
cut, so that each line is whole; JSON never is. Nowhere do control characters of a name or a value come out as they are.

Whether stdout is a terminal decides the layout; FORCE_COLOR, NO_COLOR and TERM=dumb only decide about colours.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import isfinite
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...graph import Graph
from ...graph.display.progress import Progress, ProgressCallback, no_progress
from ...graph.display.visible import shortened, visible, visible_lines
from ...graph.dtypes import Array, dtype_name, from_numpy
from ..wrapping import terminal_width, wrapped
from .feeds import shape_text

_FOLDED = 12  # the least columns for texts that are folded
_ROWS = 40  # of a table on a terminal
_WIDTH = 80  # of pictures in a file or pipe
_OWN_NODES = 2  # source and sink, which every graph has
_SHOWN = 8  # elements of a value to show
_LISTED = 100  # larger values are not written to JSON
_SEE_ALL = "a pipe (| less) or --json has all"
_Item = TypeVar("_Item")
_kept: ContextVar[list[object] | None] = ContextVar("_kept", default=None)  # several threads may run commands


@contextmanager
def kept_documents() -> Iterator[list[object]]:
    """Inside the block commands with --json print nothing and show no progress: the list gets their documents."""
    documents: list[object] = []
    token = _kept.set(documents)
    try:
        yield documents
    finally:
        _kept.reset(token)


class Screen:
    """The two consoles of a command."""

    def __init__(self) -> None:
        self.width = terminal_width(sys.stdout)
        """columns of the terminal; None for a file or pipe"""
        self.out = _console(width=self.width)
        self.err = _console(stderr=True)

    @property
    def picture_width(self) -> int:
        """Columns for a picture: those of the terminal, or as many as a terminal usually has."""
        return self.width or _WIDTH

    def line(self, text: str = "") -> None:
        """Prints one line of the result."""
        self.text(visible(text))

    def text(self, text: str) -> None:
        """Prints a text of any number of lines, without colours."""
        text, width = visible_lines(text), self.width
        if width is not None:
            text = "\n".join(part for line in text.split("\n") for part in wrapped(line, width))
        self.out.file.write(f"{text}\n")

    def json(self, document: object) -> None:
        """Prints a JSON document, without wrapping or colours; inside `kept_documents` it is kept instead."""
        kept = _kept.get()
        if kept is not None:
            kept.append(document)
            return
        self.out.file.write(json.dumps(document, indent=2, allow_nan=False) + "\n")

    def some(self, items: Sequence[_Item], most: int = _ROWS) -> tuple[Sequence[_Item], str]:
        """What is shown of a list, and what is said of the others: on a terminal `most` items, else all."""
        if self.width is None or len(items) <= most:
            return items, ""
        return items[:most], f"... and {len(items) - most:,} more; {_SEE_ALL}"

    def listed(self, names: Sequence[str]) -> str:
        """Names on one line: all of them, on a terminal the first ones and how to see all."""
        names, others = self.some(names)
        return ", ".join(names) + (f", {others}" if others else "")

    def table(
        self, headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, least: Sequence[str] = ()
    ) -> None:
        """Prints a table; the first `left` columns are texts, the others numbers.

        On a terminal the words of headings stand below each other, texts are folded, and the columns `least`, which are
        numbers, are left out, as far as that is needed and enough; else each row becomes a list of its cells. Of a long
        table the first rows are printed.
        """
        some, others = self.some(rows)
        heads, cells = list(map(self._cell, headings)), [list(map(self._cell, row)) for row in some]
        if self.width is not None and _needed(heads, cells, left) > self.width:
            kept = self._fitting(heads, cells, left, least)
            if kept is None:
                self._list(heads, cells)
            else:
                self._aligned(*kept, left)
        else:
            self._aligned(heads, cells, left)
        if others:
            self.line(others)

    def _fitting(
        self, headings: list[str], rows: list[list[str]], left: int, least: Sequence[str]
    ) -> tuple[list[str], list[list[str]]] | None:
        """Headings of several lines, and the columns that fit the terminal; None if none of that is enough."""
        columns = list(zip(headings, *rows, strict=True))
        for number in range(len(least) + 1):
            shown, *kept = map(list, zip(*(it for it in columns if it[0] not in least[:number]), strict=True))
            stacked = [heading.replace(" ", "\n") for heading in shown]
            if _needed(stacked, kept, left) <= (self.width or 0):
                return stacked, kept
        return None

    def _cell(self, text: str) -> str:
        return visible(text) if self.width is None else shortened(visible(text))

    def _aligned(self, headings: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> None:
        """Prints cells in columns."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column, heading in enumerate(headings):
            table.add_column(heading, justify="left" if column < left else "right", overflow="fold", vertical="bottom")
        for row in rows:
            table.add_row(*map(Text, row))
        if self.width is None:  # no line is wrapped in a file or pipe
            self.out.width = max(_WIDTH, _needed(headings, rows, 0))
        self.out.print(table)

    def _list(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """The cells of each row below its first one, with their headings."""
        for row in rows:
            self.line(f"{headings[0]} {row[0]}".strip())
            for heading, cell in zip(headings[1:], row[1:], strict=True):
                if cell:
                    self.line(f"  {heading}  {cell}" if heading else f"  {cell}")

    @contextmanager
    def working(self, label: str, total: int | None = None, unit: str = "") -> Iterator[ProgressCallback]:
        """After a second, shows `label`, how many of `total` are done, and the time so far, if stderr is a terminal.

        The body hands the function that it gets over as `on_progress`, or calls it, from any thread.
        """
        if not self.err.is_terminal or _kept.get() is not None:
            yield no_progress
            return
        from ..progress import shown_late  # what draws it takes 20 ms to load

        with shown_late(self.err, Progress(label, 0, total, unit)) as on_progress:
            yield on_progress


def _console(width: int | None = None, *, stderr: bool = False) -> Console:
    """A console that prints texts as they are; without styles where the environment asks for none."""
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in ("dumb", "unknown")
    return Console(
        width=width,
        stderr=stderr,
        color_system=None if is_plain else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )


def of_nodes(*graphs: Graph) -> str:
    """The number of nodes of some graphs without source and sink, as "3,000 nodes"."""
    return f"{sum(graph.num_nodes - _OWN_NODES for graph in graphs):,} nodes"


def _needed(headings: Sequence[str], rows: Sequence[Sequence[str]], folded: int) -> int:
    """The columns that a table takes if the cells of the first `folded` ones may be folded."""
    widths = [
        max(map(cell_len, (*heading.split("\n"), *cells))) for heading, *cells in zip(headings, *rows, strict=True)
    ]
    return sum(min(width, _FOLDED) if k < folded else width for k, width in enumerate(widths)) + 2 * len(widths) - 2


def value_text(value: Array) -> str:
    """A tensor in one line: type, shape, and its elements, or range and mean of many numbers."""
    head = f"{dtype_name(from_numpy(value))} {shape_text(value.shape)}"
    if value.size == 0:
        return f"{head} empty"
    if value.size <= _SHOWN or value.dtype == object or value.dtype.kind in "bc":
        flat = value.reshape(-1)
        shown = ", ".join(_element(item) for item in flat[:_SHOWN])
        return f"{head} {shown}{', ...' if value.size > _SHOWN else ''}"
    # float64, since the mean of a narrow type may overflow.
    numbers = value.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    odd = f", {numbers.size - finite.size} not finite" if finite.size < numbers.size else ""
    if not finite.size:
        return f"{head}{odd.removeprefix(',')}"
    return f"{head} min {finite.min():.6g}, mean {_mean(finite):.6g}, max {finite.max():.6g}{odd}"


def _mean(numbers: npt.NDArray[np.float64]) -> float:
    """The mean; infinite if the sum overflows."""
    with np.errstate(over="ignore"):
        return float(numbers.mean())


def value_record(name: str, value: Array) -> dict[str, object]:
    """A tensor for JSON: `value` as nested lists if it is small, and min, mean and max of numbers.

    JSON has no numbers for "nan", "inf" and "-inf": they are texts. A complex number is a pair. A string is text, with
    backslash escapes for bytes that are not UTF-8.
    """
    record: dict[str, object] = {
        "name": name,
        "dtype": dtype_name(from_numpy(value)),
        "shape": list(value.shape),
        "value": _nested(value.tolist()) if value.size <= _LISTED else None,
    }
    ranges: dict[str, object] = dict.fromkeys(("min", "mean", "max", "not_finite"))
    if value.dtype != object and value.dtype.kind not in "bc" and value.size:
        numbers = value.astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        ranges["not_finite"] = int(numbers.size - finite.size)
        if finite.size:
            ranges |= {"min": float(finite.min()), "mean": _nested(_mean(finite)), "max": float(finite.max())}
    return record | ranges


def _nested(value: Any) -> Any:  # Any: JSON
    if isinstance(value, list):
        return [_nested(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, complex):
        return [_nested(value.real), _nested(value.imag)]
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, np.generic):  # an element type that another package added to numpy
        return _nested(float(value))
    return value if isinstance(value, (bool, int, str)) else str(value)


def _element(item: object) -> str:
    if isinstance(item, bytes):
        return repr(item)[1:]
    if isinstance(item, np.complexfloating):
        return f"{complex(item):.6g}"
    return (
        str(bool(item)) if isinstance(item, np.bool_) else f"{item:.6g}" if isinstance(item, np.floating) else str(item)
    )
