"""The ops that save and restore: what goes in comes out, and what is wrong is said in TensorFlow's words."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PartitaError,
    ResourceExhaustedError,
)
from partita.graph.dtypes import Array, DataType
from partita.graph.formats.file_system import FileSystem
from partita.graph.ops.record import record_of
from tests.devices.kernels.harness import run, shapes

A = np.arange(12, dtype=np.float32).reshape(3, 4)


def texts(*items: str) -> Array:
    """A vector of strings."""
    result = np.empty(len(items), object)
    result[:] = [item.encode() for item in items]
    return result


def text(item: Path | str) -> Array:
    """A scalar string."""
    return texts(str(item)).reshape(())


def save(prefix: Path, tensors: dict[str, Any], parts: Sequence[str] = ()) -> None:
    """Runs SaveV2."""
    run("SaveV2", text(prefix), texts(*tensors), texts(*parts or [""] * len(tensors)), list(tensors.values()))


def restore(prefix: Path, names: Sequence[str], dtypes: Sequence[DataType], parts: Sequence[str] = ()) -> Any:
    """Runs RestoreV2."""
    return run("RestoreV2", text(prefix), texts(*names), texts(*parts or [""] * len(names)), dtypes=dtypes)


def test_tensors_come_back(tmp_path: Path) -> None:
    """One tensor, several together, and parts of one come back as they were saved."""
    save(tmp_path / "new" / "x", {"a": A, "s": texts("u", "")})
    assert np.array_equal(restore(tmp_path / "new" / "x", ["a"], [DataType.FLOAT]), A)
    strings, part = restore(tmp_path / "new" / "x", ["s", "a"], [DataType.STRING, DataType.FLOAT], ["", "3 4 1,2:-"])
    assert strings.tolist() == [b"u", b""]
    assert np.array_equal(part, A[1:])


def test_quantised_tensors_keep_their_type(tmp_path: Path) -> None:
    """Quantised types, which numpy lacks, come back as they were saved."""
    prefix = text(tmp_path / "x")
    run("SaveV2", prefix, texts("q"), texts(""), [np.array([3], np.uint8)], dtypes=[DataType.QUINT8])
    assert restore(tmp_path / "x", ["q"], [DataType.QUINT8]).tolist() == [3]
    with pytest.raises(InvalidArgumentError, match="expected dtype uint8 does not equal original dtype quint8"):
        restore(tmp_path / "x", ["q"], [DataType.UINT8])


def test_parts_from_several_devices_are_merged(tmp_path: Path) -> None:
    """Shards are saved, merged and restored as a sharded saver does."""
    names = [run("ShardedFilename", text(tmp_path / "part"), np.int32(k), np.int32(2)) for k in range(2)]
    assert Path(names[1].item().decode()).name == "part-00001-of-00002"
    for k, name in enumerate(names):
        run("SaveV2", name, texts("w"), texts(f"6 4 {3 * k},3:-"), [A + k])
    run("MergeV2Checkpoints", np.array([name.item() for name in names], object), text(tmp_path / "all"))
    assert np.array_equal(restore(tmp_path / "all", ["w"], [DataType.FLOAT]), np.concatenate([A, A + 1]))


@pytest.mark.parametrize(
    ("names", "dtypes", "parts", "kind", "message"),
    [
        (["a", "z", "y"], [DataType.FLOAT] * 3, [""] * 3, NotFoundError, "Key z not found in checkpoint"),
        (
            ["a", "b"],
            [DataType.INT32, DataType.FLOAT],
            ["", ""],
            InvalidArgumentError,
            "tensor_name = a; expected dtype int32 does not equal original dtype float\n"
            "tensor_name = b; expected dtype float does not equal original dtype int32",
        ),
        (
            ["a"],
            [DataType.FLOAT],
            ["3 5 -:-"],
            InvalidArgumentError,
            "tensor_name = a; shape in shape_and_slice spec [3,5] does not match the shape stored in checkpoint: [3,4]",
        ),
        (["s"], [DataType.STRING], ["2 0,1"], InvalidArgumentError, "Dtype string not supported."),
        (
            ["a", "b"],
            [DataType.FLOAT] * 2,
            [""],
            InvalidArgumentError,
            "tensor_names and shape_and_slices have different number of elements: 2 vs. 1",
        ),
        (
            ["a", "b"],
            [DataType.FLOAT],
            ["", ""],
            InvalidArgumentError,
            "Got 2 tensor names, but 1 expected dtypes.",
        ),
    ],
)
def test_wrong_requests_are_refused(
    tmp_path: Path,
    names: Sequence[str],
    dtypes: Sequence[DataType],
    parts: Sequence[str],
    kind: type[PartitaError],
    message: str,
) -> None:
    """The error has TensorFlow's code and words."""
    save(tmp_path / "x", {"a": A, "b": np.int32(7), "s": texts("u", "v")})
    with pytest.raises(kind) as caught:
        restore(tmp_path / "x", names, dtypes, parts)
    assert caught.value.message == message


