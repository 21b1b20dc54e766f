"""Files are read, written and found by name; errors are the file system's, in TensorFlow's words."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.files.patterns import matching_files
from partita.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, UnimplementedError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import run, shapes
from tests.devices.kernels.random_arrays import texts


def text(value: str | bytes | Path) -> Array:
    return np.array(value if isinstance(value, bytes) else os.fsencode(value), object)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """Folders are made, an old content is replaced, and a name may say that it is a file's."""
    path = tmp_path / "a" / "b" / "x"
    for content in (b"hello\xff", b""):
        run("WriteFile", text(path), text(content))
        assert run("ReadFile", text(f"file://{path}")).item() == content


def test_errors(tmp_path: Path) -> None:
    """Missing files, folders, other file systems, several names."""
    with pytest.raises(NotFoundError, match="nope; No such file or directory"):
        run("ReadFile", text(tmp_path / "nope"))
    with pytest.raises(NotFoundError, match=r"^; No such file or directory"):
        run("ReadFile", text(""))
    with pytest.raises(FailedPreconditionError, match="Is a directory"):
        run("ReadFile", text(tmp_path))
    with pytest.raises(FailedPreconditionError, match="Is a directory"):
        run("WriteFile", text(tmp_path), text(""))
    with pytest.raises(UnimplementedError, match=r"File system scheme 'foo' not implemented \(file: 'foo://x/y'\)"):
        run("ReadFile", text("foo://x/y"))
    with pytest.raises(InvalidArgumentError, match=r"Input filename tensor must be scalar, but had shape: \[1\]"):
        run("ReadFile", texts(b"x"))
    with pytest.raises(InvalidArgumentError, match=r"Contents tensor must be scalar, but had shape: \[1\]"):
        run("WriteFile", text(tmp_path / "x"), texts(b"x"))
    with pytest.raises(InvalidArgumentError, match="Input patterns tensor must be scalar or vector"):
        run("MatchingFiles", texts(b"x").reshape(1, 1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files of many names."""
    for name in ("a1.txt", "a2.txt", "b1.txt", ".hid", "a[1].txt", "sub/a3.txt", "sub/x/a4.txt", "A5", "c*d", "a]b"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.txt", "a1.txt a2.txt a[1].txt b1.txt"),
        ("a[12].txt", "a1.txt a2.txt"),
        (r"a\[1\].txt", "a[1].txt"),
        ("[!a]*", ".hid A5 b1.txt c*d sub"),
        ("[^a-z]*", ".hid A5"),
        ("[]a]]*", "a]b"),
        ("?1.txt", "a1.txt b1.txt"),
        ("*/*", "sub/a3.txt sub/x"),
        ("**/x/*", "sub/x/a4.txt"),
        ("*/../a1*", ""),
        ("nope/../a1*", "nope/../a1.txt"),
        ("s*b/", "sub"),
        ("sub//a*", ""),
        (r"c\*d", "c*d"),
        ("[z-a]*", ""),
        ("a[", ""),
        ("nope", ""),
        ("./a1.txt", "./a1.txt"),
    ],
)
def test_patterns(folder: Path, pattern: str, names: str) -> None:
    """TensorFlow 2.21 finds the same."""
    found = run("MatchingFiles", text(f"{folder}/{pattern}")).tolist()
    assert [os.fsdecode(name).removeprefix(f"{folder}/") for name in found] == names.split()
    by_uri = run("MatchingFiles", text(f"file://{folder}/{pattern}")).tolist()
    assert by_uri == [b"file://" + name for name in found]


def test_several_patterns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All names are sorted together, and one may occur twice; without a folder they begin with a dot."""
    monkeypatch.chdir(folder)
    assert run("MatchingFiles", texts(b"b*", b"a1*", b"*1.txt")).tolist() == [
        *(b"./a1.txt", b"./a1.txt", b"./b1.txt", b"./b1.txt"),
    ]
    assert run("MatchingFiles", text("a1.txt")).tolist() == [b"a1.txt"]
    assert run("MatchingFiles", texts()).tolist() == []


@given(st.text("ab*?[]!^-\\.~&|", max_size=8))
def test_any_pattern_is_accepted(tmp_path_factory: pytest.TempPathFactory, pattern: str) -> None:
    """However broken it is; what it finds exists."""
    folder = tmp_path_factory.getbasetemp()
    assert all(os.path.lexists(name) for name in matching_files(f"{folder}/{pattern}"))


def test_shapes() -> None:
    """One string per file."""
    assert shapes("ReadFile", None) == [()]
    assert shapes("MatchingFiles", (3,)) == [(None,)]
    assert shapes("WriteFile", (), ()) == []
    with pytest.raises(InvalidArgumentError, match="Shape must be at most rank 1"):
        shapes("MatchingFiles", (1, 1))
