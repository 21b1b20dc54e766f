"""The hash of a point: what changes it, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from partita.errors import InvalidArgumentError
from partita.scenarios import SweepAxes
from partita.scenarios.sweeps import points as points_module
from partita.scenarios.sweeps.functions import SweptFunction, swept_function
from partita.scenarios.sweeps.points import swept_points
from tests.scenarios.sweeps import swept

FUNCTION = swept_function(swept.size_of)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file and a folder in it."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a").write_text("one")
    (tmp_path / "b").write_text("two")
    return tmp_path


def hash_of(folder: Path, function: SweptFunction = FUNCTION, version: str = "", scale: object = 1) -> str:
    """Of the point that names the folder."""
    (point,) = swept_points(function, SweepAxes({"file": [folder], "scale": [scale]}), version)
    return point.hash


def rename(folder: Path) -> None:
    (folder / "b").rename(folder / "c")


def write_the_same(folder: Path) -> None:
    (folder / "b").write_text("two")


@pytest.mark.parametrize(
    ("change", "is_other"),
    [
        (lambda folder: (folder / "b").write_text("other"), True),
        (lambda folder: (folder / "inner" / "a").write_text("other"), True),
        (lambda folder: (folder / "new").touch(), True),
        (rename, True),
        (write_the_same, False),
    ],
)
def test_contents_of_files_count(change: Callable[[Path], object], is_other: bool, folder: Path) -> None:
    """Bytes and names, not times."""
    before = hash_of(folder)
    change(folder)
    assert (hash_of(folder) != before) is is_other


def test_all_else_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and their kinds, the code, the name, the text of the caller, and the version of Partita."""
    hashes = [
        hash_of(folder),
        hash_of(folder, scale=2),
        hash_of(folder, scale=1.0),
        hash_of(folder, scale="1"),
        hash_of(folder, scale=True),
        hash_of(folder, version="2"),
        hash_of(folder, evolve(FUNCTION, code="other")),
        hash_of(folder, evolve(FUNCTION, name="other")),
    ]
    monkeypatch.setattr(points_module, "partita_version", lambda: "99")
    assert len({*hashes, hash_of(folder)}) == len(hashes) + 1


def test_the_order_and_the_number_of_points_do_not_count() -> None:
    """An axis may get more values later."""
    few = {point.hash for point in swept_points(FUNCTION, SweepAxes({"file": ["x"], "scale": [1, 2]}), "")}
    more = {point.hash for point in swept_points(FUNCTION, SweepAxes({"scale": [3, 2, 1], "file": ["y", "x"]}), "")}
    assert len(few) == 2
    assert few < more


def test_a_path_where_nothing_is_and_no_point_at_all(tmp_path: Path) -> None:
    """Both are refused before anything runs."""
    with pytest.raises(InvalidArgumentError, match="cannot be read: No such file"):
        hash_of(tmp_path / "missing")
    with pytest.raises(InvalidArgumentError, match="no point meets all conditions"):
        swept_points(FUNCTION, SweepAxes({"a": [1]}, where="a > 1"), "")
