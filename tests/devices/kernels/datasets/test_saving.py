"""Datasets that are saved and loaded."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType, from_numpy
from tests.devices.kernels.datasets.pipelines import Pipeline, drained
from tests.devices.kernels.datasets.saved import path_of, with_functions
from tests.function_defs import func_attr


def save(p: Pipeline, dataset: Tensor, folder: Path, compression: bytes = b"") -> None:
    attrs: dict[str, Any] = {"shard_func": func_attr("halves"), "Tshard_func_args": [], "compression": compression}
    p.b.op("SaveDataset", dataset, path_of(folder), [], name="save", attrs=attrs)


def load(p: Pipeline, folder: Path, compression: bytes = b"", **form: Any) -> Tensor:
    attrs: dict[str, Any] = {"reader_func": func_attr("joined"), "Treader_func_args": [], "compression": compression}
    return p.op("LoadDataset", path_of(folder), [], **attrs, **form)


def num_shards(folder: Path) -> int:
    """Of all runs."""
    return len(list(folder.glob("*/*.shard")))


@pytest.mark.parametrize("compression", [b"", b"GZIP", b"SNAPPY", b"AUTO"])
async def test_what_was_saved_is_loaded(compression: bytes, tmp_path: Path) -> None:
    """Shard by shard, as the function of the reader joins them; saving again replaces it."""
    for stop in (5, 6):
        p = with_functions()
        save(p, p.range(stop), tmp_path, compression)
        async with open_session(p.iterated(load(p, tmp_path, compression)), "cpu:1") as session:
            await session.run([], targets=["save"])
            await session.run([], targets=["init"])
            assert await drained(session) == list(range(stop))
    assert num_shards(tmp_path) == 4


async def test_a_dataset_is_saved_on_the_way(tmp_path: Path) -> None:
    """By an iterator that comes to the end; it is then loaded in another session."""
    p = with_functions()
    attrs: dict[str, Any] = {"shard_func": func_attr("halves"), "Tshard_func_args": []}
    dataset = p.op("SaveDatasetV2", p.range(4), path_of(tmp_path), [], **attrs)
    async with open_session(p.iterated(dataset), "cpu:1") as session:
        await session.run([], targets=["init"])
        assert await drained(session) == [0, 1, 2, 3]
    p = with_functions()
    loaded = load(p, tmp_path)
    p.b.op("DatasetCardinality", loaded, name="count")
    async with open_session(p.iterated(loaded), "cpu:1") as session:
        await session.run([], targets=["init"])
        assert (await session.run("count"))[0] == 4
        assert await drained(session) == [0, 1, 2, 3]


async def test_what_is_not_there_cannot_be_loaded(tmp_path: Path) -> None:
    """Or has other types."""
    p = with_functions()
    async with open_session(p.iterated(load(p, tmp_path)), "cpu:1") as session:
        with pytest.raises(NotFoundError, match="Could not find metadata file"):
            await session.run([], targets=["init"])
    p = with_functions()
    save(p, p.range(3), tmp_path)
    loaded = load(p, tmp_path, types=[DataType.FLOAT])
    p.b.op("DatasetCardinality", loaded, name="count")
    async with open_session(p.b.graph_def(), "cpu:1") as session:
        await session.run([], targets=["save"])
        with pytest.raises(InvalidArgumentError, match="has components of other types"):
            await session.run("count")


RECORDS = "020000000000000078270b3461621cb0f0f401000000000000000175de4163ae2c110a"


@pytest.mark.parametrize(
    ("compression", "unpacked"), [(b"", bytes), (b"GZIP", gzip.decompress), (b"ZLIB", zlib.decompress), (b"no", bytes)]
)
async def test_strings_become_the_records_of_a_file(
    compression: bytes, unpacked: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """The bytes are TensorFlow's before they are compressed; an unknown compression is none."""
    p, texts = Pipeline(), [np.array([b"ab", b"c"], object)]
    attrs: dict[str, Any] = {"Toutput_types": [DataType.STRING], "output_shapes": [()]}
    slices = p.b.op("TensorSliceDataset", texts, attrs=attrs)[0]
    p.b.op("DatasetToTFRecord", slices, path_of(tmp_path / "x"), np.array(compression, object), name="write")
    async with open_session(p.b.graph_def(), "cpu:1") as session:
        await session.run([], targets=["write"])
    assert unpacked((tmp_path / "x").read_bytes()).hex() == RECORDS


async def test_other_datasets_are_no_records(tmp_path: Path) -> None:
    """Numbers, strings that are not alone, and files in a folder that is not there."""
    texts = np.array([b"a", b"b"], object)
    for op, components, name, error, message in (
        (
            "TensorSliceDataset",
            [np.arange(2)],
            "x",
            InvalidArgumentError,
            "only supports DT_STRING dataypes, but got int64",
        ),
        ("TensorSliceDataset", [texts, texts], "x", InvalidArgumentError, "datasets of 1 single column, but got 2"),
        ("TensorDataset", [texts], "x", InvalidArgumentError, "a record of a file is one string"),
        ("TensorSliceDataset", [texts], "no/x", NotFoundError, "No such file or directory"),
    ):
        p = Pipeline()
        types = [from_numpy(component) for component in components]
        dataset = p.b.op(op, components, attrs={"Toutput_types": types, "output_shapes": [()] * len(types)})[0]
        p.b.op("DatasetToTFRecord", dataset, path_of(tmp_path / name), np.array(b"", object), name="write")
        async with open_session(p.b.graph_def(), "cpu:1") as session:
            with pytest.raises(error, match=message):
                await session.run([], targets=["write"])
