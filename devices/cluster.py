"""The machines of a run: devices, the links between them, and the client device, which feeds come from.

Names of devices are unique, and the first device is the client's. A cluster does not change: `with_restarted` returns
another one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from attrs import evolve

from ..errors import AlreadyExistsError, InvalidArgumentError
from ..graph.device_name import (
    canonicalize,
    device_order,
    find_full_name,
    find_local_name,
    local_names_for_device_mappings,
    names_for_device_mappings,
    parse_full_name,
)
from ..graph.ops.device_kinds import CPU, device_kind
from .catalog import device_spec
from .cluster_html import cluster_html
from .device import ILLEGAL_INCARNATION, Device
from .kinds import cluster_kinds, defaults_of
from .operating_costs import OperatingCosts
from .profiles import Profiles
from .short_names import ShortNames
from .spec import DeviceSpec, without_tf32
from .topology import LinkRules, Topology

_EXAMPLE = 'write "cpu:4" or "cpu:2,gpu:4"'
_ITEM = re.compile(r"(?P<kind>[A-Za-z][A-Za-z0-9_]*)(?::(?P<count>[0-9]{1,99}))?")
MOST_DEVICES = 1 << 16  # larger than any real cluster; a session has an actor for each device
_LISTED = 8  # names that an error shows; it gives the number of the others


class Cluster:
    """Devices by name, the topology that joins them, and when they are slow; iterates over the devices in order."""

    def __init__(
        self, devices: Sequence[Device], rules: LinkRules | None = None, profiles: Profiles | None = None
    ) -> None:
        """Raises InvalidArgumentError for no devices or too many, AlreadyExistsError for two of one name."""
        if not devices:
            raise InvalidArgumentError("a cluster needs at least one device; write [[device]] with a spec")
        check_count(len(devices), "the cluster")
        self.devices = tuple(devices)
        self.topology = Topology(self.devices, rules)
        self.profiles = profiles or Profiles()
        self._by_name: dict[str, Device] = {}
        for device in self.devices:
            if device.name in self._by_name:
                raise AlreadyExistsError(f"two devices are called {device.name!r}; give them different indices")
            for name in names_for_device_mappings(parse_full_name(device.name)):
                self._by_name[name] = device
        for device in self.devices:
            if device.task_name == self.client.task_name:
                local = parse_full_name(device.name)
                for name in (*local_names_for_device_mappings(local), f"{device.type.lower()}:{device.index}"):
                    self._by_name.setdefault(name, device)

    @property
    def client(self) -> Device:
        """The device that feeds come from and fetches go to: the first."""
        return self.devices[0]

    @property
    def names(self) -> list[str]:
        """Full names of all devices, in order."""
        return [device.name for device in self.devices]

    @cached_property
    def ranked(self) -> tuple[Device, ...]:
        """The accelerators, or the CPUs of a cluster without any, in the order in which collectives rank members."""
        own = [device for device in self.devices if device_kind(device.type).own_memory]
        return tuple(sorted(own or self.devices, key=lambda device: device_order(device.name)))

    @cached_property
    def operating_costs(self) -> OperatingCosts:
        """Of all devices together; unknown where unknown of a `ranked` one. What is unknown of others adds nothing."""
        ranked = {device.name for device in self.ranked}
        others = [device.operating_costs for device in self if device.name not in ranked]
        return OperatingCosts.together([device.operating_costs for device in self.ranked], others)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The place of every device in the order, by its full name."""
        return {device.name: number for number, device in enumerate(self.devices)}

    @cached_property
    def short_names(self) -> ShortNames:
        """The short names of the devices: "gpu:1", "task 1 gpu:0"."""
        return ShortNames(self.names)

    def __iter__(self) -> Iterator[Device]:
        return iter(self.devices)

    def __len__(self) -> int:
        return len(self.devices)

    def find(self, name: str) -> Device:
        """The device of a full, legacy full, local or short name; missing parts are those of the client device.

        Raises InvalidArgumentError, listing what exists, when there is none.
        """
        device = self._by_name.get(name)
        if device is None and name and (find_full_name(name) or find_local_name(name)):
            device = self._by_name.get(canonicalize(name, self.client.name))
        if device is None:
            full = next((full for full, short in self.short_names.by_device.items() if short == name), "")
            device = self._by_name.get(full)
        if device is None:
            raise InvalidArgumentError(f"{name!r} is no device of this cluster, which has {self._listing()}")
        self._by_name[name] = device
        return device

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and bool(self.find(name))
        except InvalidArgumentError:
            return False

    def incarnation(self, name: str) -> int:
        """The incarnation of a device by name; 0 when the cluster does not have it."""
        return self.find(name).incarnation if name in self else ILLEGAL_INCARNATION

    def with_restarted(self, name: str) -> Cluster:
        """The cluster after one device restarted."""
        old = self.find(name)
        devices = [device.restarted() if device is old else device for device in self]
        return Cluster(devices, self.topology.rules, self.profiles)

    def without_tf32(self) -> Cluster:
        """The cluster with TF32 switched off on every device; see `spec.without_tf32`."""
        specs = {id(device.spec): device.spec for device in self}
        off = {number: without_tf32(spec) for number, spec in specs.items()}  # devices go on sharing their specs
        devices = [evolve(device, spec=off[id(device.spec)]) for device in self]
        return Cluster(devices, self.topology.rules, self.profiles)

    def _listing(self) -> str:
        more = len(self.devices) - _LISTED
        return ", ".join(self.names[:_LISTED]) + (f" and {more} more" if more > 0 else "")

    def __repr__(self) -> str:
        models = Counter(device.spec.name for device in self.devices)
        listed = [f"{many} {model}" for model, many in models.most_common(_LISTED)]
        return f"<Cluster of {len(self.devices)} devices: {', '.join(listed)}{', ...' * (len(models) > _LISTED)}>"

    def _repr_html_(self) -> str:
        return cluster_html(self)


