"""The devices that may run a node, best first.

Devices are ranked by the priority of their kind (GPU before CPU), then those of the client's task, then by name as a
string, so "...:10" comes before "...:2". When the body of a function is placed, the caller's device comes before all
others. The first candidate is the placer's default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ...errors import FailedPreconditionError, InvalidArgumentError
from ...graph.device_name import (
    ParsedName,
    are_compatible,
    find_full_name,
    merge,
    parse_full_name,
)
from ...graph.ops.device_kinds import device_kind, prioritized_types

ANY = ParsedName()
_CandidatesKey: TypeAlias = tuple[str | int | None, ...]  # job, replica, task, type and id of a name
_Open: TypeAlias = tuple[bool, ...]  # which of them a name leaves open


@dataclass(frozen=True, slots=True)
class Constraint:
    """The devices that a node, or a group of colocated nodes, may have.

    `requested` is the device that the author asked for, narrowed by `resource` (the requests of variables in the group)
    and by `assigned` (devices assigned before); `types` are the device types with a kernel for every node, best first.
    """

    types: tuple[str, ...]
    requested: ParsedName = ANY
    resource: ParsedName = ANY
    assigned: ParsedName = ANY

    def joined(self, other: Constraint, *, soft: bool) -> Constraint:
        """The constraint of two nodes that must share a device.

        Raises InvalidArgumentError when device names conflict. With `soft` conflicting requested types or ids are
        dropped instead, unless variables or assigned devices set them. `types` is empty when no device type has kernels
        for both.
        """
        assigned, resource = merge(self.assigned, other.assigned), merge(self.resource, other.resource)
        requested = merge(self.requested, other.requested, soft=soft)
        return Constraint(
            tuple(kind for kind in self.types if kind in other.types),
            _specified(_specified(requested, assigned), resource),
            resource,
            assigned,
        )

    def limited(self, other: Constraint, *, soft: bool) -> Constraint:
        """This constraint, within that of the body of a function. Raises InvalidArgumentError as `joined`.

        Unlike there a request that `soft` has dropped does not come back from the device of a resource: as in
        TensorFlow, a node that requests another device than its body needs may end on neither. An assigned device
        stays: an argument is there already.
        """
        return Constraint(
            tuple(kind for kind in self.types if kind in other.types),
            _specified(merge(self.requested, other.requested, soft=soft), self.assigned),
            merge(self.resource, other.resource),
            self.assigned,
        )

    def following(self, source: Constraint, source_name: str, name: str) -> Constraint:
        """This constraint, with the requested device of the group that the reference or resource comes from.

        Raises InvalidArgumentError when assigned devices or those of variables conflict.
        """
        for what, ours, theirs in (
            ("assigned", self.assigned, source.assigned),
            ("resource", self.resource, source.resource),
        ):
            if not are_compatible(ours, theirs):
                raise InvalidArgumentError(
                    "Cannot place the graph because a reference or resource edge connects colocation groups with "
                    f"incompatible {what} devices: {theirs} vs {ours}. The edge src node is {source_name}, and the "
                    f"dst node is {name}.",
                    node=name,
                )
        if are_compatible(self.requested, source.requested):
            return self
        requested = _specified(_specified(source.requested, self.assigned), self.resource)
        return replace(self, requested=requested)


def _specified(name: ParsedName, base: ParsedName) -> ParsedName:
    """`name` with every part that `base` sets overwritten."""
    if base in (ANY, name):
        return name
    return ParsedName(
        name.job if base.job is None else base.job,
        name.replica if base.replica is None else base.replica,
        name.task if base.task is None else base.task,
        name.type if base.type is None else base.type,
        name.id if base.id is None else base.id,
    )


@dataclass(slots=True)
class DeviceSet:
    """The devices of a run, ranked, `default` first; `types` are their types, best first."""

    names: Sequence[str]
    local_task: str = ""
    default: str = ""
    ranked: list[tuple[str, ParsedName]] = field(init=False)
    types: list[str] = field(init=False)
    _tables: dict[_Open, dict[_CandidatesKey, list[tuple[str, ParsedName]]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if not self.names:
            raise FailedPreconditionError("No devices are registered")
        parsed = [(name, parse_full_name(name)) for name in self.names]
        for name, parts in parsed:
            if not parts.is_full:
                raise InvalidArgumentError(
                    f"'{name}' does not name a single device: job, replica, task, type and id must be set"
                )
        self.ranked = sorted(parsed, key=self._rank)
        self.types = prioritized_types(str(parts.type) for _, parts in parsed)

    def _rank(self, device: tuple[str, ParsedName]) -> tuple[bool, int, bool, str]:
        name, parts = device
        return name != self.default, -device_kind(str(parts.type)).priority, parts.task_name() != self.local_task, name

    def matching(self, name: ParsedName, types: Sequence[str] | None = None) -> list[str]:
        """Names of the devices that fit `name` and are of one of `types` (any when None), best first."""
        return [device for device, parts in self._fitting(name) if types is None or parts.type in types]

    def _fitting(self, name: ParsedName) -> Sequence[tuple[str, ParsedName]]:
        """The devices that fit `name`, best first.

        Looked up in a table of the parts that `name` sets, made once for all names that set the same parts: a graph for
        a thousand devices requests each of them by name, and a pass over all devices per name would be quadratic.
        """
        leaves_open = tuple([part is None for part in _key(name)])
        table = self._tables.get(leaves_open)
        if table is None:
            table = self._tables[leaves_open] = {}
            for device in self.ranked:
                parts = zip(_key(device[1]), leaves_open, strict=True)
                table.setdefault(tuple([None if is_open else part for part, is_open in parts]), []).append(device)
        return table.get(_key(name), ())

    def candidates(self, constraint: Constraint, *, soft: bool) -> list[str]:
        """Names of the devices that fit, best first; [] when none does.

        With `soft`, when none fits, the requested type and id are dropped unless variables or assigned devices set
        them; when still none fits, unless assigned devices set them.
        """
        names = self.matching(constraint.requested, constraint.types)
        if names or not soft:
            return names
        assigned = constraint.assigned
        for keeps_type, keeps_id in (
            (
                assigned.type is not None or constraint.resource.type is not None,
                assigned.id is not None or constraint.resource.id is not None,
            ),
            (assigned.type is not None, assigned.id is not None),
        ):
            names = self.matching(_softened(constraint.requested, keeps_type, keeps_id), constraint.types)
            if names:
                break
        return names

    def exists(self, name: str) -> bool:
        """Whether `name`, full or legacy full, is one of these devices."""
        parts = find_full_name(name)
        return parts is not None and parts.is_full and bool(self._fitting(parts))


def _key(name: ParsedName) -> _CandidatesKey:
    return name.job, name.replica, name.task, name.type, name.id


def _softened(name: ParsedName, keeps_type: bool, keeps_id: bool) -> ParsedName:
    return replace(name, type=name.type if keeps_type else None, id=name.id if keeps_type and keeps_id else None)
