"""Lines that fit a terminal, by the columns that letters take: a line that is too wide goes on below, indented.

    wrapped("ops without kernel: none", 16)     ["ops without", "    kernel: none"]

Only this module decides where a line is broken, for help, errors and results. It imports little, so that help is fast.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import TextIO

from ..graph.display.visible import shortened, visible_lines

_HANG = 4  # columns by which the rest of a line is indented
_LEAST_ROOM = 8  # columns for words beside the indentation
_WORD = 240  # letters of a word of an error: a path, a name


def terminal_width(stream: TextIO) -> int | None:
    """The columns of the terminal that a stream writes to; None for a file or a pipe."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def wrapped(line: str, width: int) -> Iterator[str]:
    """The parts of a line, none wider than `width` columns; a word that is wider alone is broken."""
    from rich.cells import cell_len, chop_cells  # of rich, which help in a pipe does without

    if cell_len(line) <= width:
        yield line
        return
    indent = len(line) - len(line.lstrip(" "))
    lead = " " * max(0, min(indent, width - _HANG - _LEAST_ROOM, width // 2))
    part, following = lead, lead + " " * _HANG
    for blanks, word in re.findall("( *)([^ ]+)", line.strip(" ")):
        if cell_len(part + blanks + word) <= width:
            part += blanks + word
            continue
        if part.strip(" "):
            yield part
        pieces = chop_cells(word, width - len(following))
        yield from (following + piece for piece in pieces[:-1])
        part = following + pieces[-1]
    yield part


def fitted(text: str, stream: TextIO) -> str:
    """A text without control characters, and with lines no wider than the terminal that `stream` is.

    For a file or pipe lines stay as they are; on a terminal the middle of very long words is left out.
    """
    width, text = terminal_width(stream), visible_lines(text)
    if width is None:
        return text
    lines = (" ".join(shortened(word, _WORD) for word in line.split(" ")) for line in text.split("\n"))
    return "\n".join(part for line in lines for part in wrapped(line, width))
