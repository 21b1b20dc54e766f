"""Caches in files: TensorFlow's checkpoints, complete or not there at all."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import AlreadyExistsError, NotFoundError
from partita.graph.formats.bundle_reader import BundleReader
from partita.graph.formats.bundle_writer import BundleWriter
from partita.graph.protos import GraphDef
from tests.devices.kernels.datasets.pipelines import Pipeline, all_of, drained


def names(folder: Path) -> list[str]:
    """The files in a folder; of temporary ones nothing but that they are there."""
    return sorted("temporary" if "temp" in path.name else path.name for path in folder.iterdir())


def cached(folder: Path, stop: int = 3, epochs: int = 1) -> GraphDef:
    """An iterator over the numbers below `stop`, cached in files."""
    p = Pipeline()
    dataset = p.op("CacheDataset", p.range(stop), str(folder / "c").encode())
    return p.iterated(p.counted("RepeatDataset", dataset, epochs))


async def test_what_the_first_epoch_writes_is_read(tmp_path: Path) -> None:
    """By later epochs, and by other datasets with that name; the names of the tensors are TensorFlow's."""
    assert await all_of(cached(tmp_path, epochs=2)) == [0, 1, 2, 0, 1, 2]
    assert names(tmp_path) == ["c.data-00000-of-00001", "c.index"]
    with BundleReader(str(tmp_path / "c")) as reader:
        assert reader.names() == ["      0_0", "      1_0", "      2_0"]
    assert await all_of(cached(tmp_path, stop=9)) == [0, 1, 2]


async def test_files_of_tensorflow_are_read(tmp_path: Path) -> None:
    """A checkpoint with these names is a cache."""
    with BundleWriter(str(tmp_path / "c")) as writer:
        for number, value in enumerate((7, 8)):
            writer.add(f"{number:7d}_0", np.array(value))
    assert await all_of(cached(tmp_path)) == [7, 8]


async def test_an_iterator_that_stops_early_leaves_nothing(tmp_path: Path) -> None:
    """While it is there nobody else may write; the lock file goes with it."""
    lock = tmp_path / "c_0.lockfile"
    async with open_session(cached(tmp_path), "cpu:1") as session:
        await session.run([], targets=["init"])
        await session.run("next")
        assert lock.read_text().startswith("Created at: ")
        with pytest.raises(AlreadyExistsError, match=r"There appears to be a concurrent caching iterator running"):
            await all_of(cached(tmp_path))
        await session.run([], targets=["init"])
        await session.run("next")
        assert await drained(session) == [1, 2]
    assert names(tmp_path) == ["c.data-00000-of-00001", "c.index"]
    (tmp_path / "c.index").unlink()
    async with open_session(cached(tmp_path), "cpu:1") as session:
        await session.run([], targets=["init"])
        await session.run("next")
    del session
    gc.collect()
    assert not lock.exists()


async def test_a_cache_without_elements_is_complete(tmp_path: Path) -> None:
    """It is an index, and gives nothing."""
    assert await all_of(cached(tmp_path, stop=0)) == []
    assert (tmp_path / "c.index").exists()
    assert await all_of(cached(tmp_path)) == []


async def test_a_folder_must_exist(tmp_path: Path) -> None:
    """TensorFlow makes none."""
    with pytest.raises(NotFoundError, match=r"c_0\.lockfile"):
        await all_of(cached(tmp_path / "missing"))
