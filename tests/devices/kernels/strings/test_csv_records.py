"""DecodeCSV undoes Python's writer, and refuses what TensorFlow refuses, in its words."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.strings.each_string import strings
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes

STRING, INT32, FLOAT = DataType.STRING, DataType.INT32, DataType.FLOAT
NONE = {STRING: strings([], (0,)), INT32: np.zeros(0, np.int32), FLOAT: np.zeros(0, np.float32)}


def decode(
    records: list[bytes], types: tuple[DataType, ...], defaults: list[Array] | None = None, **attrs: Any
) -> list[list[Any]]:
    """The columns of the records; no defaults unless given."""
    defaults_of_columns = [NONE[dtype] for dtype in types] if defaults is None else defaults
    columns = check_shapes("DecodeCSV", strings(records, (len(records),)), defaults_of_columns, OUT_TYPE=types, **attrs)
    return [column.tolist() for column in (columns if isinstance(columns, tuple) else (columns,))]


@given(st.lists(st.tuples(*[st.text('ab",;\n ', min_size=1, max_size=5)] * 2), min_size=1, max_size=4))
def test_decoding_undoes_writing(rows: list[tuple[str, str]]) -> None:
    """Fields may contain quotes, delimiters and line breaks."""
    records = []
    for row in rows:
        out = io.StringIO()
        csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="").writerow(row)
        records.append(out.getvalue().encode())
    assert decode(records, (STRING, STRING)) == [[row[k].encode() for row in rows] for k in range(2)]


def test_empty_fields_take_the_default() -> None:
    """Fields with the text for a missing value too."""
    defaults = [np.array([7], np.int32), np.array([1.5], np.float32), strings([b"x"], (1,))]
    assert decode([b"1,,", b",2,NA"], (INT32, FLOAT, STRING), defaults, na_value="NA") == [[1, 7], [1.5, 2], [b"x"] * 2]
    assert decode([b"1;2;3"], (INT32, FLOAT), field_delim=";", select_cols=[0, 2]) == [[1], [3]]
    assert decode([b"\r\na"], (STRING,)) == [[b"a"]]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b"1", "Expect 2 fields but have 1 in record 0"),
        (b"", "Expect 2 fields but have 0 in record 0"),
        (b",a", "Field 0 is required but missing in record 0!"),
        (b"x,a", "Field 0 in record 0 is not a valid int32: x"),
        (b"99999999999,a", "Field 0 in record 0 is not a valid int32: 99999999999"),
        (b'1,a"', "Unquoted fields cannot have quotes/CRLFs inside"),
        (b"1,a\n", "Unquoted fields cannot have quotes/CRLFs inside"),
        (b'1,"a"b', "Quote inside a string has to be escaped by another quote"),
        (b'1,"a', "Quoted field has to end with quote followed by delim or end"),
    ],
)
def test_wrong_records_are_refused(record: bytes, message: str) -> None:
    """The error has TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match=message):
        decode([record], (INT32, STRING))


@pytest.mark.parametrize("attrs", [{"select_cols": [1, 0]}, {"field_delim": ";;"}, {"select_cols": [1]}])
def test_wrong_attrs_are_refused(attrs: dict[str, Any]) -> None:
    """Columns out of order or too few, and long delimiters."""
    with pytest.raises(InvalidArgumentError):
        decode([b"1,a"], (INT32, STRING), **attrs)
