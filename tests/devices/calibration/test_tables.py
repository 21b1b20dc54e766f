"""Tables are read with types, and what is wrong with one is said with file, line and remedy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partita.devices.calibration.tables import ColumnSpec, read_table
from partita.errors import InvalidArgumentError, NotFoundError

COLUMNS = [ColumnSpec("system"), ColumnSpec("m", "count"), ColumnSpec("latency_ms", "positive")]


def _file(folder: Path, text: str) -> Path:
    path = folder / "rows.csv"
    path.write_text(text, "utf-8")
    return path


def test_columns_have_types_and_rows_their_lines(tmp_path: Path) -> None:
    """Comments and empty lines are no rows but count as lines; other columns stay texts."""
    table = read_table(_file(tmp_path, "# a, b\nsystem,m,latency_ms,x\n\na,8,0.5,q\n# c\nb,9,1e-3,r\n"), COLUMNS)
    assert table.texts("system") == ("a", "b")
    assert table.counts("m").tolist() == [8, 9]
    assert table.floats("latency_ms").tolist() == [0.5, 0.001]
    assert table.lines == (4, 6)
    assert table.texts("x") == ("q", "r")


@pytest.mark.parametrize("header", ["# GPUs,batch", "# GPUs,batch,time (ms)"])
def test_a_header_may_begin_like_a_comment(tmp_path: Path, header: str) -> None:
    """A line that begins with # and holds the documented columns is the header."""
    row = ",".join("8" for _ in header.split(","))
    table = read_table(
        _file(tmp_path, f"# source: a paper\n{header}\n{row}\n"),
        [
            ColumnSpec("# GPUs", "count"),
            ColumnSpec("batch", "count"),
            ColumnSpec("time (ms)", "positive", needed=False),
        ],
    )
    assert table.counts("# GPUs").tolist() == [8]
    assert table.lines == (3,)


def test_measured_columns_may_be_empty(tmp_path: Path) -> None:
    """An empty cell is NaN where the column says so."""
    columns = [*COLUMNS[:2], ColumnSpec("latency_ms", "positive", may_be_empty=True)]
    assert np.isnan(read_table(_file(tmp_path, "system,m,latency_ms\na,8,\n"), columns).floats("latency_ms")).all()


def test_whole_numbers_may_be_0(tmp_path: Path) -> None:
    """A count begins at 1, a whole number at 0."""
    file = _file(tmp_path, "system,window,latency_ms\na,0,1\n")
    assert read_table(file, [ColumnSpec("window", "whole")]).counts("window").tolist() == [0]
    with pytest.raises(InvalidArgumentError, match="window = '0' must be a whole number from 1"):
        read_table(file, [ColumnSpec("window", "count")])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("system,m,latency_us\na,8,1\n", "rows.csv:1: the column 'latency_us' has another unit than the documented"),
        ("system,m,latency\na,8,1\n", "rows.csv:1: the column 'latency' has another unit"),
        ("sistem,m,latency_ms\na,8,1\n", "rows.csv:1: the column 'system' is missing; did you mean 'sistem'?"),
        ("system,m,latency_ms\na,8,0\n", "rows.csv:2: latency_ms = '0' must be above 0"),
        ("system,m,latency_ms\na,8,-1\n", "rows.csv:2: latency_ms = '-1' must be above 0"),
        ("system,m,latency_ms\na,8,fast\n", "rows.csv:2: latency_ms = 'fast' is no number"),
        ("system,m,latency_ms\na,8,inf\n", "rows.csv:2: latency_ms = 'inf' is not finite"),
        ("system,m,latency_ms\na,8.5,1\n", "rows.csv:2: m = '8.5' must be a whole number"),
        ("system,m,latency_ms\n,8,1\n", "rows.csv:2: 'system' is empty"),
        ("system,m,latency_ms\na,8\n", "rows.csv:2: 2 cells, but the header has 3 columns"),
        ("system,m,m,latency_ms\na,8,8,1\n", "rows.csv:1: there are two columns 'm'"),
        ("system,m,latency_ms\n", "rows.csv:1: 0 rows are too few"),
        ("# nothing\n", "rows.csv:1: the file has no header"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, text: str, says: str) -> None:
    """Each mistake is an error that begins with file and line."""
    with pytest.raises(InvalidArgumentError) as caught:
        read_table(_file(tmp_path, text), COLUMNS)
    assert says in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """A missing file is named."""
    with pytest.raises(NotFoundError, match="cannot be read"):
        read_table(tmp_path / "none.csv", COLUMNS)
