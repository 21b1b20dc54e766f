"""DecodeCSV: records of comma-separated fields as one tensor per column (RFC 4180).

An empty field takes the column's default, and is an error if there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array, DataType, dtype_name, numpy_dtype
from ..checks import require
from ..registry import Construction, Kernel, kernel, outputs
from .each_string import strings

_QUOTE, _ENDS = ord('"'), b"\r\n"

FieldReader = Callable[[bytes, int, str], Any]  # Any: the type depends on the column
"""takes the text of a field, its number and the name of its record for errors, and gives its value"""


def _quoted(record: bytes, start: int, delimiter: bytes) -> tuple[bytes, int]:
    """The field after an opening quote, and the position of the delimiter (or the end) after it."""
    field, i = bytearray(), start
    while i < len(record):
        if record[i] != _QUOTE:
            field.append(record[i])
            i += 1
        elif record[i + 1 : i + 2] == b'"':
            field.append(_QUOTE)
            i += 2
        else:
            after = record[i + 1 : i + 2]
            require(after in (b"", delimiter), "Quote inside a string has to be escaped by another quote")
            return bytes(field), i + 1
    raise InvalidArgumentError("Quoted field has to end with quote followed by delim or end")


def _plain(record: bytes, start: int, delimiter: bytes, quotes: bool) -> tuple[bytes, int]:
    end = record.find(delimiter, start)
    end = len(record) if end < 0 else end
    field = record[start:end]
    wrong = any((quotes and b == _QUOTE) or b in _ENDS for b in field)
    require(not wrong, "Unquoted fields cannot have quotes/CRLFs inside")
    return field, end


def split_record(record: bytes, delimiter: bytes, quotes: bool) -> list[bytes]:
    """The fields of one record; an empty record has none. InvalidArgumentError for misplaced quotes."""
    fields: list[bytes] = []
    i = 0
    while i < len(record):
        if record[i] in _ENDS:
            i += 1
            continue
        quoted = quotes and record[i] == _QUOTE
        field, i = _quoted(record, i + 1, delimiter) if quoted else _plain(record, i, delimiter, quotes)
        fields.append(field)
        i += 1
    return [*fields, b""] if record.endswith(delimiter) and i == len(record) else fields


def _whole(dtype: np.dtype[Any]) -> Callable[[bytes], Any]:  # numpy's dtypes are generic
    limits = np.iinfo(dtype)

    def parse(field: bytes) -> int:
        value = int(field)
        if not limits.min <= value <= limits.max or b"_" in field:
            raise ValueError
        return value

    return parse


def _number(field: bytes) -> float:
    """A number as C reads it: hexadecimal allowed, Python's underscores not."""
    text = field.decode("ascii")
    if "_" in text:
        raise ValueError
    return float.fromhex(text) if "x" in text.lower() else float(text)


def _parser(dtype: DataType) -> Callable[[bytes], Any]:  # Any: the type depends on the column
    if dtype == DataType.STRING:
        return bytes
    target = numpy_dtype(dtype)
    return _whole(target) if target.kind == "i" else lambda field: target.type(_number(field))


def check_defaults(defaults: Sequence[Array]) -> None:
    """One default per column, or none: a scalar, or a vector of at most one element."""
    for k, default in enumerate(defaults):
        require(np.ndim(default) <= 1, "Each record default should be at most rank 1")
        size = np.size(default)
        require(size < 2, f"There should only be 1 default per field but field {k} has {size}")


def column(dtype: DataType, default: Array, missing: bytes) -> FieldReader:
    """Reads the fields of a column; empty ones and those that are `missing` take the default, if there is one."""
    parse = _parser(dtype)

    def value_of(field: bytes, k: int, record: str) -> Any:  # Any: the column's type
        if field in (b"", missing):
            require(np.size(default) == 1, f"Field {k} is required but missing in {record}!")
            return np.asarray(default).reshape(-1)[0]
        try:
            return parse(field)
        except ValueError:
            text = field.decode(errors="replace")
            raise InvalidArgumentError(f"Field {k} in {record} is not a valid {dtype_name(dtype)}: {text}") from None

    return value_of


@kernel("DecodeCSV")
def decode_csv(node: Construction) -> Kernel:
    """One tensor per column, or per selected column."""
    delimiter, quotes, missing = (node.attrs[key] for key in ("field_delim", "use_quote_delim", "na_value"))
    chosen, types = node.attrs["select_cols"], node.output_types
    require(len(delimiter) == 1, "field_delim should be only 1 char")
    rising = all(a < b for a, b in pairwise(chosen))
    require(rising and all(k >= 0 for k in chosen), "select_cols should be strictly increasing indices")
    require(not chosen or len(chosen) == len(types), "select_cols should match output size")

    def fields_of(record: bytes, i: int) -> list[bytes]:
        fields = split_record(record, delimiter, quotes)
        if chosen:
            fields = [fields[k] for k in chosen if k < len(fields)]
        if len(fields) != len(types):
            raise InvalidArgumentError(f"Expect {len(types)} fields but have {len(fields)} in record {i}")
        return fields

    def run(records: Array, *defaults: Array) -> Any:  # one value or a tuple
        check_defaults(defaults)
        shape = np.shape(records)
        rows = [fields_of(record, i) for i, record in enumerate(np.asarray(records).reshape(-1).tolist())]
        columns = []
        for k, default in enumerate(defaults):
            value_of = column(types[k], default, missing)
            values = [value_of(row[k], k, f"record {i}") for i, row in enumerate(rows)]
            text = types[k] == DataType.STRING
            columns.append(strings(values, shape) if text else np.array(values, numpy_dtype(types[k])).reshape(shape))
        return outputs(columns)

    return run
