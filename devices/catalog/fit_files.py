"""The fits of a device of the catalog: a file for each table of `[fits]`, read when it is asked for.

    device_h100_sxm.toml                    the datasheet
    fits/h100_sxm/products.toml             [fits.products], ...
    fits/h100_sxm/decode_attention.toml     [fits.decode_attention], ...

A file holds the table under its full name, so that they can be put together to one calibration file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from typing import Any

from ...errors import InvalidArgumentError
from ..tables import parse_toml

FOLDER = "fits"


class FitFiles(Mapping[str, Any]):  # Any: what TOML holds
    """The table `fits` of a device; a file is read once."""

    def __init__(self, folder: Traversable) -> None:
        self._files = {
            file.name.removesuffix(".toml"): file for file in folder.iterdir() if file.name.endswith(".toml")
        }
        self._tables: dict[str, Mapping[str, Any]] = {}

    def __getitem__(self, part: str) -> Mapping[str, Any]:
        if part not in self._tables:
            file = self._files[part]
            table = parse_toml(file.read_text("utf-8"), str(file)).get("fits", {})
            if not isinstance(table, Mapping) or list(table) != [part] or not isinstance(table[part], Mapping):
                raise InvalidArgumentError(f"{file}: the file must hold the table [fits.{part}] and no other")
            self._tables[part] = table[part]
        return self._tables[part]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._files))

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, part: object) -> bool:
        return part in self._files


def with_fit_files(table: Mapping[str, Any], folder: Traversable, stem: str) -> Mapping[str, Any]:
    """The table of a device file with the fits that lie beside it, if any; a table `fits` in the file itself goes."""
    files = folder / FOLDER / stem
    return {**table, "fits": FitFiles(files)} if "fits" not in table and files.is_dir() else table
