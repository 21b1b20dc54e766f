"""The first rank of each stage, by its device: that for which the nodes of a rank program are made.

mesh pp:2,dp:2,cp:1,tp:1 with stages on GPU:0 and GPU:2      GPU:0 -> rank 0, GPU:2 -> rank 2
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...builder.checks import requested_device
from ..devices_of_nodes import host_of
from .mesh import Mesh


class StageRanks:
    """The ranks of the devices of stages, and of their hosts."""

    def __init__(self, mesh: Mesh, devices: Sequence[str]) -> None:
        """`devices` has one for each stage; InvalidArgumentError for more or fewer."""
        if len(devices) != mesh.pp:
            raise InvalidArgumentError(f"mesh {mesh.text} has {mesh.pp} stages, {len(devices)} devices are given")
        self.mesh = mesh
        names = list(map(requested_device, devices))
        self._ranks = {host_of(name): stage * mesh.per_stage for stage, name in reversed([*enumerate(names)])}
        self._ranks |= {name: stage * mesh.per_stage for stage, name in enumerate(names)}

    def of(self, device: str) -> int:
        """The rank on a device that a node requests; InvalidArgumentError for one that no stage is on."""
        if device not in self._ranks:
            raise InvalidArgumentError(f"a gradient is on {device!r}, which is no device of a stage: place it on one")
        return self._ranks[device]
