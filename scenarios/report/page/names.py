"""Short names of devices and sizes of memories, also of a timeline that knows no cluster."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from ....devices import Cluster
from ....devices.short_names import ShortNames
from ....devices.timing import Timeline
from ....devices.timing.memory.kinds import MemoryPlace
from ....devices.timing.memory.use import limits_of
from ....graph.device_name import find_full_name


class PageNames:
    """What a page calls the devices of a timeline: "gpu:1" where the names are those of devices, else as they are."""

    def __init__(self, timeline: Timeline) -> None:
        self.cluster: Cluster | None = timeline.cluster
        full = [name for name in timeline.devices if (parsed := find_full_name(name)) and parsed.is_full]
        self._names = ShortNames(full) if self.cluster is None else self.cluster.short_names

    def short(self, text: str) -> str:
        """A text with short names for full ones."""
        return self._names.shorten(text)

    def model(self, device: str) -> str:
        """The model of a device, "" where nobody knows it."""
        return "" if self.cluster is None or device not in self.cluster else self.cluster.find(device).spec.name

    def memory_bytes(self, memory: tuple[str, MemoryPlace]) -> int | None:
        """The size of a memory, None where nobody knows it."""
        return self._limits.get(memory)

    @cached_property
    def _limits(self) -> Mapping[tuple[str, MemoryPlace], int | None]:
        return {} if self.cluster is None else limits_of(self.cluster)
