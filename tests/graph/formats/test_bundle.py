"""Checkpoints contain what was saved, whole or in slices, equal TensorFlow's files, and are never half-written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from partita.errors import (
    DataLossError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PartitaError,
    UnimplementedError,
)
from partita.graph.dtypes import Array, DataType
from partita.graph.formats.bundle_merge import merge_bundles
from partita.graph.formats.bundle_reader import BundleReader
from partita.graph.formats.bundle_writer import BundleWriter
from partita.graph.formats.file_system import FileSystem
from partita.graph.ops.files.tensor_slices import TensorSlice, parse_shape_and_slice, parse_slice

A = np.arange(12, dtype=np.float32).reshape(3, 4)
STRINGS = np.array([b"x", b"", b"hello"], object)
DATA = "data-00000-of-00001"
# What TensorFlow 2.21 wrote for A, int32 7 and STRINGS, and for A and A + 100 as the parts of one tensor.
THREE_TENSORS = (
    (
        b"\0\0\6\x08\1\x1a\2\x08\1\0\1\x13a\x08\1\x12\x08\x12\2\x08\3\x12\2\x08\4(05\xd7\xa6U\xdc"
        b"\0\1\rb\x08\3\x12\0 0(\x045\xa7\x8d\x9d\x88\0\1\x11s\x08\7\x12\4\x12\2\x08\3 4(\r5\x17,\x82\x13"
        b"\0\0\0\0\1\0\0\0\0\xed\xe8K\x14\0\0\0\0\1\0\0\0\0\xc0\xf2\xa1\xb0\0\1\2t\0N\0\0\0\0\1\0\0\0\0\x94)\xd5zS\x08`\x0e"
    )
    + bytes(36)
    + b"W\xfb\x80\x8b$uG\xdb"
)
TWO_PARTS = (
    (
        b"\0\0\6\x08\1\x1a\2\x08\1\0\n\x13\0w\0\1\1\2\x80\x83\x80\x7f\x08\1\x12\x08\x12\2\x08\3\x12\2\x08\4(05\xd7\xa6U\xdc"
        b"\6\4\x15\x83\x83\x80\x7f\x08\1\x12\x08\x12\2\x08\3\x12\2\x08\4 0(05D\xaen\x85"
        b"\0\1\x1ew\x08\1\x12\x08\x12\2\x08\6\x12\2\x08\4:\6\n\2\x10\3\n\0:\x08\n\4\x08\3\x10\3\n\0"
        b"\0\0\0\0\1\0\0\0\0\xbeM\xaa,\0\0\0\0\1\0\0\0\0\xc0\xf2\xa1\xb0\0\1\2x\0o\0\0\0\0\1\0\0\0\0,\xedk8t\x08\x81\1\x0e"
    )
    + bytes(35)
    + b"W\xfb\x80\x8b$uG\xdb"
)


def three_tensors(folder: Path) -> str:
    """The prefix of a checkpoint of A, 7 and STRINGS."""
    prefix = str(folder / "ckpt")
    with BundleWriter(prefix) as writer:
        writer.add("a", A)
        writer.add("b", np.array(7, np.int32))
        writer.add("s", STRINGS)
    return prefix


def write(prefix: str, names: list[str]) -> None:
    """Writes a checkpoint of tensors of these names."""
    with BundleWriter(prefix) as writer:
        for name in names:
            writer.add(name, A + 1)


def parts(folder: Path, *texts: str, name: str = "parts", value: Array = A) -> str:
    """The prefix of a checkpoint of one tensor "w" in slices of the shape of `value`, each 100 more than the last."""
    prefix = str(folder / name)
    with BundleWriter(prefix) as writer:
        for number, text in enumerate(texts):
            writer.add_slice("w", *parse_shape_and_slice(text), value + 100 * number)
    return prefix


def test_files_are_those_of_tensorflow(tmp_path: Path) -> None:
    """Byte for byte."""
    prefix = three_tensors(tmp_path)
    assert Path(f"{prefix}.index").read_bytes() == THREE_TENSORS
    strings = bytes([1, 0, 5]) + bytes.fromhex("45ed6f98") + b"xhello"
    data = Path(f"{prefix}.{DATA}").read_bytes()
    assert data[:52] == A.tobytes() + np.int32(7).tobytes()
    assert (data[52:55], data[59:]) == (strings[:3], strings[7:])
    prefix = parts(tmp_path, "6 4 0,3:-", "6 4 3,3:-")
    assert Path(f"{prefix}.index").read_bytes() == TWO_PARTS
    assert Path(f"{prefix}.{DATA}").read_bytes() == A.tobytes() + (A + 100).tobytes()


KINDS = [np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32, np.complex128]
VALUES = st.sampled_from(KINDS).flatmap(lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, min_side=0)))
TEXTS = st.lists(st.binary(max_size=300), max_size=4).map(lambda items: np.array([*items, None], object)[:-1])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.dictionaries(st.text(min_size=1, max_size=6).filter(lambda n: n[0] != "\0"), VALUES | TEXTS, max_size=6))
def test_what_was_saved_is_restored(tmp_path: Path, tensors: dict[str, Array]) -> None:
    """Bit for bit, whatever the names and types."""
    prefix = str(tmp_path / "any")
    with BundleWriter(prefix) as writer:
        for name, value in tensors.items():
            writer.add(name, value)
    reader = BundleReader(prefix)
    assert reader.names() == sorted(tensors, key=str.encode)
    for name, value in tensors.items():
        restored = reader.read(name)
        assert (restored.dtype, restored.shape, reader.shape(name)) == (value.dtype, value.shape, value.shape)
        assert restored.tolist() == value.tolist() if value.dtype == object else restored.tobytes() == value.tobytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.data())
def test_any_part_is_read_from_any_parts(tmp_path: Path, data: st.DataObject) -> None:
    """A tensor saved in slices can be read whole, and in any other slices."""
    rows, columns = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5))
    value = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    cut = data.draw(st.integers(0, columns))
    prefix = str(tmp_path / "any")
    with BundleWriter(prefix) as writer:
        for start, end in ((0, cut), (cut, columns)):
            if start < end:
                part = TensorSlice((None, (start, end - start)))
                writer.add_slice("w", value.shape, part, value[:, start:end])
    reader = BundleReader(prefix)
    assert np.array_equal(reader.read("w"), value)
    first, begin = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
    height, width = data.draw(st.integers(1, rows - first)), data.draw(st.integers(1, columns - begin))
    restored = reader.read_slice("w", TensorSlice(((first, height), (begin, width))))
    assert np.array_equal(restored, value[first : first + height, begin : begin + width])


def test_parts_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """Missing slices when they are read, overlapping ones in any case, as in TensorFlow."""
    reader = BundleReader(parts(tmp_path, "6 4 0,3:-"))
    assert np.array_equal(reader.read_slice("w", parse_slice("1,2:-")), A[1:])
    for wanted in ("-:-", "2,2:-"):
        with pytest.raises(InvalidArgumentError, match="Does not have sufficient slices for partitioned tensor w"):
            reader.read_slice("w", parse_slice(wanted))
    with pytest.raises(InternalError, match="Overlapping slices: existing slice = 0,3:-, new slice = 2,3:-"):
        BundleReader(parts(tmp_path, "6 4 0,3:-", "6 4 2,3:-")).read_slice("w", parse_slice("0,1:-"))
    for second in ("7 4 3,3:-", "6 4 0,3:-"):
        with pytest.raises(InvalidArgumentError):
            parts(tmp_path, "6 4 0,3:-", second, name="refused")
    assert not list(tmp_path.glob("refused*"))


def _cut(data: bytes) -> bytes:
    return data[:20]


def _flipped(position: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


@pytest.mark.parametrize(
    ("file", "damage", "name", "kind", "message"),
    [
        (DATA, _flipped(0), "a", DataLossError, "Checksum does not match: stored 1577032937 vs. calculated on"),
        (DATA, _flipped(64), "s", DataLossError, "Checksum does not match"),
        (DATA, _flipped(52), "s", DataLossError, "The length checksum does not match"),
        (DATA, _cut, "a", OutOfRangeError, "Read less bytes than requested"),
        ("index", _flipped(3), "a", DataLossError, "(failed to seek to header entry): block checksum mismatch"),
        ("index", _flipped(100), "a", DataLossError, "block checksum mismatch"),
        ("index", _cut, "a", DataLossError, "file is too short to be an sstable"),
    ],
)
def test_damage_is_noticed(
    tmp_path: Path, file: str, damage: Callable[[bytes], bytes], name: str, kind: type[PartitaError], message: str
) -> None:
    """With TensorFlow's codes and words."""
    prefix = three_tensors(tmp_path)
    path = Path(f"{prefix}.{file}")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(kind) as caught:
        BundleReader(prefix).read(name)
    assert message in caught.value.message


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    """No checkpoint, no such tensor, no data file."""
    with pytest.raises(NotFoundError, match="Failed to find any matching files for"):
        BundleReader(str(tmp_path / "nothing"))
    prefix = three_tensors(tmp_path)
    reader = BundleReader(prefix)
    for name in ("zz", ""):
        with pytest.raises(NotFoundError, match=f"Key {name} not found in checkpoint"):
            reader.read(name)
        assert name not in reader
    assert "a" in reader
    assert reader.dtype("b") == DataType.INT32
    Path(f"{prefix}.{DATA}").unlink()
    with pytest.raises(NotFoundError, match="No such file or directory"):
        reader.read("a")


