"""Rows of measurements: what a file may look like, and how it may be wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partita.devices.calibration.validation.rows import COUNT, TEXT, MeasuredRows, read_csv
from partita.errors import InvalidArgumentError

KEYS = {"system": TEXT, "m": COUNT}


def read(folder: Path, text: str, may_be_empty: bool = False) -> MeasuredRows:
    """The rows of a file with this text."""
    path = folder / "t.csv"
    path.write_text(text)
    return read_csv(path, KEYS, ["latency_ms"], may_be_empty=may_be_empty)


def test_columns_comments_and_places(tmp_path: Path) -> None:
    """Other columns and comments are skipped; keys are kept as printed, in the order of the file."""
    rows = read(tmp_path, "# made by hand\nm,latency_ms,note,system\n\n0008,0.50,x,a\n# pause\n16,1e0,,b\n")
    assert rows.texts == {"m": ("0008", "16"), "system": ("a", "b")}
    assert rows.keys["m"].tolist() == [8, 16]
    assert rows.measured["latency_ms"].tolist() == [0.5, 1.0]
    assert [place[-1] for place in rows.places] == ["4", "6"]


def test_a_header_may_begin_with_the_sign_of_comments(tmp_path: Path) -> None:
    """Where that is the name of a column."""
    path = tmp_path / "t.csv"
    path.write_text("# a comment, with a comma\n# GPUs,time (ms)\n8,2.5\n")
    rows = read_csv(path, {"# GPUs": COUNT}, ["time (ms)"], may_be_empty=False)
    assert rows.keys["# GPUs"].tolist() == [8]


def test_empty_times_are_for_rows_to_predict(tmp_path: Path) -> None:
    """They are NaN there and an error in a fit; taking the times away leaves the keys."""
    text = "system,m,latency_ms\na,1,\nb,2,3\n"
    assert np.isnan(read(tmp_path, text, may_be_empty=True).measured["latency_ms"]).tolist() == [True, False]
    with pytest.raises(InvalidArgumentError, match="latency_ms = ''"):
        read(tmp_path, text)
    bare = read(tmp_path, text, may_be_empty=True).unmeasured()
    assert np.isnan(bare.measured["latency_ms"]).all()
    assert bare.take(np.array([1])).texts == {"system": ("b",), "m": ("2",)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["t.csv", "1"]),
        ("system,m,latency_ms\n", ["t.csv", "1", "rows"]),
        ("system,latency_ms\na,1\n", ["t.csv", "1", "'m'"]),
        ("system,m,latency_us\na,1,1\n", ["'latency_us'", "unit", "'latency_ms'"]),
        ("system,m,m,latency_ms\na,1,1,1\n", ["'m'"]),
        ("system,m,latency_ms\na,1,1\na,1\n", ["3", "2 cells"]),
        ("system,m,latency_ms\na,1,0\n", ["2", "latency_ms = '0'", "above 0"]),
        ("system,m,latency_ms\na,1,-2\n", ["latency_ms = '-2'"]),
        ("system,m,latency_ms\na,1,soon\n", ["latency_ms = 'soon'"]),
        ("system,m,latency_ms\na,1,nan\n", ["latency_ms = 'nan'"]),
        ("system,m,latency_ms\na,0,1\n", ["m = '0'", "whole number"]),
        ("system,m,latency_ms\na,1.5,1\n", ["m = '1.5'"]),
        ("system,m,latency_ms\n,1,1\n", ["system", "empty"]),
    ],
)
def test_wrong_files(text: str, words: list[str], tmp_path: Path) -> None:
    """The error has file, line, and what is wrong."""
    with pytest.raises(InvalidArgumentError) as error:
        read(tmp_path, text)
    assert [word for word in words if word not in str(error.value)] == []
