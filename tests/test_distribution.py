"""The wheel, built from the sdist, has every module and every data file of the checkout.

It is built from a copy of the checkout, so that no build folder is left behind.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
ROOMS = ("actors", "devices", "graph", "rendezvous", "scenarios")
DATA_SUFFIXES = {".proto", ".pyi", ".toml", ".json", ".pb", ".pbtxt", ".gz"}
IMPORT_ALL = """
import importlib, pathlib, sys, warnings
EXTRAS = ("dask", "distributed")
warnings.simplefilter("error")
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root))
modules = [".".join(path.relative_to(root).with_suffix("").parts) for path in (root / "partita").rglob("*.py")]
for name in sorted(modules):
    if name != "partita.__main__":
        try:
            module = importlib.import_module(name.removesuffix(".__init__"))
        except ModuleNotFoundError as missing:
            if missing.name.partition(".")[0] not in EXTRAS or ".sessions.processes." not in name:
                raise
            continue
        assert module.__file__.startswith(str(root)), module.__file__
print(len(modules))
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("distribution")
    leftovers = (".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "build", "dist", "*.egg-info", "data")
    shutil.copytree(CHECKOUT, folder / "checkout", ignore=shutil.ignore_patterns(*leftovers))
    build(folder / "checkout", folder)
    return folder


def build(checkout: Path, folder: Path, *options: str) -> None:
    """Builds in a tree; what it built before lies there still."""
    command = [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", str(folder), str(checkout)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def wheel_files(folder: Path) -> set[str]:
    """The files that the wheel in a folder installs, without its metadata."""
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return {name for name in wheel.namelist() if ".dist-info/" not in name}


def package_files() -> set[str]:
    """The files of the rooms and the root modules."""
    expected = {
        f"partita/{name}"
        for name in (
            "__init__.py",
            "__main__.py",
            "collector.py",
            "entry_points.py",
            "errors.py",
            "lazy.py",
            "py.typed",
        )
    }
    for room in ROOMS:
        files = [path for path in (CHECKOUT / room).rglob("*") if path.suffix in DATA_SUFFIXES | {".py"}]
        files += (CHECKOUT / room / "examples").glob("calibration/*.[ct][sx][vt]")
        files += (CHECKOUT / room / "report" / "page").glob("built/*")
        expected |= {f"partita/{path.relative_to(CHECKOUT).as_posix()}" for path in files}
    return expected


def test_wheel_holds_every_module_and_data_file(distribution: Path) -> None:
    """Exactly the files of the rooms and the root modules; no tests, docs or settings."""
    assert wheel_files(distribution) == package_files()


def test_a_build_over_an_older_one_holds_nothing_of_it(distribution: Path, tmp_path: Path) -> None:
    """In the same tree, as pip builds: modules that have moved since, and parts of a build that was interrupted."""
    checkout = tmp_path / "checkout"
    shutil.copytree(distribution / "checkout", checkout)
    moved = checkout / "graph" / "ops" / "arrays" / "moved_away_shapes.py"
    moved.write_text("from ..elsewhere import shape_fn\n")
    build(checkout, tmp_path / "old", "--wheel")
    assert wheel_files(tmp_path / "old") - package_files() == {"partita/graph/ops/arrays/moved_away_shapes.py"}
    moved.unlink()
    stray = next((checkout / "build").glob("lib")) / "partita" / "graph" / "ops" / "stray.py"
    stray.touch()
    build(checkout, tmp_path / "new", "--wheel")
    assert wheel_files(tmp_path / "new") == package_files()


def test_every_module_imports_from_the_wheel(distribution: Path, tmp_path: Path) -> None:
    """Unpacked into an empty folder, every module imports from there, without a warning, or names the extra dask."""
    with zipfile.ZipFile(next(distribution.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path)
    command = [sys.executable, "-I", "-c", IMPORT_ALL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


def test_sdist_holds_what_a_distributor_needs(distribution: Path) -> None:
    """Licence, README, tests and the settings of tools are in the source distribution."""
    with tarfile.open(next(distribution.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "Makefile", "tests/test_house.py"} <= names
    pages = {path for path in (CHECKOUT / "docs").rglob("*") if path.suffix in {".md", ".py", ".png", ".txt"}}
    written = {path.relative_to(CHECKOUT).as_posix() for path in pages if "_generated" not in path.parts}
    assert len(written) > 50
    assert {name for name in names if name.startswith("docs/_generated")} | written - names == set()
    assert {"tools/page/package-lock.json", "scenarios/report/page/script/main.js"} <= names
