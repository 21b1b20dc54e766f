"""Rings of the first GPUs of a machine of the catalog, for measurements that say no more than how many were used.

first_rings("DGX-1-V100")     {2: 1, 3: 2, 4: 4, 5: 0, 6: 2, 7: 4, 8: 6}
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ...cluster_file import parse_cluster
from ...timing.collectives.group import rings_over_pairs

HOST_OF = {"V100-SXM2": "DGX-1-V100"}
"""the machine that measurements of a device are taken to be of: its GPUs are joined in pairs"""


@cache
def first_rings(host: str) -> Mapping[int, int]:
    """By n, from 2 on, the number of one-way rings of the first n GPUs that share no link; none without a mesh."""
    cluster = parse_cluster({"host": [{"model": host}]})
    gpus = [device for device in cluster if device.spec.kind == "GPU"]
    rings = {n: rings_over_pairs(cluster.topology.fabric, gpus[:n]) for n in range(2, len(gpus) + 1)}
    return {n: len(found) for n, found in rings.items() if found is not None}
