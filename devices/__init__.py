"""Where and at what cost: devices, kernels, placement, the way from a graph to the graph of each device, timing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_lazily
from .cluster import Cluster, local_cluster
from .cluster_file import as_cluster, load_cluster, parse_cluster
from .device import Device
from .spec import DeviceSpec

if TYPE_CHECKING:
    from .pipeline.cutting import cut

__all__ = ["Cluster", "Device", "DeviceSpec", "as_cluster", "cut", "load_cluster", "local_cluster", "parse_cluster"]

load_lazily(__name__, {"pipeline.cutting": ["cut"]})
