"""Tables: columns, what is printed, and files that others read back."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.scenarios import SweepRow, SweepTable
from partita.scenarios.sweeps.results import ResultValue
from partita.scenarios.sweeps.table_files import json_document, table_csv
from tests.graph.display.checked_html import checked_texts

CELLS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=6)
RESULTS = st.dictionaries(st.sampled_from(["x", "y", "=z"]), CELLS, max_size=3)


def table_of(results: list[Mapping[str, ResultValue]], errors: Mapping[int, str] | None = None) -> SweepTable:
    """A row for each mapping, with its number as axis."""
    told = errors or {}
    return SweepTable(
        ("n",),
        tuple(SweepRow({"n": n}, {} if n in told else row, told.get(n), f"h{n}") for n, row in enumerate(results)),
    )


SMALL = table_of([{"x": 1, "t": "=1+1"}, {"x": 0.5, "u": True}, {"x": 2}], {2: "ValueError: no"})


def test_columns_are_axes_results_and_the_error() -> None:
    """Results in the order in which rows first have them; a cell that a row lacks is None."""
    assert SMALL.columns == ("n", "x", "t", "u", "error")
    assert SMALL.cells() == [
        [0, 1, "=1+1", None, None],
        [1, 0.5, None, True, None],
        [2, None, None, None, "ValueError: no"],
    ]
    assert (SMALL.column("x"), SMALL.column("n"), SMALL.column("error")) == (
        [1, 0.5, None],
        [0, 1, 2],
        [None, None, "ValueError: no"],
    )
    assert [row.axes["n"] for row in SMALL.failed] == [2]
    assert [row.hash for row in SMALL] == ["h0", "h1", "h2"]
    with pytest.raises(InvalidArgumentError, match="no column 'X'; did you mean 'x'"):
        SMALL.column("X")


def test_a_table_is_printed() -> None:
    """Without the column of errors where there are none."""
    assert repr(SMALL) == (
        "n    x     t     u           error\n"
        "0    1  =1+1\n"
        "1  0.5        True\n"
        "2                   ValueError: no\n"
        "3 rows, 1 with an error"
    )
    assert "error" not in repr(table_of([{"x": 1}]))


@given(
    st.lists(st.dictionaries(st.text(min_size=1, max_size=60), CELLS, max_size=6), min_size=1, max_size=60),
    st.integers(5, 100),
    st.integers(5, 60),
)
def test_what_is_printed_fits_the_terminal(results: list[Mapping[str, ResultValue]], width: int, height: int) -> None:
    """As far as a column is no wider than it, and a terminal has the lines that it usually has."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", str(width))
        patched.setenv("LINES", str(height))
        lines = repr(table_of(results)).split("\n")
    assert len(lines) <= max(height, 24)
    assert all(len(line) <= max(width, 40) for line in lines)
    assert all(line.isprintable() for line in lines)


def test_a_notebook_gets_escaped_html() -> None:
    """Nothing of a table is markup, and it is no larger than what a notebook is given of one thing."""
    hostile = table_of([{"<b>": "<script>alert(1)</script>", "x": "é" * 5000}] * 3000)
    html = hostile._repr_html_()
    assert "3,000 rows" in checked_texts(html)


@given(st.lists(RESULTS, min_size=1, max_size=5))
def test_json_has_every_cell(results: list[Mapping[str, ResultValue]]) -> None:
    """Infinite numbers as texts."""
    table = table_of(results)
    read = json.loads(json.dumps(json_document(table), allow_nan=False))
    assert (read["axes"], read["results"]) == (["n"], list(table.results))
    for row, cells in zip(read["rows"], table.cells(), strict=True):
        for name, cell in zip(table.columns, cells, strict=True):
            assert (float(row[name]) if isinstance(cell, float) else row[name]) == cell


@given(st.lists(RESULTS, min_size=1, max_size=5))
def test_no_text_of_csv_is_a_formula(results: list[Mapping[str, ResultValue]]) -> None:
    """Headings neither; numbers stay numbers, and other texts are themselves."""
    table = table_of(results)
    read = list(csv.reader(StringIO(table_csv(table), newline="")))
    expected: list[list[ResultValue]] = [list(table.columns), *table.cells()]
    for shown, cells in zip(read, expected, strict=True):
        for text, cell in zip(shown, cells, strict=True):
            if isinstance(cell, str):
                assert text in (cell, f"'{cell}")
                assert not text.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
            elif cell is not None:
                assert text == str(cell)


def test_files_of_the_same_table_are_the_same(tmp_path: Path) -> None:
    """Written whole, in three formats."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[parquet]'")
    for name in ("a", "b"):
        SMALL.to_csv(tmp_path / f"{name}.csv")
        SMALL.to_json(tmp_path / f"{name}.json")
        SMALL.to_parquet(tmp_path / f"{name}.parquet")
    for suffix in ("csv", "json", "parquet"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()
    assert (tmp_path / "a.csv").read_text() == ("n,x,t,u,error\n0,1,'=1+1,,\n1,0.5,,True,\n2,,,,ValueError: no\n")


def test_parquet_has_a_type_for_each_column(tmp_path: Path) -> None:
    """Whole numbers, floats where any is one, texts where kinds differ; what a row lacks is null."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install '.[parquet]'")
    table = table_of([{"i": 1, "f": 1, "m": 2, "b": True, "inf": float("inf")}, {"f": 0.5, "m": "x"}])
    table.to_parquet(tmp_path / "t.parquet")
    read = parquet.read_table(tmp_path / "t.parquet")
    assert read.to_pydict() == {
        "n": [0, 1],
        "i": [1, None],
        "f": [1.0, 0.5],
        "m": ["2", "x"],
        "b": [True, None],
        "inf": [float("inf"), None],
        "error": [None, None],
    }
    with pytest.raises(InvalidArgumentError, match="'x' has numbers beyond 64 bits"):
        table_of([{"x": 2**70}]).to_parquet(tmp_path / "large.parquet")


def test_pandas_has_the_columns() -> None:
    """In their order."""
    pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    frame = SMALL.to_pandas()
    assert tuple(frame.columns) == SMALL.columns
    assert list(frame["n"]) == [0, 1, 2]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the extra that has it; nothing is written."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UnimplementedError, match=r"pip install 'partita\[parquet\]'"):
        SMALL.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(UnimplementedError, match="pip install pandas"):
        SMALL.to_pandas()
    assert list(tmp_path.iterdir()) == []


def test_a_report_is_a_page(tmp_path: Path) -> None:
    """Of the whole table; numbers that are not finite are left out."""
    table = table_of([{"x": 1, "inf": float("inf"), "t": "text"}])
    table.to_report(tmp_path / "t.html", title="of n", command="partita sweep n.toml")
    assert "<title>of n</title>" in (tmp_path / "t.html").read_text()
    with pytest.raises(InvalidArgumentError, match=r"does not end in \.html"):
        table.to_report(tmp_path / "t.htm")
