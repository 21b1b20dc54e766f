"""The ranks of a mesh as devices of a cluster, and which of them play for others: the first of each stage.

    mesh pp:2,dp:1,cp:1,tp:4 on CPU:0, GPU:0 .. GPU:7      rank 0 is GPU:0, ... rank 7 GPU:7
    GPU:0 stands for GPU:0 to GPU:3                        GPU:4 for GPU:4 to GPU:7, CPU:0 for itself as their host

A node on the host of a first rank stands for one on the host of every rank of the stage. Where stages share a host, it
is that of the first of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from ....graph.parallel.mesh.mesh import Mesh
from ...cluster import Cluster
from ..bodies.places import hosts_of


class Ranks:
    """By rank the number of its device: the accelerators of the cluster in order, or its CPUs if it has none."""

    def __init__(self, mesh: Mesh, cluster: Cluster) -> None:
        self.mesh = mesh
        self.cluster = cluster
        self.available = len(cluster.ranked)
        self.devices: Sequence[int] = [cluster.numbers[device.name] for device in cluster.ranked[: mesh.devices]]

    @cached_property
    def stage_of(self) -> dict[int, int]:
        """The stage of each device that nodes may be on: a first rank, or the host of one."""
        firsts = {self.devices[stage * self.mesh.per_stage]: stage for stage in range(self.mesh.pp)}
        hosts: dict[int, int] = {}
        for device, stage in firsts.items():
            hosts.setdefault(self.host(device), stage)
        return {**hosts, **firsts}

    @cached_property
    def _hosts(self) -> list[int]:
        hosts: list[int] = hosts_of(self.cluster).tolist()
        return hosts

    def host(self, device: int) -> int:
        """The device that computes on the host of another one."""
        return self._hosts[device]

    def is_rank(self, device: int) -> bool:
        """Whether a device with a stage is the first rank of it, not its host."""
        return self.devices[self.stage_of[device] * self.mesh.per_stage] == device

    def names(self, ranks: Sequence[int]) -> list[str]:
        """The names of the devices of ranks."""
        return [self.cluster.devices[self.devices[rank]].name for rank in ranks]

    def of_stage(self, device: int) -> Iterator[int]:
        """The devices that one with a stage stands for, in the order of ranks: as many as the stage has ranks."""
        first = self.stage_of[device] * self.mesh.per_stage
        own = self.devices[first : first + self.mesh.per_stage]
        return iter(own) if self.is_rank(device) else map(self.host, own)


class StandsFor(Mapping[str, tuple[str, ...]]):
    """The devices that each representative stands for, by names; lists are made when somebody looks."""

    def __init__(self, ranks: Ranks | None = None, used: Sequence[int] = ()) -> None:
        """`used` are the numbers of the representatives. Without ranks nothing stands for others."""
        self._ranks = ranks
        self._used = {ranks.cluster.devices[number].name: number for number in used} if ranks else {}

    @property
    def mesh(self) -> str:
        """The mesh as text, empty if nothing stands for others."""
        return self._ranks.mesh.text if self._ranks else ""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The representatives, as the cluster numbers its devices."""
        return tuple(self._used.values())

    @property
    def multiplicity(self) -> int:
        """How many nodes each node stands for; 1 if nothing stands for others."""
        return self._ranks.mesh.per_stage if self._ranks else 1

    def __getitem__(self, name: str) -> tuple[str, ...]:
        number = self._used[name]
        assert self._ranks is not None  # as somebody is used
        devices = self._ranks.cluster.devices
        return tuple(dict.fromkeys(devices[other].name for other in self._ranks.of_stage(number)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._used)

    def __len__(self) -> int:
        return len(self._used)
