"""Datasets that are saved and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from partita.actors import open_session
from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import DataType
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
