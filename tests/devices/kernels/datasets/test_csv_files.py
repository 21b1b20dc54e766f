"""CSVDataset: what TensorFlow 2.21 reads from files of comma-separated fields."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import InvalidArgumentError, OutOfRangeError
from partita.graph import GraphBuilder
from partita.graph.dtypes import from_numpy

NUMBER, TEXT = np.array([7], np.int32), np.array([b"d"], object)
END, HEADER = "end", "Can't read header of file"
ESCAPED = "Quote inside a string has to be escaped by another quote"
UNQUOTED = "Unquoted fields cannot have quotes inside"
UNCLOSED = "Reached end of file without closing quoted field in record"


async def read(paths: list[Path], defaults: tuple[Any, ...] = (NUMBER, TEXT), **inputs: Any) -> list[Any]:
    """The elements of the files, messages in place of those that raise, and what ends them."""
    of: dict[str, Any] = {"compression": b"", "buffer": 1, "header": False, "delimiter": b",", "quotes": True}
    of |= {"missing": b"", "select": [], "exclude": []} | inputs
    b = GraphBuilder()
    types = [from_numpy(d) for d in defaults]
    attrs: dict[str, Any] = {"output_types": types, "output_shapes": [()] * len(types)}
    flags = np.bool_(of["header"]), of["delimiter"], np.bool_(of["quotes"]), of["missing"]
    select, exclude = (np.array(of[key], np.int64) for key in ("select", "exclude"))
    names = np.array([str(path).encode() for path in paths], object)
    start = names, of["compression"], np.int64(of["buffer"])
    dataset = b.op("CSVDatasetV2", *start, *flags, select, list(defaults), exclude, attrs=attrs)[0]
    handle = b.op("IteratorV2", attrs={**attrs, "shared_name": b"", "container": b""})[0]
    b.op("MakeIterator", dataset, handle, name="init")
    b.op("IteratorGetNext", handle, name="next", attrs=attrs)
    found: list[Any] = []
    async with open_session(b.graph_def(), "cpu:1") as session:
        await session.run([], targets=["init"])
        while END not in found:  # each round reads a record
            try:
                row = await session.run([f"next:{k}" for k in range(len(types))])
                found.append([np.asarray(value).item() for value in row])
            except OutOfRangeError:
                found.append(END)
            except InvalidArgumentError as error:
                found.append(str(error).split(" [")[0])
    return found


@pytest.mark.parametrize(
    ("content", "inputs", "expected"),
    [
        (b"1,a\r\n,\r3,b", {}, [[1, b"a"], [7, b"d"], [3, b"b"]]),
        (b'1,"a,b"\n2,"say ""hi"""\n3,"x\ny"\n"",""\n', {}, [[1, b"a,b"], [2, b'say "hi"'], [3, b"x\ny"], [7, b"d"]]),
        (b'1,"a"\n2,a"b\n', {"quotes": False}, [[1, b'"a"'], [2, b'a"b']]),
        (b'1,a"b,c"\n2,c\n', {}, [UNQUOTED, [2, b"c"]]),
        (b'1,"a"b"\n2,z\n', {}, [ESCAPED, [2, b"z"]]),
        (b'1,"ab"c\n2,c\n', {}, [UNCLOSED]),
        (b'x,"abc', {}, ["Field 0 in record is not a valid int32: x"]),
        (
            b"1,a,b\n\n1,c",
            {},
            ["Expect 2 fields but have more in record", "Expect 2 fields but have 1 in record", [1, b"c"]],
        ),
        (
            b'NA,"NA"\n1;b,c\n',
            {"missing": b"NA", "delimiter": b","},
            [[7, b"d"], "Field 0 in record is not a valid int32: 1;b"],
        ),
        (b" 1 ; a,b \n", {"delimiter": b";"}, [[1, b" a,b "]]),
        (b"1,2,3,4\n5,6\n", {"select": [1, 3]}, [[2, b"4"], "Expect 2 fields but have 1 in record"]),
        (b"1,2,3,4\n5,6,7,8,9\n", {"exclude": [1, 3]}, [[1, b"3"], "Expect 2 fields but have more in record"]),
        (b'a,"b\nc"\n1,x\n', {"header": True}, [[1, b"x"]]),
        (b"a,b", {"header": True}, []),
        (b"", {"header": True}, [HEADER]),
        (b"", {}, []),
    ],
)
async def test_records_are_tensorflows(
    tmp_path: Path, content: bytes, inputs: dict[str, Any], expected: list[Any]
) -> None:
    """TensorFlow 2.21 gives these; an error ends its record, and the next element is the record after it."""
    (tmp_path / "a").write_bytes(content)
    assert await read([tmp_path / "a"], **inputs) == [*expected, END]


async def test_a_column_without_default_is_required(tmp_path: Path) -> None:
    """A default is a vector of one element or none, or a scalar."""
    (tmp_path / "a").write_bytes(b"1,\n,3\n")
    found = await read([tmp_path / "a"], (np.array(4, np.int64), np.array([], np.float32)))
    assert found == ["Field 1 is required but missing in record!", [4, 3.0], END]


async def test_files_follow_one_another_and_may_be_compressed(tmp_path: Path) -> None:
    """Every file has a header of its own."""
    for name in "ab":
        (tmp_path / name).write_bytes(zlib.compress(b"h,i\n1," + name.encode()))
    found = await read([tmp_path / "a", tmp_path / "b"], compression=b"ZLIB", header=True)
    assert found == [[1, b"a"], [1, b"b"], END]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"buffer": 0}, "buffer_size should be positive"),
        ({"delimiter": b";;"}, "field_delim should be only 1 char"),
        ({"select": [3, 1]}, "select_cols should be strictly increasing indices"),
        ({"select": [-1, 1]}, "select_cols should be non-negative indices"),
        ({"select": [1]}, "select_cols should match output size"),
        ({"exclude": [3, 1]}, "exclude_cols should be strictly increasing indices"),
        ({"select": [0, 1], "exclude": [2]}, "Either select_cols or exclude_cols should be empty"),
    ],
)
async def test_what_cannot_be_read_is_refused(tmp_path: Path, inputs: dict[str, Any], message: str) -> None:
    """In TensorFlow's words, when the dataset is made."""
    with pytest.raises(InvalidArgumentError, match=message):
        await read([tmp_path / "a"], **inputs)
