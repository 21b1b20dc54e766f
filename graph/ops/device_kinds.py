"""Kinds of devices: the facts about "CPU", "GPU" and other registered kinds that placement and partitioning ask for.

The placer asks for the priority of a kind, the partitioner for its memory and for what is in host memory, the look-up
of kernel facts for the kernels it has. No other code compares names of kinds, so a new kind is one registration:

    register_device_kind(DeviceKind("NPU", priority=220))

An installed package does so in a module that an entry point of `partita.device_kinds` names (see `entry_points.py`).
A device type that is not registered is taken for an accelerator of the lowest priority with the kernels of a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ...entry_points import import_modules
from ...errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from ..dtypes import DataType

GROUP = "partita.device_kinds"
"""the entry points of packages that add kinds of devices"""
_NAME = re.compile("[A-Z][A-Z0-9_]*")
_LOWEST_PRIORITY = 50  # of all types to which TensorFlow 2.21 gives no priority


class KernelTable(StrEnum):
    """The tables of facts about TensorFlow 2.21's kernels, which `kernel_facts` reads."""

    CPU = "CPU"
    GPU = "GPU"

    @property
    def counts_default_kernels(self) -> bool:
        """Whether a default kernel counts for an op of whose kernels only some are known.

        On CPUs such an op nearly always has a kernel of its own too, which goes first and is not known.
        """
        return self is not KernelTable.CPU


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """A kind of device, with the facts that decide where nodes are placed and which tensors are in host memory.

    `name` is the type in device names, in upper case; "npu:1" is short for "/device:NPU:1". The placer prefers devices
    of a higher `priority`. A kind without `own_memory` computes in host memory.

    Strings and resource handles are in host memory on every kind. A node with a kernel also has some arguments there:
    for ops in `host_args` those it names, for other ops those in the `KernelTable` that `kernels_of` names. A node
    without a kernel has the ports whose type is in `host_types` there.

    Raises InvalidArgumentError for a name that is not in upper case and for a `kernels_of` that is no table.
    """

    name: str
    priority: int = _LOWEST_PRIORITY
    own_memory: bool = True
    kernels_of: str = KernelTable.GPU
    host_types: frozenset[DataType] = frozenset({DataType.INT32})
    host_args: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Checks the name and `kernels_of`."""
        if _NAME.fullmatch(self.name) is None:
            raise InvalidArgumentError(f"kind {self.name!r}: the name of a kind has only capitals, digits and _")
        if self.kernels_of not in tuple(KernelTable):
            known = " and ".join(KernelTable)
            raise InvalidArgumentError(
                f"kind {self.name!r}: kernels_of = {self.kernels_of!r}; only the kernels of {known} are known"
            )

    @property
    def kernel_table(self) -> KernelTable:
        """The table of facts about kernels that the kind follows."""
        return KernelTable(self.kernels_of)


_UNREGISTERED = DeviceKind("ACCELERATOR")
_kinds: dict[str, DeviceKind] = {}


def register_device_kind(kind: DeviceKind) -> None:
    """Registers a kind; an equal one may be registered again. AlreadyExistsError for one with other facts."""
    known = _kinds.setdefault(kind.name, kind)
    if known != kind:
        raise AlreadyExistsError(f"device kind {kind.name!r} is registered with other facts: {known!r}")


def unregister_device_kind(name: str) -> None:
    """Removes a registration, for tests; NotFoundError if there is none."""
    if _kinds.pop(name, None) is None:
        raise NotFoundError(f"no device kind {name!r} is registered; there are {', '.join(_kinds)}")


def kind_names() -> tuple[str, ...]:
    """Names of the registered kinds, in order of registration."""
    return tuple(_kinds)


def device_kind(device_type: str) -> DeviceKind:
    """The registered kind of a device type, or the kind that stands for all unregistered types.

    The first unregistered type imports the kinds of installed packages.
    """
    if device_type and device_type not in _kinds:  # a node without a device has no type
        import_modules(GROUP)
    return _kinds.get(device_type, _UNREGISTERED)


def prioritized_types(device_types: Iterable[str]) -> list[str]:
    """The distinct types, highest priority first, then by name."""
    return sorted(set(device_types), key=lambda name: (-device_kind(name).priority, name))


CPU = DeviceKind("CPU", priority=70, own_memory=False, kernels_of=KernelTable.CPU)
GPU = DeviceKind("GPU", priority=210)
# TensorFlow gives SYCL a priority; nothing else is known about it.
for _known in (CPU, GPU, DeviceKind("SYCL", priority=200)):
    register_device_kind(_known)
