"""Defaults of a kind of device: the model that "gpu:2" means, its links, and numbers that a spec may leave out.

What placement and partitioning know of a kind is its `DeviceKind` (graph/ops/device_kinds.py). Once both are
registered, "npu:4" is a cluster, a cluster file may have `kind = "NPU"`, and "host-npu" and "npus" are links that it
may define:

    register_device_kind(
        DeviceKind("NPU", priority=220),
        KindDefaults(spec="Acme N1", host_link="PCIe5 x16", assumed={"launch_overhead": "8 us", ...}),
    )
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import Factory, frozen

from ..entry_points import import_modules
from ..errors import AlreadyExistsError, NotFoundError
from ..graph.ops import device_kinds
from ..graph.ops.device_kinds import DeviceKind


@frozen
class KindDefaults:
    """The defaults of one kind of device; every field is optional.

    `spec` is the model of the catalog that "npu:4" means; without it a cluster must name a spec. `assumed` holds the
    numbers that a spec written as a table may leave out, as texts with units under the keys of a cluster file.
    `host_link` and `peer_link` are the models of the links to the host and to devices of the same kind in the same
    host, for specs that name none; a device without a link to its host has no route. A kind that computes in the memory
    of its host needs neither link.
    """

    spec: str | None = None
    assumed: Mapping[str, str] = Factory(dict)
    host_link: str | None = None
    peer_link: str | None = None


_defaults: dict[str, KindDefaults] = {}


def register_device_kind(kind: DeviceKind, defaults: KindDefaults | None = None) -> None:
    """Makes a kind of device known to graphs and clusters; the very same registration may be repeated.

    Raises AlreadyExistsError when the name is registered with other facts or defaults.
    """
    new = defaults or KindDefaults()
    device_kinds.register_device_kind(kind)
    if _defaults.setdefault(kind.name, new) != new:
        raise AlreadyExistsError(f"device kind {kind.name!r} is registered with other defaults: {_defaults[kind.name]}")


def unregister_device_kind(name: str) -> None:
    """Removes a registration (for tests); NotFoundError when there is none."""
    defaults_of(name)
    del _defaults[name]
    device_kinds.unregister_device_kind(name)


def defaults_of(name: str) -> KindDefaults:
    """The defaults of a registered kind; NotFoundError, listing what is registered, for any other."""
    if name not in cluster_kinds([name]):
        raise NotFoundError(f"no device kind {name!r} is registered; there are {', '.join(_defaults)}")
    return _defaults[name]


def cluster_kinds(asked: Iterable[str] = ()) -> list[str]:
    """Names of the kinds that a cluster may have devices of, in order of registration, the host's first.

    Where one of `asked` is not registered, the kinds of installed packages are registered first.
    """
    if any(name not in _defaults for name in asked):
        import_modules(device_kinds.GROUP)
    return list(_defaults)


# For specs without measurements: with the peak rates of a datasheet and launches that cost nothing, a device would be
# faster than any that exists.
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
