"""What the picture of a step, as text or for a notebook, asks of its timeline; see `Timeline` for what each says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..cluster import Cluster
    from ..topology import Link
    from .events import Events
    from .link_use import LinkLoad
    from .memory.curve import MemoryCurve
    from .memory.kinds import MemoryPlace
    from .memory.use import MemoryPeak
    from .totals import OpTotal


class PicturedStep(Protocol):
    """A timeline: this module imports none, so that a timeline can import those that draw it."""

    makespan_ns: int
    columns: Events
    cluster: Cluster | None
    warnings: tuple[str, ...]
    peak_bytes: dict[tuple[str, MemoryPlace], int]

    @property
    def devices(self) -> list[str]: ...
    @property
    def models(self) -> dict[str, str]: ...
    @property
    def basis(self) -> str: ...
    @property
    def shortages(self) -> tuple[str, ...]: ...
    @property
    def links(self) -> tuple[Link, ...]: ...

    def streams(self, device: str) -> list[str]: ...
    def busy_ns(self, device: str, stream: str = ...) -> int: ...
    def busy_fraction(self, device: str, stream: str = ...) -> float: ...
    def communication(self, device: str) -> tuple[int, int]: ...
    def link_loads(self, link: Link | str) -> list[LinkLoad]: ...
    def memory(self, device: str, place: MemoryPlace = ...) -> MemoryPeak: ...
    def memory_over_time(self, device: str, place: MemoryPlace = ...) -> MemoryCurve: ...
    def totals_by_op(self) -> Sequence[OpTotal]: ...
    def render(self, width: int = ..., *, most_devices: int | None = ...) -> str: ...
