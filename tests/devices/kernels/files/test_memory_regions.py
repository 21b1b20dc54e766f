"""ImmutableConst gives what lies in a file, and fails as TensorFlow 2.21 does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import InternalError, InvalidArgumentError, NotFoundError, PartitaError, UnimplementedError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array

NUMBERS = np.arange(6, dtype=np.float32)


@pytest.fixture
def region(tmp_path: Path) -> Path:
    NUMBERS.tofile(tmp_path / "region")
    (tmp_path / "empty").touch()
    return tmp_path / "region"


async def constant(path: Path, dtype: str, shape: tuple[int, ...]) -> Array:
    b = GraphBuilder()
    b.op("ImmutableConst", name="y", dtype=dtype, shape=shape, memory_region_name=str(path).encode())
    async with open_session(b.graph_def(), "cpu:1") as session:
        return (await session.run("y:0"))[0]


@pytest.mark.parametrize("shape", [(2, 3), (2,), (0,), ()])
async def test_the_first_elements_of_a_file_are_the_tensor(region: Path, shape: tuple[int, ...]) -> None:
    value = await constant(region, "float32", shape)
    assert value.shape == shape
    np.testing.assert_array_equal(value.ravel(), NUMBERS[: value.size])


async def test_bytes_are_of_any_type_of_fixed_size(region: Path) -> None:
    np.testing.assert_array_equal(await constant(region, "int64", (3,)), NUMBERS.view(np.int64))
    np.testing.assert_array_equal(await constant(region, "bool", (4,)), np.zeros(4, np.bool_))


@pytest.mark.parametrize(
    ("name", "dtype", "error"),
    [
        ("region", "float32", InternalError),
        ("nothing", "float32", NotFoundError),
        ("", "float32", NotFoundError),
        ("empty", "float32", InvalidArgumentError),
        ("region", "resource", InvalidArgumentError),
        ("region", "string", UnimplementedError),
    ],
)
async def test_what_a_file_cannot_give_is_refused(
    region: Path, name: str, dtype: str, error: type[PartitaError]
) -> None:
    """Too short, not there, a folder, empty; handles and strings."""
    with pytest.raises(error):
        await constant(region.with_name(name) if name else region.parent, dtype, (7,))
