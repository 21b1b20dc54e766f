"""Versions of a checkpoint in which every tensor differs, ways to save one, and a test which version is there.

No tensor of one version has the value, or the size, of another version's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph.dtypes import Array
from partita.graph.formats.bundle_merge import merge_bundles
from partita.graph.formats.bundle_reader import BundleReader
from partita.graph.formats.bundle_writer import BundleWriter
from partita.graph.formats.file_system import FileSystem
from partita.graph.ops.files.tensor_slices import parse_shape_and_slice
from tests.graph.formats.disks import UNSYNCED

Writer = Callable[[str, int, FileSystem], None]


def tensors(version: int) -> dict[str, Array]:
    """The tensors of a version."""
    return {
        "a": np.full((version + 1, 7), version, np.float32),
        "s": np.array([b"version", b"%d" % version] * (version + 1), object),
        "w": np.full((4, 3), version, np.int64),
    }


def save(prefix: str, version: int, files: FileSystem = UNSYNCED) -> None:
    """Saves a version, with one tensor in slices."""
    values = tensors(version)
    with BundleWriter(prefix, files) as writer:
        writer.add("a", values["a"])
        writer.add_slice("w", *parse_shape_and_slice("4 3 0,2:-"), values["w"][:2])
        writer.add_slice("w", *parse_shape_and_slice("4 3 2,2:-"), values["w"][2:])
        writer.add("s", values["s"])


def parts_of(prefix: str) -> list[str]:
    """Prefixes of the checkpoints that `merge` merges."""
    return [f"{prefix}_temp/part-{number}" for number in range(2)]


def save_parts(prefix: str, version: int) -> None:
    """Saves a version as two checkpoints."""
    values = tensors(version)
    for number, part in enumerate(parts_of(prefix)):
        with BundleWriter(part, UNSYNCED) as writer:
            if number == 0:
                writer.add("a", values["a"])
            else:
                writer.add("s", values["s"])
            bounds = f"4 3 {2 * number},2:-"
            writer.add_slice("w", *parse_shape_and_slice(bounds), values["w"][2 * number : 2 * number + 2])


def merge(prefix: str, version: int, files: FileSystem = UNSYNCED) -> None:
    """Merges the two parts, which must exist."""
    merge_bundles(parts_of(prefix), prefix, delete_old_directories=True, files=files)


def version_at(prefix: str, files: FileSystem = UNSYNCED) -> int | None:
    """The version at a prefix, None for none; raises if it is incomplete."""
    try:
        reader = BundleReader(prefix, files)
    except NotFoundError:
        return None
    with reader:
        version = len(reader.read("a")) - 1
        for name, value in tensors(version).items():
            stored = reader.read(name)
            assert (stored.shape, stored.tolist()) == (value.shape, value.tolist())
        assert reader.names() == sorted(tensors(version))
    return version


def merged_parts_are_there(prefix: str, version: int) -> bool:
    """Whether the parts of a version still exist and merge to that version."""
    copy = f"{prefix}-of-parts"
    try:
        merge_bundles(parts_of(prefix), copy, files=UNSYNCED)
    except (NotFoundError, InvalidArgumentError):
        return False
    return version_at(copy) == version


def files_in(folder: Path) -> list[str]:
    """Names of the files in a folder."""
    return sorted(path.name for path in folder.iterdir() if path.is_file())
