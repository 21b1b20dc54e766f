"""The surroundings of a case: sizes, peers, a folder. A graph is written to a file once, and every program reads that
file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .fresh import Ended
from .peers.process import Peer, Peers
from .sampling import Sample

if TYPE_CHECKING:
    from .rows import Measured
    from .workloads import Workload


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything; the promises are about the default values."""

    graph_nodes: int = 100_000
    many_nodes: int = 1_000_000
    many_devices: int = 1024
    steps: int = 10_000
    program_nodes: int = 10_000
    iterations: int = 1_000
    simulated_iterations: int = 100_000
    transfers: int = 20_000
    file_events: int = 200_000
    contended_gpus: tuple[int, int, int] = (8, 64, 256)
    replicated_gpus: tuple[int, int] = (64, 256)
    undone_ops: int = 2_000
    shaped_ops: int = 2_000
    nested_functions: int = 100
    reduced_floats: int = 262_144
    reported_nodes: int = 5_000
    reported_events: tuple[int, int] = (200_000, 1_000_000)
    mapped_bytes: int = 200_000_000
    sent_bytes: tuple[int, int] = (1 << 20, 1 << 24)
    sent_scalars: int = 1_000
    process_hops: int = 100
    few_pairs: int = 1_000
    many_pairs: int = 100_000
    image: int = 224
    width_divisor: int = 1
    reported_layers: int = 7
    swept_points: int = 1_000
    swept_s: float = 0.05
    rounds: int = 5
    rounds_when_slow: int = 3
    seconds_a_run: float = 0.2


QUICK = Sizes(
    graph_nodes=400,
    many_nodes=800,
    many_devices=16,
    steps=20,
    program_nodes=100,
    iterations=10,
    simulated_iterations=20,
    transfers=50,
    file_events=400,
    contended_gpus=(2, 3, 4),
    replicated_gpus=(2, 4),
    undone_ops=20,
    shaped_ops=20,
    nested_functions=5,
    reduced_floats=100,
    reported_nodes=100,
    reported_events=(200, 400),
    mapped_bytes=4_000,
    sent_bytes=(400, 800),
    sent_scalars=10,
    process_hops=4,
    few_pairs=20,
    many_pairs=50,
    image=32,
    width_divisor=8,
    reported_layers=1,
    swept_points=6,
    swept_s=0.001,
    rounds=2,
    rounds_when_slow=1,
    seconds_a_run=0.001,
)


@dataclass(frozen=True, slots=True)
class Bench:
    """Sizes, peers, and the folder for graphs of one run."""

    sizes: Sizes
    peers: Peers
    folder: Path
    data: Path | None = None
    """a folder of published measurements, for rows that quote some"""
    cold: bool = False
    """whether the process has just begun, and what it has to load is to be measured, too"""
    whole: dict[str, tuple[Sample, float]] = field(default_factory=dict)
    """time and peak memory of whole processes, which two rows share"""
    large: dict[str, tuple[Sample, float]] = field(default_factory=dict)
    """the same per node, of large graphs"""
    many_devices: list[Ended] = field(default_factory=list)
    """the process that simulates a thousand devices, once it has ended; two rows share it"""
    contended: dict[str, dict[str, Any]] = field(default_factory=dict)
    """what processes said that simulate steps with contended links; rows share them"""
    pages: dict[str, dict[str, Any]] = field(default_factory=dict)
    """what a browser said that opened report pages, by what the pages show; rows share them"""
    measured: dict[str, Measured] = field(default_factory=dict)
    """what rows have been measured so far, by key; others are made of them"""
    _files: dict[str, Path] = field(default_factory=dict)

    def file(self, workload: Workload) -> Path:
        """The workload's graph in a file."""
        if workload.name not in self._files:
            path = self.folder / f"{len(self._files)}.pb"
            path.write_bytes(workload.data)
            self._files[workload.name] = path
        return self._files[workload.name]

    def peer(self, name: str) -> Peer | None:
        """The running peer of that name; None when it is not installed in any interpreter."""
        return self.peers.get(name)
