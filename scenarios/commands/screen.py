"""Output for the user: results on stdout, progress on stderr.

stdout has results only, so that it can be piped. Progress is shown for stages of work that take over a second, and only
if stderr is a terminal. On a terminal no line is wider than it: texts are wrapped between words, and a table that is
too wide becomes a list of its cells. In a file or pipe nothing is wrapped, so that each line is whole; JSON never is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...graph import Graph
from ...graph.dtypes import Array, dtype_name, from_numpy
from .feeds import shape_text

_INDENT = 4  # of the rest of a line that is wrapped
_FOLDED = 12  # the least columns for texts that are folded
_OWN_NODES = 2  # source and sink, which every graph has
_SHOWN = 8  # elements of a value to show
_LISTED = 100  # larger values are not written to JSON


class Screen:
    """The two consoles of a command."""

    def __init__(self) -> None:
        self.out = Console(highlight=False, soft_wrap=True)
        self.err = Console(stderr=True, highlight=False)

    def line(self, text: str = "") -> None:
        """Prints one line of the result."""
        self.text(text)

    def text(self, text: str) -> None:
        """Prints a text of any number of lines, without colours."""
        if self.out.is_terminal:
            text = "\n".join(part for line in text.split("\n") for part in self._wrapped(line))
        self.out.file.write(f"{text}\n")

    def _wrapped(self, line: str) -> Iterator[str]:
        """The parts of a line that are no wider than the terminal; those after the first are indented further."""
        if cell_len(line) <= self.out.width:
            yield line
            return
        lead = min(len(line) - len(line.lstrip()), self.out.width // 4)
        parts = Text(line.strip()).wrap(self.out, self.out.width - lead - _INDENT, overflow="fold")
        for number, part in enumerate(parts):
            yield " " * (lead + (_INDENT if number else 0)) + part.plain.rstrip()

    def json(self, document: object) -> None:
        """Prints a JSON document, without wrapping or colours."""
        self.out.file.write(json.dumps(document, indent=2, allow_nan=False) + "\n")

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
        """Prints a table; the first `left` columns are texts, the others numbers.

        On a terminal texts are folded where that is enough; else each row becomes a list of its cells.
        """
        if self.out.is_terminal and _needed(headings, rows, left) > self.out.width:
            self._list(headings, rows)
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column, heading in enumerate(headings):
            table.add_column(heading, justify="left" if column < left else "right", overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        if not self.out.is_terminal:  # no line is wrapped in a file or pipe
            self.out.width = max(self.out.width, _needed(headings, rows, 0))
        self.out.print(table)

    def _list(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """The cells of each row below its first one, with their headings."""
        for row in rows:
            self.line(f"{headings[0]} {row[0]}".strip())
            for heading, cell in zip(headings[1:], row[1:], strict=True):
                if cell:
                    self.line(f"  {heading}  {cell}" if heading else f"  {cell}")

    @contextmanager
    def working(self, label: str, total: int | None = None, unit: str = "") -> Iterator[Callable[[int], None]]:
        """After a second, shows `label`, how many of `total` are done, and the time so far, if stderr is a terminal.

        The body calls the function that it gets with the number of items done since the last call, from any thread.
        """
        if not self.err.is_terminal:
            yield _ignore
            return
        from ..progress import shown_late  # what draws it takes 20 ms to load

        with shown_late(self.err, label, total, unit) as advance:
            yield advance


def _ignore(_count: int) -> None:
    pass


def of_nodes(*graphs: Graph) -> str:
    """The number of nodes of some graphs without source and sink, as "3,000 nodes"."""
    return f"{sum(graph.num_nodes - _OWN_NODES for graph in graphs):,} nodes"


def _needed(headings: Sequence[str], rows: Sequence[Sequence[str]], folded: int) -> int:
    """The columns that a table takes if the cells of the first `folded` ones may be folded."""
    widths = [max(map(cell_len, column)) for column in zip(headings, *rows, strict=True)]
    return sum(min(width, _FOLDED) if k < folded else width for k, width in enumerate(widths)) + 2 * len(widths)


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
