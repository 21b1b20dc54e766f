"""Tensors in files: written values are read back equal, and no value is converted."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from partita.graph import graph_def_to_graph
from partita.graph.dtypes import Array, DataType, from_numpy
from partita.scenarios.commands.failure import ConfigurationError
from partita.scenarios.commands.feeds import checked_feeds, read_feeds, split_assignment, write_values
from tests.scenarios.command_line import GraphFile

NUMBERS = st.sampled_from(["f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u8", "?", "c8", "c16"])
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
NAMES = st.from_regex(r"[A-Za-z0-9.][A-Za-z0-9_.\-/]{0,8}(:[0-9])?", fullmatch=True).filter(lambda name: name != "file")
STRINGS = st.binary(max_size=5).filter(lambda text: not text.endswith(b"\0"))


@given(st.dictionaries(NAMES, hnp.arrays(NUMBERS, SHAPES), max_size=4))
def test_numbers_come_back(tmp_path_factory: pytest.TempPathFactory, values: dict[str, np.ndarray]) -> None:
    """Name, type, shape and every bit are kept."""
    path = tmp_path_factory.mktemp("npz") / "values.npz"
    write_values(path, values)
    actual = read_feeds([], path)
    assert list(actual) == list(values)
    for name, value in values.items():
        back = actual[name]
        assert back is not None
        assert (back.dtype, back.shape, back.tobytes()) == (value.dtype, value.shape, value.tobytes())


@given(hnp.arrays(object, SHAPES, elements=STRINGS))
def test_strings_come_back(tmp_path_factory: pytest.TempPathFactory, value: np.ndarray) -> None:
    """A string tensor is bytes on disk and objects of type bytes in memory."""
    path = tmp_path_factory.mktemp("npz") / "values.npz"
    write_values(path, {"s": value})
    back = read_feeds([], path)["s"]
    assert back is not None
    assert back.dtype == object
    assert (back.shape, back.tolist()) == (value.shape, value.tolist())


def test_text_becomes_bytes(tmp_path: Path) -> None:
    """Text is fed as UTF-8."""
    np.save(tmp_path / "s.npy", np.array(["grün", ""]))
    (value,) = read_feeds([("s", tmp_path / "s.npy")], None).values()
    assert value is not None
    assert value.tolist() == ["grün".encode(), b""]


def test_strings_that_numpy_would_cut_are_refused(tmp_path: Path) -> None:
    """numpy drops zero bytes at the end, so such a value is not written."""
    value = np.empty(1, object)
    value[0] = b"a\0"
    with pytest.raises(ConfigurationError, match="zero byte"):
        write_values(tmp_path / "values.npz", {"s": value})


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_types_that_numpy_does_not_know_come_back(dtype: type, tmp_path: Path) -> None:
    """numpy stores them as raw bytes, which are read as the type of the tensor."""
    value: Array = np.array([1.5, -2], dtype)
    write_values(tmp_path / "values.npz", {"x": value})
    graph = GraphFile()
    graph.add("x", "Placeholder", dtype=from_numpy(value))
    (back,) = checked_feeds(read_feeds([], tmp_path / "values.npz"), graph_def_to_graph(graph.graph_def)).values()
    assert isinstance(back, np.ndarray)
    assert (back.dtype, back.tolist()) == (value.dtype, value.tolist())


def test_raw_bytes_of_another_size_are_refused(tmp_path: Path) -> None:
    """Two bytes are no float32."""
    graph = GraphFile()
    graph.add("x", "Placeholder", dtype=DataType.FLOAT)
    with pytest.raises(ConfigurationError, match="'x'"):
        checked_feeds({"x": np.array([1], ml_dtypes.bfloat16)}, graph_def_to_graph(graph.graph_def))


@given(NAMES, st.text(min_size=1, max_size=9))
def test_an_assignment_is_split_at_its_first_equals_sign(name: str, file: str) -> None:
    """File names may contain the sign, tensor names cannot."""
    assert split_assignment(f"{name}={file}") == (name, Path(file))
    assert split_assignment(name) == (name, None)


def test_an_archive_of_one_array_is_that_array(tmp_path: Path) -> None:
    """Whatever its key is: test data is often stored like that."""
    np.savez(tmp_path / "x.npz", s0_i0=np.arange(3))
    actual = read_feeds([("x", tmp_path / "x.npz")], None)["x"]
    assert actual is not None
    assert actual.tolist() == [0, 1, 2]
