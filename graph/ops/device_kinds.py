"""Kinds of devices: what placement and partitioning have to know of "CPU", "GPU" and whatever else is registered.

A kind is a value. The placer asks for its priority, the partitioner whether it has memory of its own and what lies in
host memory, the look-up of kernels whose kernels it has. No code compares the names of kinds, so that another kind is
one registration:

    register_device_kind(DeviceKind("NPU", priority=220))

Graphs may name devices of types that nobody registered. Such a type is taken to be an accelerator of the lowest
priority that has the kernels of a GPU; see `device_kind`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from ..dtypes import DataType

_NAME = re.compile("[A-Z][A-Z0-9_]*")
_LOWEST_PRIORITY = 50  # that of all types which TensorFlow 2.21 does not rank


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """The facts of a kind of device that decide where nodes go and in which memory their tensors lie.

    `name` is its type in device names, in upper case: people write "npu:1" for "/device:NPU:1". The placer takes
    devices of a higher `priority` first. A kind without `own_memory` computes in the memory of its host, so that no
    tensor changes memory on it.

    The host-memory rule: strings and resource handles are in host memory everywhere. A node with a kernel has those
    arguments there that the kernel names: `host_args` says which, by op, and of other ops the facts of TensorFlow 2.21
    about the kernels of `kernels_of`, "CPU" or "GPU". A node without a kernel has the ports of `host_types` there.

    Raises InvalidArgumentError for a name that is not in upper case and for facts that do not exist.
    """

    name: str
    priority: int = _LOWEST_PRIORITY
    own_memory: bool = True
    kernels_of: str = "GPU"
    host_types: frozenset[DataType] = frozenset({DataType.INT32})
    host_args: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Refuses what no device could be called or found by."""
        if _NAME.fullmatch(self.name) is None:
            raise InvalidArgumentError(f"kind {self.name!r}: a kind of device is called by capitals, digits and _")
        if self.kernels_of not in ("CPU", "GPU"):
            raise InvalidArgumentError(
                f"kind {self.name!r}: kernels_of = {self.kernels_of!r}; facts are at hand about kernels of CPU and GPU"
            )


_UNREGISTERED = DeviceKind("ACCELERATOR")
_kinds: dict[str, DeviceKind] = {}


def register_device_kind(kind: DeviceKind) -> None:
    """Makes a kind known under its name; the very same kind may be registered again.

    Raises AlreadyExistsError where the name stands for a kind with other facts.
    """
    known = _kinds.setdefault(kind.name, kind)
    if known != kind:
        raise AlreadyExistsError(f"device kind {kind.name!r} is registered with other facts: {known!r}")


def unregister_device_kind(name: str) -> None:
    """Takes a registration back, as a test does; NotFoundError when there is none."""
    if _kinds.pop(name, None) is None:
        raise NotFoundError(f"no device kind {name!r} is registered; there are {', '.join(_kinds)}")


def kind_names() -> tuple[str, ...]:
    """Names of the registered kinds, in order of registration."""
    return tuple(_kinds)


def device_kind(device_type: str) -> DeviceKind:
    """The kind that a type in a device name stands for; an accelerator of the lowest priority if none is registered."""
    return _kinds.get(device_type, _UNREGISTERED)


def prioritized_types(device_types: Iterable[str]) -> list[str]:
    """The distinct types, highest priority first, then by name."""
    return sorted(set(device_types), key=lambda name: (-device_kind(name).priority, name))


CPU = DeviceKind("CPU", priority=70, own_memory=False, kernels_of="CPU")
GPU = DeviceKind("GPU", priority=210)
# SYCL has a rank in TensorFlow; nothing else is known of it.
for _known in (CPU, GPU, DeviceKind("SYCL", priority=200)):
    register_device_kind(_known)