def test_what_cannot_be_saved_is_refused(tmp_path: Path) -> None:
    """A refused save leaves no file."""
    (tmp_path / "file").touch()
    with pytest.raises(
        InvalidArgumentError, match="does not match the shape of the tensor to  save: 6 4 0,2:-, tensor"
    ):
        save(tmp_path / "x", {"w": A}, ["6 4 0,2:-"])
    with pytest.raises(InvalidArgumentError, match="Got 2 tensor names but 1 tensors"):
        run("SaveV2", text(tmp_path / "x"), texts("a", "b"), texts("", ""), [A])
    with pytest.raises(InvalidArgumentError, match="Input prefix should have a single element, got 2 instead"):
        run("SaveV2", texts("x", "y"), texts("a"), texts(""), [A])
    with pytest.raises(NotFoundError, match="No such file or directory"):
        save(tmp_path / "no" / "such" / "x", {"a": A})
    with pytest.raises(FailedPreconditionError, match="Not a directory"):
        save(tmp_path / "file" / "x", {"a": A})
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A save that fails leaves the previous checkpoint and no other file."""
    save(tmp_path / "x", {"a": A})

    def full(files: FileSystem, file: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(FileSystem, "write", full)
        with pytest.raises(ResourceExhaustedError, match=r"x\.data-00001-of-00002; No space left on device"):
            save(tmp_path / "x", {"a": A + 1})
    assert np.array_equal(restore(tmp_path / "x", ["a"], [DataType.FLOAT]), A)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.data-00000-of-00001", "x.index"]


def test_damage_is_told_with_file_and_tensors(tmp_path: Path) -> None:
    """The message begins with TensorFlow's words."""
    save(tmp_path / "x", {"a": A, "b": A, "c": np.int32(7)})
    path = tmp_path / "x.data-00000-of-00001"
    path.write_bytes(path.read_bytes()[:60] + b"?" + path.read_bytes()[61:])
    with pytest.raises(DataLossError) as caught:
        restore(tmp_path / "x", ["a", "b"], [DataType.FLOAT] * 2)
    assert caught.value.message.startswith(f"TensorBundle at {tmp_path}/x shard 0 (48 bytes): Checksum does not match")
    assert caught.value.message.endswith(f"; tensor 'b' is damaged in {path}, which also holds 'a', 'c'")


def test_steps_that_save_one_prefix_at_once_mix_nothing(tmp_path: Path) -> None:
    """A restore during or after the saves gets one version, complete."""
    save(tmp_path / "x", {"a": np.zeros(1), "b": np.zeros(1)})

    def save_some(first: int) -> None:
        for version in range(first, first + 10):
            save(tmp_path / "x", {"a": np.full(version, version, float), "b": np.full(2 * version, version, float)})

    def restored() -> int:
        a, b = restore(tmp_path / "x", ["a", "b"], [DataType.DOUBLE] * 2)
        assert a[0] == b[0]
        assert (a == a[0]).all()
        assert (b == b[0]).all()
        return int(a[0])

    with ThreadPoolExecutor(3) as threads:
        savers = [threads.submit(save_some, first) for first in (10, 20, 30)]
        while not all(saver.done() for saver in savers):
            restored()
        for saver in savers:
            saver.result()
    assert restored() in (19, 29, 39)
    save(tmp_path / "x", {"a": A})
    assert len(list(tmp_path.iterdir())) == 2


def test_file_names_have_at_least_five_digits() -> None:
    """Larger numbers have more digits."""
    assert run("ShardedFilename", text("a/b"), np.int32(123456), np.int32(-1)).item() == b"a/b-123456-of--0001"
    assert run("ShardedFilespec", text("a/b"), np.int32(12)).item() == b"a/b-?????-of-00012"


def test_shapes_are_those_of_the_parts() -> None:
    """The shapes of whole tensors are unknown."""
    types = [DataType.FLOAT, DataType.INT32]
    known = shapes("RestoreV2", (), texts("a", "b"), texts("6 4 0,3:-", ""), dtypes=types)
    assert known == [(3, 4), None]
    assert shapes("RestoreV2", (), (2,), (2,), dtypes=types) == [None, None]
    assert shapes("ShardedFilename", (), (), ()) == [()]
    assert shapes("MergeV2Checkpoints", (None,), ()) == []
    assert shapes("SaveV2", (), (1,), (1,), [(3,)]) == []
    with pytest.raises(InvalidArgumentError):
        shapes("RestoreV2", (), (3,), (2,), dtypes=types)


def test_kernels_that_wait_for_files_are_known() -> None:
    """A session runs these kernels in worker threads."""
    assert record_of("RestoreV2").waits_for_files
    assert not record_of("MatMul").waits_for_files
