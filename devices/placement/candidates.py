"""Which devices may run a node, best first.

Flows in: the devices of a run; a `Constraint` (device names to respect, device types with a kernel). Flows out: names
of the devices that fit. Always holds: devices are ranked by the priority of their kind (GPU before CPU), then those of
the client's task, then by name as a string, so "...:10" goes before "...:2"; the device of whoever calls a function
stands before all others when its body is placed; the first candidate is the placer's default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ...errors import FailedPreconditionError, InvalidArgumentError
from ...graph.device_name import (
    ParsedName,
    are_compatible,
    find_full_name,
    is_specification,
    merge,
    parse_full_name,
)
from ...graph.ops.device_kinds import device_kind, prioritized_types

ANY = ParsedName()


@dataclass(frozen=True, slots=True)
class Constraint:
    """Where a node, or a group of nodes that must stay together, may go.

    `requested` is what the author asked for, narrowed by `resource` (the requests of the variables in the group) and by
    `assigned` (devices that are settled); `types` are the device types that have a kernel for every node, best first.
    """

    types: tuple[str, ...]
    requested: ParsedName = ANY
    resource: ParsedName = ANY
    assigned: ParsedName = ANY

    def joined(self, other: Constraint, *, soft: bool) -> Constraint:
        """What holds for two nodes that must share a device.

        Raises InvalidArgumentError where device names conflict; with `soft` a conflict of requested types or ids only
        drops them, as far as variables and settled devices leave them open. `types` is empty when no device type runs
        both.
        """
        assigned, resource = merge(self.assigned, other.assigned), merge(self.resource, other.resource)
        requested = merge(self.requested, other.requested, soft=soft)
        return Constraint(
            tuple(kind for kind in self.types if kind in other.types),
            _specified(_specified(requested, assigned), resource),
            resource,
            assigned,
        )

    def following(self, source: Constraint, source_name: str, name: str) -> Constraint:
        """This constraint made to follow the group that a reference or resource comes from: the source wins.

        Raises InvalidArgumentError where settled devices or those of variables conflict.
        """
        for what, ours, theirs in (
            ("assigned", self.assigned, source.assigned),
            ("resource", self.resource, source.resource),
        ):
            if not are_compatible(ours, theirs):
                raise InvalidArgumentError(
                    "Cannot place the graph because a reference or resource edge connects colocation groups with "
                    f"incompatible {what} devices: {theirs} vs {ours}. The edge src node is {source_name} , and the "
                    f"dst node is {name}",
                    node=name,
                )
        if are_compatible(self.requested, source.requested):
            return self
        requested = _specified(_specified(source.requested, self.assigned), self.resource)
        return replace(self, requested=requested)


def _specified(name: ParsedName, base: ParsedName) -> ParsedName:
    """`name` with every part that `base` sets overwritten."""
    return ParsedName(
        name.job if base.job is None else base.job,
        name.replica if base.replica is None else base.replica,
        name.task if base.task is None else base.task,
        name.type if base.type is None else base.type,
        name.id if base.id is None else base.id,
    )


@dataclass(slots=True)
class DeviceSet:
    """The devices of a run, ranked, `default` before all others; `types` are their types, best first."""

    names: Sequence[str]
    local_task: str = ""
    default: str = ""
    ranked: list[tuple[str, ParsedName]] = field(init=False)
    types: list[str] = field(init=False)

    def __post_init__(self) -> None:
        if not self.names:
            raise FailedPreconditionError("No devices are registered")
        parsed = [(name, parse_full_name(name)) for name in self.names]
        for name, parts in parsed:
            if not parts.is_full:
                raise InvalidArgumentError(
                    f"{name!r} names no single device: job, replica, task, type and id must be set"
                )
        self.ranked = sorted(parsed, key=self._rank)
        self.types = prioritized_types(str(parts.type) for _, parts in parsed)

    def _rank(self, device: tuple[str, ParsedName]) -> tuple[bool, int, bool, str]:
        name, parts = device
        return name != self.default, -device_kind(str(parts.type)).priority, parts.task_name() != self.local_task, name

    def matching(self, name: ParsedName, types: Sequence[str] | None = None) -> list[str]:
        """Names of the devices that fit `name` and are of one of `types` (any when None), best first."""
        return [
            device
            for device, parts in self.ranked
            if is_specification(name, parts) and (types is None or parts.type in types)
        ]

    def candidates(self, constraint: Constraint, *, soft: bool) -> list[str]:
        """Names of the devices that fit, best first; [] when none does.

        With `soft`, when none does, the requested type and id are dropped as far as variables and settled devices leave
        them open, and then as far as settled devices do.
        """
        found = self.matching(constraint.requested, constraint.types)
        if found or not soft:
            return found
        settled = constraint.assigned
        for keeps_type, keeps_id in (
            (
                settled.type is not None or constraint.resource.type is not None,
                settled.id is not None or constraint.resource.id is not None,
            ),
            (settled.type is not None, settled.id is not None),
        ):
            found = self.matching(_softened(constraint.requested, keeps_type, keeps_id), constraint.types)
            if found:
                break
        return found

    def exists(self, name: str) -> bool:
        """Whether `name`, in either spelling, is one of these devices."""
        parts = find_full_name(name)
        return parts is not None and any(parts == known for _, known in self.ranked)


def _softened(name: ParsedName, keeps_type: bool, keeps_id: bool) -> ParsedName:
    return replace(name, type=name.type if keeps_type else None, id=name.id if keeps_type and keeps_id else None)
