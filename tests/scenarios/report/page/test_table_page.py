"""The page of a table: its cells as they were given, and what a chart may show."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.scenarios import TableColumn, write_table_report
from partita.scenarios.report.page.html import page_bytes
from partita.scenarios.report.page.table_page import table_page
from tests.scenarios.report.page.pages import read_page

COLUMNS = [TableColumn("gpus", "GPUs"), TableColumn("ns", "step time", "ns"), TableColumn("note", "note")]
CELLS = st.none() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(st.integers(1, 99), CELLS, st.none() | st.text(max_size=5)), max_size=20))
def test_a_table_comes_back_cell_by_cell(rows: list[tuple[int, int | float | None, str | None]]) -> None:
    """A column of numbers and gaps is one of numbers."""
    page = table_page("sweep", COLUMNS, rows, axes=["gpus"], values=["ns"])
    document = read_page(page_bytes(page)).document
    table = document["table"]
    assert (document["kind"], document["title"], document["runs"]) == ("table", "sweep", [])
    assert table["rows"] == [list(row) for row in rows]
    assert (table["axes"], table["values"]) == (["gpus"], ["ns"])
    numeric = {column["key"]: column["numeric"] for column in table["columns"]}
    assert numeric["gpus"] == bool(rows)
    assert numeric["ns"] == any(row[1] is not None for row in rows)
    assert not numeric["note"]


@pytest.mark.parametrize(
    ("columns", "rows", "axes", "words"),
    [
        (COLUMNS, [(1, 2)], ["gpus"], "row 0 has 2 cells and the table 3 columns"),
        (COLUMNS, [(1, float("nan"), "")], ["gpus"], "row 0, 'ns': nan is not finite"),
        (COLUMNS, [], ["tp"], "axis 'tp' is no column"),
        ([*COLUMNS, COLUMNS[0]], [], ["gpus"], "two columns of one key"),
    ],
)
def test_a_table_that_no_page_shows_is_refused(
    columns: list[TableColumn], rows: list[tuple[object, ...]], axes: list[str], words: str, tmp_path: Path
) -> None:
    """With what is wrong; and nothing is written."""
    with pytest.raises(InvalidArgumentError, match=words):
        write_table_report(columns, rows, tmp_path / "t.html", axes=axes, values=["ns"])  # type: ignore[arg-type]  # rows that no caller may give
    assert not list(tmp_path.iterdir())
