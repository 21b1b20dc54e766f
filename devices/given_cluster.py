"""The cluster that a caller gives in one of three ways."""

from __future__ import annotations

from pathlib import Path

from ..errors import InvalidArgumentError
from .cluster import Cluster, local_cluster


def as_cluster(devices: Cluster | str | Path) -> Cluster:
    """A cluster given in one of three ways: a `Cluster`, a text "cpu:2,gpu:4", or the path of a .toml file.

    Raises whatever `local_cluster` and `load_cluster` raise, and InvalidArgumentError for anything else.
    """
    if isinstance(devices, Cluster):
        return devices
    if isinstance(devices, Path) or (isinstance(devices, str) and devices.endswith(".toml")):
        from .cluster_file import load_cluster  # most sessions read no file

        return load_cluster(devices)
    if isinstance(devices, str):
        return local_cluster(devices)
    raise InvalidArgumentError(
        f"devices: {type(devices).__name__} is no cluster; give a Cluster, a text such as "
        '"cpu:2,gpu:4", or the path of a .toml file'
    )
