"""Checkpoints of the first format are TensorFlow's byte for byte, and come back, whole or in parts."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import DataLossError, InternalError, InvalidArgumentError, NotFoundError, PartitaError
from partita.graph.dtypes import Array, DataType, from_numpy
from tests.devices.kernels.files.test_checkpoints import restore, text, texts
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.random_arrays import arrays

A = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
WHOLE = (
    "AAA5CjcKFQoBYRIIEgIIAhICCAIYASIECgAKAAoJCgFiEgAYCSIACg8KAWMSBBICCAIYAyICCgASAggBAAofAGEAAQECgH+AfxIdCgFhEgQKAAoA"
    "GhIqEAAAgD8AAABAAABAQAAAgEABBAxiAAEAEgoKAWISABoDUgEHAQcYYwABAQGAfxIWCgFjEgIKABoNOgsB/v//////////AQAAAAABAAAAAPX/"
    "ElgAAAAAAQAAAADA8qGwAAEDAQClAQAAAAABAAAAALj5p7yqAQi3AQ8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAV/uAiyR1R9s="
)
SLICED = (
    "AAA6CjgKIQoBYRIIEgIIBBICCAIYASIGCgIQAgoAIggKBAgCEAIKAAoPCgFiEgQSAggBGAEiAgoAEgIIAQAKIQBhAAEBAoCCgH8SHwoBYRIGCgIQ"
    "AgoAGhIqEAAAgD8AAABAAABAQAAAgEAGBCOCgoB/EiEKAWESCAoECAIQAgoAGhIqEAAAoEAAAMBAAADgQAAAAEEBBxFiAAEBAYB/Eg8KAWISAgoA"
    "GgYqBAAAEEEAAAAAAQAAAAA9kYisAAAAAAEAAAAAwPKhsAABAwEAuAEAAAAAAQAAAAA4WqTDvQEIygEPAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAFf7gIskdUfb"
)


def save_sliced(path: Path) -> None:
    """Rows of `A` in two slices, and another tensor."""
    parts = texts("4 2 0,2:-", "", "4 2 2,2:-")
    run("SaveSlices", text(path), texts("a", "b", "a"), parts, [A[:2], np.array([9], np.float32), A[2:]])


def read(path: Path | str, name: str, dtype: DataType = DataType.FLOAT) -> Any:
    """Runs Restore."""
    return run("Restore", text(path), text(name), dt=dtype)


def test_files_are_tensorflows(tmp_path: Path) -> None:
    """Bytes from TensorFlow 2.21; the order of the inputs does not matter."""
    run("Save", text(tmp_path / "x"), texts("c", "a", "b"), [np.array([1, -2], np.int32), A[:2], np.int64(7)])
    assert (tmp_path / "x").read_bytes() == b64decode(WHOLE)
    save_sliced(tmp_path / "y")
    assert (tmp_path / "y").read_bytes() == b64decode(SLICED)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "y"]


@given(x=arrays())
def test_what_is_saved_comes_back(tmp_path_factory: pytest.TempPathFactory, x: Array) -> None:
    """Tensors of every type that has a field for its elements, strings and empty ones too."""
    path = tmp_path_factory.mktemp("saved") / "x"
    run("Save", text(path), texts("a"), [x])
    back = read(path, "a", from_numpy(x))
    assert back.dtype == x.dtype
    np.testing.assert_array_equal(back, x)


@given(st.integers(0, 3), st.integers(1, 4))
def test_parts_are_put_together(tmp_path_factory: pytest.TempPathFactory, start: int, length: int) -> None:
    """From slices in one file and in several, by both ops that restore, and by the newer one."""
    length = min(length, 4 - start)
    folder, spec = tmp_path_factory.mktemp("parts"), f"4 2 {start},{length}:1,1"
    save_sliced(folder / "whole")
    for number, rows in enumerate((A[:2], A[2:])):
        part = texts(f"4 2 {2 * number},2:-")
        run("SaveSlices", text(folder / f"s-{number}-of-2"), texts("a"), part, [rows])
    for pattern in ("whole", "s-?-of-2"):
        np.testing.assert_array_equal(read(folder / pattern, "a"), A)
        np.testing.assert_array_equal(restore(folder / pattern, ["a"], [DataType.FLOAT]), A)
        got = check_shapes("RestoreSlice", text(folder / pattern), text("a"), text(spec), dt=DataType.FLOAT)
        np.testing.assert_array_equal(got, A[start : start + length, 1:])


def test_what_is_wrong_is_said_in_tensorflows_words(tmp_path: Path) -> None:
    """Missing files and tensors, other types and shapes, slices that are missing or overlap, damaged files."""
    save_sliced(tmp_path / "x")
    run("SaveSlices", text(tmp_path / "half"), texts("a"), texts("4 2 1,2:-"), [A[:2]])
    (tmp_path / "junk").write_bytes(b"x" * 100)

    def refused(kind: type[PartitaError], message: str, name: str, tensor: str, *spec: str) -> None:
        with pytest.raises(kind) as caught:
            restore(tmp_path / name, [tensor], [DataType.FLOAT], spec)
        assert caught.value.message == message

    files = f"Failed to find any matching files for {tmp_path}/no"
    refused(NotFoundError, f"Unsuccessful TensorSliceReader constructor: {files}", "no", "a")
    refused(NotFoundError, f'Tensor name "z" not found in checkpoint files {tmp_path}/x', "x", "z")
    shape = "Shape in shape_and_slice spec does not match the shape in the save file: [4,3], save file shape: [4,2]"
    refused(InvalidArgumentError, shape, "x", "a", "4 3 1,2:0,1")
    refused(InvalidArgumentError, "Error copying slice data", "half", "a")
    refused(InternalError, "Overlapping slices: existing slice = 1,2:-, new slice = 0,2:-", "[hx]*", "a")
    other = "perhaps your file is in a different file format and you need to use a different restore operator?"
    junk = f"{tmp_path}/junk: DATA_LOSS: not an sstable (bad magic number)"
    refused(DataLossError, f"Unable to open table file {junk}: {other}", "junk", "a")
    folder = f"{tmp_path}: FAILED_PRECONDITION: {tmp_path}; Is a directory"
    refused(DataLossError, f"Unable to open table file {folder}: {other}", ".", "a")
    damaged = bytearray((tmp_path / "x").read_bytes())
    damaged[85] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    found = f"the saved tensor slices at the beginning of the checkpoint file: {tmp_path}/damaged"
    refused(InternalError, f"Failed to find {found}", "damaged", "a")
    refused(NotFoundError, f"Unsuccessful TensorSliceReader constructor: {files}{'o' * 300}", f"no{'o' * 300}", "a")
    with pytest.raises(
        InvalidArgumentError, match="Expected to restore a tensor of type int64, got a tensor of type f"
    ):
        read(tmp_path / "x", "a", DataType.INT64)


def test_what_cannot_be_saved_is_refused(tmp_path: Path) -> None:
    """A slice of another size or saved twice, a missing folder; the file of before stays."""
    save_sliced(tmp_path / "x")
    for parts in (
        ("4 2 0,3:-", "4 2 0,2:-", "4 2 0,2:-"),
        ("5 2 0,2:-", "4 2 0,2:-", "4 2 2,2:-"),
        ("4 2 0,2:-", "", ""),
    ):
        with pytest.raises(InvalidArgumentError):
            run("SaveSlices", text(tmp_path / "x"), texts("a", "a", "b"), texts(*parts), [A[:2], A[:2], A[:2]])
    with pytest.raises(NotFoundError):
        run("Save", text(tmp_path / "no" / "x"), texts("a"), [A])
    np.testing.assert_array_equal(read(tmp_path / "x", "a"), A)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_names_are_scalars_and_fit_the_tensors() -> None:
    """Shape functions refuse the rest before a run."""
    with pytest.raises(InvalidArgumentError, match="Shape must be rank 0 but is rank 1"):
        shapes("Restore", (), (1,), dt=DataType.FLOAT)
    with pytest.raises(InvalidArgumentError, match="Dimension"):
        shapes("Save", (), (2,), [()], T=[DataType.FLOAT])
