"""CSV comes back as it was written, and no cell of it is a formula."""

from __future__ import annotations

import csv
from io import StringIO

from hypothesis import given, strategies as st

from partita.graph.display.spreadsheet import csv_text

TEXTS = st.text(alphabet=st.sampled_from("=+-@\t\r\n,\"' a1"), max_size=6)
CELLS = TEXTS | st.text(max_size=4) | st.integers() | st.floats(allow_nan=False) | st.none()


@given(st.lists(st.lists(CELLS, min_size=1, max_size=3), max_size=4))
def test_cells_come_back_and_are_no_formulas(rows: list[list[str | int | float | None]]) -> None:
    """A text is itself, or has an apostrophe before it; a number is its text, and None is empty."""
    read = list(csv.reader(StringIO(csv_text(rows), newline="")))
    for shown, cells in zip(read, rows, strict=True):
        for text, cell in zip(shown or [""], cells, strict=True):
            if isinstance(cell, str):
                begins = cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
                assert text == (f"'{cell}" if begins else cell)
            else:
                assert text == ("" if cell is None else str(cell))


def test_lines_end_in_lf() -> None:
    """As other tools write them."""
    assert csv_text([["a", 1], ["b\r=1", None]]) == 'a,1\n"b\r=1",\n'
