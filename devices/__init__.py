"""Where and at what cost: devices, kernels, placement, the way from a graph to the graph of each device, timing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_lazily

if TYPE_CHECKING:
    from ..graph.ops.device_kinds import DeviceKind
    from .catalog import add_models, remove_models
    from .cluster import Cluster, local_cluster
    from .cluster_file import as_cluster, load_cluster, parse_cluster
    from .device import Device
    from .kinds import KindDefaults, register_device_kind, unregister_device_kind
    from .pipeline.cutting import cut
    from .spec import DeviceSpec

__all__ = [
    "Cluster",
    "Device",
    "DeviceKind",
    "DeviceSpec",
    "KindDefaults",
    "add_models",
    "as_cluster",
    "cut",
    "load_cluster",
    "local_cluster",
    "parse_cluster",
    "register_device_kind",
    "remove_models",
    "unregister_device_kind",
]

load_lazily(
    __name__,
    {
        ".graph.ops.device_kinds": ["DeviceKind"],
        "catalog": ["add_models", "remove_models"],
        "cluster": ["Cluster", "local_cluster"],
        "cluster_file": ["as_cluster", "load_cluster", "parse_cluster"],
        "device": ["Device"],
        "kinds": ["KindDefaults", "register_device_kind", "unregister_device_kind"],
        "pipeline.cutting": ["cut"],
        "spec": ["DeviceSpec"],
    },
)