def local_cluster(
    text: str,
    *,
    rules: LinkRules | None = None,
    **specs: str | DeviceSpec,
) -> Cluster:
    """One task "/job:localhost/replica:0/task:0" with the devices of a text: "cpu:4", "gpu", "cpu:2,gpu:4".

    `specs` are specs or names of the catalog by kind: `cpu="Xeon 8280"`, `gpu=...`; the other kinds have the default
    spec of their registration. CPUs come first, so the client device is CPU:0; a text without "cpu" gets one CPU, as
    every task has a host. Raises InvalidArgumentError for any other text, and for a spec of a kind that is not
    registered.
    """
    counts = dict.fromkeys(cluster_kinds(_asked(text, specs)), 0)
    for kind in specs:
        if kind not in map(str.lower, counts):
            raise InvalidArgumentError(
                f"{kind}={specs[kind]!r}: no kind of device is called {kind!r}; {_known(counts)}"
            )
    for item in _items(text):
        match = _ITEM.fullmatch(item)
        if match is None or match["kind"].upper() not in counts:
            raise InvalidArgumentError(f"cluster {text!r}: {item!r} is not {_known(counts)}; {_EXAMPLE}")
        kind, count = match["kind"].upper(), int(match["count"] or 1)
        if counts[kind]:
            raise InvalidArgumentError(f"cluster {text!r}: {kind.lower()} is given twice; {_EXAMPLE}")
        if not count:
            raise InvalidArgumentError(f"cluster {text!r}: {item!r} asks for no device; {_EXAMPLE}")
        check_count(count, f"cluster {text!r}: {item!r}")
        counts[kind] = count
    counts[CPU.name] = counts[CPU.name] or 1
    devices: list[Device] = []
    for kind, count in counts.items():
        if count or kind.lower() in specs:
            spec = _spec(specs.get(kind.lower()), kind)
            devices += [Device(spec, index) for index in range(count)]
    return Cluster(devices, rules)


def _asked(text: str, specs: Iterable[str]) -> Iterator[str]:
    """The kinds of devices named in a text and in names of specs, also where the text is malformed."""
    yield from (item.partition(":")[0].strip().upper() for item in text.split(","))
    yield from map(str.upper, specs)


def check_count(count: int, what: str) -> None:
    """InvalidArgumentError that begins with `what` for more devices than a cluster may have."""
    if count > MOST_DEVICES:
        raise InvalidArgumentError(f"{what} asks for {count:,} devices; a cluster has at most {MOST_DEVICES:,}")


def _items(text: str) -> list[str]:
    if not text.strip():
        raise InvalidArgumentError(f"cluster {text!r} names no device; {_EXAMPLE}")
    return [item.strip() for item in text.split(",")]


def default_spec(kind: str) -> DeviceSpec:
    """The default spec of a kind of device; InvalidArgumentError if the kind has none."""
    name = defaults_of(kind).spec
    if name is None:
        raise InvalidArgumentError(
            f"there is no default model of a {kind}: give {kind.lower()}=SPEC, write a cluster file with a spec of it, "
            "or register the kind with KindDefaults(spec=NAME)"
        )
    return device_spec(name)


def _known(kinds: Iterable[str]) -> str:
    return " or ".join(f"{kind.lower()}:N" for kind in kinds)


def _spec(spec: str | DeviceSpec | None, kind: str) -> DeviceSpec:
    if spec is None:
        return default_spec(kind)
    model = device_spec(spec) if isinstance(spec, str) else spec
    if model.kind != kind:
        raise InvalidArgumentError(f"{model.name!r} is a {model.kind}, not a {kind}; choose another model")
    return model