def test_a_save_over_another_takes_names_that_are_free(tmp_path: Path) -> None:
    """The save after it uses TensorFlow's names again."""
    for data in (DATA, "data-00001-of-00002", DATA, "data-00001-of-00002"):
        prefix = three_tensors(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == [f"ckpt.{data}", "ckpt.index"]
        assert np.array_equal(BundleReader(prefix).read("a"), A)
    assert Path(f"{prefix}.index").read_bytes() != THREE_TENSORS
    three_tensors(tmp_path)
    assert Path(f"{prefix}.index").read_bytes() == THREE_TENSORS


def test_all_entries_name_the_data_file(tmp_path: Path) -> None:
    """Also the entries of sliced tensors, because TensorFlow's merge opens that file."""
    for shard in (0, 1):
        prefix = parts(tmp_path, "6 4 0,3:-", "6 4 3,3:-")
        assert {entry.shard_id for _, entry in BundleReader(prefix).entries()} == {shard}


def test_a_reader_reads_on_what_was_there_when_it_was_made(tmp_path: Path) -> None:
    """Whatever is saved meanwhile; a new reader reads the new checkpoint."""
    prefix = three_tensors(tmp_path)
    with BundleReader(prefix) as reader:
        for number in range(3):
            write(prefix, ["a", f"n{number}"])
            assert np.array_equal(reader.read("a"), A)
            assert reader.read("s").tolist() == STRINGS.tolist()
            assert np.array_equal(BundleReader(prefix).read("a"), A + 1)
    with BundleReader(prefix) as reader:
        Path(f"{prefix}.index").unlink()
        assert np.array_equal(reader.read("a"), A + 1)


def test_a_reader_that_is_made_during_a_save_reads_one_of_the_two(tmp_path: Path) -> None:
    """Even if the save falls between reading the index and opening the data file, whose name is reused."""
    prefix = three_tensors(tmp_path)

    class Late(FileSystem):
        saves = 3

        def open(self, path: str) -> int:
            if ".data" in path and self.saves:
                self.saves -= 1
                write(prefix, ["a"])
                write(prefix, ["a", f"n{self.saves}"])
            return super().open(path)

    with BundleReader(prefix, Late()) as reader:
        assert reader.names() == ["a", "n0"]
        assert np.array_equal(reader.read("n0"), A + 1)


def test_a_damaged_data_file_names_its_tensors(tmp_path: Path) -> None:
    """The tensor that was read, the file, and other tensors that may be damaged; slices by the name of their tensor."""
    prefix = three_tensors(tmp_path)
    path = Path(f"{prefix}.{DATA}")
    path.write_bytes(_flipped(64)(_flipped(3)(path.read_bytes())))
    reader = BundleReader(prefix)
    for name, others in [("a", "'b', 's'"), ("s", "'a', 'b'")]:
        with pytest.raises(DataLossError) as caught:
            reader.read(name)
        assert caught.value.message.endswith(f"; tensor '{name}' is damaged in {path}, which also holds {others}")
    prefix = parts(tmp_path, "6 4 0,3:-", "6 4 3,3:-")
    path = Path(f"{prefix}.{DATA}")
    path.write_bytes(_flipped(90)(path.read_bytes()))
    with pytest.raises(DataLossError, match=f"tensor 'w' is damaged in {path}, which holds no other tensor"):
        BundleReader(prefix).read("w")
    write(str(tmp_path / "many"), [f"t{number}" for number in range(12)])
    path = tmp_path / f"many.{DATA}"
    path.write_bytes(_flipped(0)(path.read_bytes()))
    with pytest.raises(DataLossError, match="also holds 't1', 't10', 't11', 't2', 't3', 't4', 't5', 't6' and 3 more"):
        BundleReader(str(tmp_path / "many")).read("t0")


@pytest.mark.parametrize("damage", [_flipped(3), _flipped(100), _cut])
def test_a_damaged_index_is_named(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """And can be saved over; nothing says any more which data was its own, so that stays."""
    prefix = three_tensors(tmp_path)
    data = next(tmp_path.glob("*.data-*"))
    path = Path(f"{prefix}.index")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataLossError, match=str(path)):
        BundleReader(prefix).read("a")
    write(prefix, ["a"])
    assert np.array_equal(BundleReader(prefix).read("a"), A + 1)
    assert data.exists()
    assert len(list(tmp_path.iterdir())) == 3


def test_a_failure_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    """And no other file."""
    prefix = three_tensors(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for bad in (["a", "a"], ["a", ""]):
        with pytest.raises(InvalidArgumentError):
            write(prefix, bad)
    with pytest.raises(UnimplementedError), BundleWriter(prefix) as writer:
        writer.add("v", np.empty((), object), DataType.VARIANT)
    with pytest.raises(KeyboardInterrupt), BundleWriter(prefix):
        raise KeyboardInterrupt
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_checkpoints_are_merged(tmp_path: Path) -> None:
    """Data files move, slices of one tensor come together, and folders that are empty then are removed."""
    prefixes = [parts(tmp_path, "6 4 3,3:-", name="one/x", value=A + 100), parts(tmp_path, "6 4 0,3:-", name="two/x")]
    prefixes.append(three_tensors(tmp_path))
    merge_bundles(
        [*prefixes, str(tmp_path / "no")], str(tmp_path / "all"), delete_old_directories=True, allow_missing=True
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(f"all.data-0000{k}-of-00003" for k in range(3)),
        "all.index",
    ]
    reader = BundleReader(str(tmp_path / "all"))
    assert np.array_equal(reader.read("w"), np.concatenate([A, A + 100]))
    assert reader.read("s").tolist() == STRINGS.tolist()


def test_what_cannot_be_merged_stays(tmp_path: Path) -> None:
    """Two tensors of one name, a missing checkpoint, none at all."""
    first, two = three_tensors(tmp_path), parts(tmp_path, "3 4 -:-", name="other")
    with BundleWriter(two) as writer:
        writer.add("a", A)
    before = sorted(path.name for path in tmp_path.iterdir())
    for prefixes, message in [
        ([first, two], "Duplicate tensor keyed by a encountered, when merging prefix: "),
        ([first, str(tmp_path / "no")], "allow_missing_files was set to false and "),
        ([], "At least one prefix checkpoint file must exist, but none existed."),
    ]:
        with pytest.raises(InvalidArgumentError) as caught:
            merge_bundles(prefixes, str(tmp_path / "all"))
        assert caught.value.message.startswith(message)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    merge_bundles([first], first)
    assert np.array_equal(BundleReader(first).read("a"), A)


def test_a_checkpoint_may_be_merged_into_itself(tmp_path: Path) -> None:
    """By whatever name for it, and with others."""
    first, other = three_tensors(tmp_path / "folder"), parts(tmp_path, "3 4 -:-", name="other")
    merge_bundles([first, other], str(tmp_path / "folder" / ".." / "folder" / "ckpt"), delete_old_directories=True)
    assert np.array_equal(BundleReader(first).read("a"), A)
    assert BundleReader(first).names() == ["a", "b", "s", "w"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]


def test_a_checkpoint_that_was_saved_over_is_merged(tmp_path: Path) -> None:
    """Into data files that are numbered without gaps."""
    for _ in range(2):
        prefixes = [parts(tmp_path, "6 4 0,3:-", name="x"), three_tensors(tmp_path)]
    merge_bundles(prefixes, str(tmp_path / "all"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "all.data-00000-of-00002",
        "all.data-00001-of-00002",
        "all.index",
    ]
    assert np.array_equal(BundleReader(str(tmp_path / "all")).read_slice("w", parse_slice("0,3:-")), A)
