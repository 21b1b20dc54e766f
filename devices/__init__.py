"""Where and at what cost: devices, kernels, placement, timing."""

from .cluster import Cluster, local_cluster
from .cluster_file import as_cluster, load_cluster, parse_cluster
from .device import Device
from .spec import DeviceSpec

__all__ = ["Cluster", "Device", "DeviceSpec", "as_cluster", "load_cluster", "local_cluster", "parse_cluster"]
