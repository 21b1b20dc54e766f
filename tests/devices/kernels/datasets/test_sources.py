"""What pipelines begin with: tensors, rows, ranges, sparse rows, and files."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.actors import open_session
from partita.errors import DataLossError, InvalidArgumentError, NotFoundError, OutOfRangeError, PartitaError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
from partita.graph.formats.record_file import framed
from partita.graph.protos import GraphDef
from tests.devices.kernels.datasets.pipelines import INT64, Pipeline, all_of


@settings(max_examples=10)
@given(st.integers(-5, 5), st.integers(-5, 5), st.sampled_from([-2, -1, 1, 3]))
async def test_a_range_is_pythons(start: int, stop: int, step: int) -> None:
    """Upwards and downwards."""
    p = Pipeline()
    dataset = p.op("RangeDataset", np.int64(start), np.int64(stop), np.int64(step))
    assert await all_of(p.iterated(dataset)) == list(range(start, stop, step))


async def test_rows_are_those_of_all_components() -> None:
    """Components of different lengths, and scalars, are refused with TensorFlow's words."""
    for other, message in ((np.arange(2), "same size in the 0th dimension"), (np.int64(1), "at least 1-dimensional")):
        p = Pipeline()
        rows = p.b.op("TensorSliceDataset", [np.arange(3), np.arange(3) * 10], attrs=pair())[0]
        assert await all_of(p.iterated(p.mapped("MapDataset", rows, "plus"))) == [0, 11, 22]
        q = Pipeline()
        wrong = q.b.op("TensorSliceDataset", [np.arange(3), other], attrs=pair())[0]
        with pytest.raises(InvalidArgumentError, match=message):
            await all_of(q.iterated(q.mapped("MapDataset", wrong, "plus")))


def pair() -> dict[str, Any]:
    return {"Toutput_types": [INT64, INT64], "output_shapes": [(), ()]}


async def test_sparse_rows_include_empty_ones() -> None:
    """The values of each row of a sparse tensor."""
    p = Pipeline()
    indices, values = np.array([[0, 1], [2, 0], [2, 2]]), np.array([4, 5, 6])
    rows = p.b.op("SparseTensorSliceDataset", indices, values, np.array([4, 3]))[0]
    p.add_function("second", lambda b, x: b.op("Identity", x[1])[0], 3)
    dataset = p.mapped("MapDataset", rows, "second", shapes=[(None,)])
    assert await all_of(p.iterated(dataset, (None,))) == [[4], [], [5, 6], []]


def of_files(p: Pipeline, op: str, *inputs: Any) -> GraphDef:
    """The graph whose elements are strings of files."""
    dataset: Tensor = p.b.op(op, *inputs)[0]
    attrs: dict[str, Any] = {"output_types": [DataType.STRING], "output_shapes": [()]}
    handle = p.b.op("IteratorV2", attrs={**attrs, "shared_name": b"", "container": b""})[0]
    p.b.op("MakeIterator", dataset, handle, name="init")
    p.b.op("IteratorGetNext", handle, name="next", attrs=attrs)
    return p.b.graph_def()


def names(*paths: Path) -> np.ndarray[Any, np.dtype[Any]]:
    return np.array([str(path).encode() for path in paths], object)


async def test_lines_have_no_ends(tmp_path: Path) -> None:
    """TensorFlow 2.21 gives these lines: an empty one counts, carriage returns do not."""
    text, other = tmp_path / "a", tmp_path / "b"
    text.write_bytes(b"one\ntw\ro\r\n\nfour")
    other.write_bytes(zlib.compress(b"x\n"))
    for files, compression, expected in (
        (names(text), b"", [b"one", b"two", b"", b"four"]),
        (names(other, other), b"ZLIB", [b"x", b"x"]),
    ):
        assert await all_of(of_files(Pipeline(), "TextLineDataset", files, compression, np.int64(0))) == expected
    with pytest.raises(InvalidArgumentError, match=r"Unsupported compression_type."):
        await all_of(of_files(Pipeline(), "TextLineDataset", names(text), b"LZ4", np.int64(0)))


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
async def test_records_are_those_that_were_written(tmp_path: Path, compression: str) -> None:
    """Of several files, in order, empty records included."""
    packs: dict[str, Callable[[bytes], bytes]] = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}
    pack = packs[compression]
    records, paths = [b"one", b"", b"three" * 99], [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_bytes(pack(b"".join(map(framed, records))))
    inputs = names(*paths), compression.encode(), np.int64(0)
    assert await all_of(of_files(Pipeline(), "TFRecordDataset", *inputs)) == records * 2
    if not compression:
        offsets = np.array([len(framed(b"one")), 0])
        assert await all_of(of_files(Pipeline(), "TFRecordDatasetV2", *inputs, offsets)) == records[1:] + records


async def test_records_of_one_length_stand_between_header_and_footer(tmp_path: Path) -> None:
    """A body that is no whole number of records is refused with TensorFlow's words."""
    path = tmp_path / "a"
    path.write_bytes(b"HHabcdefF")
    lengths = [np.int64(n) for n in (2, 3, 1, 0)]
    assert await all_of(of_files(Pipeline(), "FixedLengthRecordDatasetV2", names(path), *lengths, b"")) == [
        b"abc",
        b"def",
    ]
    lengths[1] = np.int64(4)
    with pytest.raises(InvalidArgumentError, match="has body length 6 bytes, which is not an exact multiple"):
        await all_of(of_files(Pipeline(), "FixedLengthRecordDataset", names(path), *lengths))


@pytest.mark.parametrize(
    ("content", "compression", "error", "message"),
    [
        (None, b"", NotFoundError, "No such file or directory"),
        (b"no record at all", b"", DataLossError, "Is this even a TFRecord file"),
        (framed(b"one")[:-1], b"", DataLossError, "truncated record at 0"),
        (b"text", b"GZIP", DataLossError, r"inflate\(\) failed with error -3: incorrect header check"),
    ],
)
async def test_unreadable_files_are_refused(
    tmp_path: Path, content: bytes | None, compression: bytes, error: type[PartitaError], message: str
) -> None:
    """The messages are TensorFlow's."""
    path = tmp_path / "a"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=message):
        await all_of(of_files(Pipeline(), "TFRecordDataset", names(path), compression, np.int64(0)))


async def test_a_list_has_an_element_for_every_run_of_inputs() -> None:
    """As many inputs as an element has components; shapes of elements may differ."""
    b = GraphBuilder()
    attrs: dict[str, Any] = {"output_types": [DataType.INT64, DataType.FLOAT], "output_shapes": [(), (None,)]}
    components = [np.int64(1), np.zeros(2, np.float32), np.int64(3), np.ones(1, np.float32)]
    types = {"Tinput_types": [DataType.INT64, DataType.FLOAT] * 2}
    handle = b.op("IteratorV2", attrs={**attrs, "shared_name": b"", "container": b""})[0]
    b.op("MakeIterator", b.op("ListDataset", components, attrs={**attrs, **types})[0], handle, name="init")
    b.op("IteratorGetNext", handle, name="next", attrs=attrs)
    async with open_session(b.graph_def(), "cpu:1") as session:
        await session.run([], targets=["init"])
        found = [[value.tolist() for value in await session.run(["next:0", "next:1"])] for _ in range(2)]
        with pytest.raises(OutOfRangeError, match="End of sequence"):
            await session.run("next")
    assert found == [[1, [0.0, 0.0]], [3, [1.0]]]
