"""Kinds of devices as a cluster has them: the model that "gpu:2" stands for, and what a spec of the kind leaves out.

What placement and partitioning have to know of a kind is its `DeviceKind`, in the graph's part of the program. Here are
the numbers beside it. Both are registered together, and then "npu:4" is a cluster, `kind = "NPU"` may stand in a
cluster file, and "host-npu" and "npus" are links of it:

    register_device_kind(
        DeviceKind("NPU", priority=220),
        KindDefaults(spec="Acme N1", host_link="PCIe5 x16", assumed={"launch_overhead": "8 us", ...}),
    )
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import Factory, frozen

from ..errors import AlreadyExistsError, NotFoundError
from ..graph.ops import device_kinds
from ..graph.ops.device_kinds import DeviceKind


@frozen
class KindDefaults:
    """What stands where a cluster says nothing about a device of a kind. All of it may be left out.

    `spec` is the model of the catalog that "npu:4" makes four of; without one a cluster names a spec. `assumed` holds
    the numbers that a spec written as a table may leave out, as texts with units under their keys in a cluster file; a
    number that is not there has to be given. `host_link` and `peer_link` are the models of the links to its host and to
    others of its kind in the same host, where the spec names none: a device without any link to its host has no route.
    A kind without memory of its own needs neither.
    """

    spec: str | None = None
    assumed: Mapping[str, str] = Factory(dict)
    host_link: str | None = None
    peer_link: str | None = None


_defaults: dict[str, KindDefaults] = {}


def register_device_kind(kind: DeviceKind, defaults: KindDefaults | None = None) -> None:
    """Makes a kind of device known to graphs and clusters; the very same registration may be repeated.

    Raises AlreadyExistsError where the name stands for something else.
    """
    wanted = defaults or KindDefaults()
    device_kinds.register_device_kind(kind)
    if _defaults.setdefault(kind.name, wanted) != wanted:
        raise AlreadyExistsError(f"device kind {kind.name!r} is registered with other defaults: {_defaults[kind.name]}")


def unregister_device_kind(name: str) -> None:
    """Takes a registration back, as a test does; NotFoundError when there is none."""
    defaults_of(name)
    del _defaults[name]
    device_kinds.unregister_device_kind(name)


def defaults_of(name: str) -> KindDefaults:
    """The defaults of a registered kind; NotFoundError, listing what is registered, for any other."""
    if name not in _defaults:
        raise NotFoundError(f"no device kind {name!r} is registered; there are {', '.join(_defaults)}")
    return _defaults[name]


def cluster_kinds() -> list[str]:
    """Names of the kinds that a cluster may have devices of, in order of registration, the host's first."""
    return list(_defaults)


# Where nothing was measured: at the peaks of a datasheet and without a price for a launch, a device would be faster
# than any that exists.
register_device_kind(
    device_kinds.CPU,
    KindDefaults(
        spec="generic-cpu",
        assumed={
            "launch_overhead": "300 ns",
            "matrix_efficiency": "80 %",
            "vector_efficiency": "50 %",
            "memory_efficiency": "80 %",
        },
    ),
)
register_device_kind(
    device_kinds.GPU,
    KindDefaults(
        spec="A100-80GB",
        assumed={
            "launch_overhead": "5 us",
            "matrix_efficiency": "80 %",
            "vector_efficiency": "70 %",
            "memory_efficiency": "80 %",
        },
        host_link="PCIe4 x16",
    ),
)
