"""Device names: full, partial, local and legacy spellings.

"/job:worker/replica:0/task:3/device:GPU:1", any of its parts in any order, or the legacy "/gpu:1", is parsed into a
frozen `ParsedName`, in which None means "any"; `parse_full_name(str(p)) == p`. Parsing is memoised because a graph of a
million nodes names a handful of devices.

A partial name is a constraint on devices: `is_specification` tells whether one constraint implies another, `merge`
combines two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from ..errors import InvalidArgumentError

# The words that may stand before a colon. Old graphs write "/cpu:0" and "/gpu:0" without "device:"; device types that
# were added later never had that spelling, so this is syntax, not a list of the kinds of devices.
COMPONENTS = ("job", "replica", "task", "device", "cpu", "gpu")

_ANY = "*"
_HOW = "write /job:NAME/replica:N/task:N/device:TYPE:N or a part of it"
_NAME = "[A-Za-z][A-Za-z0-9_]*"
_COMPONENT = re.compile(
    rf"/(?:job:(?P<job>\*|{_NAME})"
    r"|replica:(?P<replica>\*|[0-9]+)"
    r"|task:(?P<task>\*|[0-9]+)"
    rf"|device:(?P<type>\*|{_NAME})(?::(?P<id>\*|[0-9]+))?"
    r"|(?P<legacy>cpu|CPU|gpu|GPU):(?P<legacy_id>\*|[0-9]+))"
)
_LOCAL = re.compile(rf"({_NAME}):([0-9]+)")


@dataclass(frozen=True, slots=True)
class ParsedName:
    """The parts of a device name, None for a part that is left open; with no part set it matches any device."""

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    type: str | None = None
    id: int | None = None

    @property
    def is_full(self) -> bool:
        """Whether every part is set, so that the name is that of exactly one device."""
        return self.has_task_parts and self.type is not None and self.id is not None

    @property
    def has_task_parts(self) -> bool:
        """Whether job, replica and task are all set."""
        return self.job is not None and self.replica is not None and self.task is not None

    def task_name(self) -> str:
        """The parts before the device, in the order job, replica, task; "" when none is set."""
        parts = (("job", self.job), ("replica", self.replica), ("task", self.task))
        return "".join(f"/{key}:{value}" for key, value in parts if value is not None)

    def __str__(self) -> str:
        if self.type is None and self.id is None:
            return self.task_name()
        return f"{self.task_name()}/device:{self.type or _ANY}:{_ANY if self.id is None else self.id}"


@lru_cache(maxsize=1 << 16)
def find_full_name(name: str) -> ParsedName | None:
    """The parsed name, or None when `name` is malformed."""
    if name in ("", "/"):
        return ParsedName()
    parts: dict[str, str | None] = {}
    position = 0
    while position < len(name):
        match = _COMPONENT.match(name, position)
        if match is None:
            return None
        _store(parts, match)
        position = match.end()
    return ParsedName(
        _text(parts, "job"),
        _number(parts, "replica"),
        _number(parts, "task"),
        _text(parts, "type"),
        _number(parts, "id"),
    )


def _store(parts: dict[str, str | None], match: re.Match[str]) -> None:
    kind = match.lastgroup
    if kind == "legacy_id":
        parts["type"], parts["id"] = match["legacy"].upper(), match["legacy_id"]
    elif kind in ("type", "id"):
        parts["type"], parts["id"] = match["type"], match["id"]
    elif kind is not None:
        parts[kind] = match[kind]


def _text(parts: dict[str, str | None], key: str) -> str | None:
    value = parts.get(key)
    return None if value == _ANY else value


def _number(parts: dict[str, str | None], key: str) -> int | None:
    digits = _text(parts, key)
    return None if digits is None else int(digits)


def parse_full_name(name: str) -> ParsedName:
    """Parses a full or partial device name.

    Parts come in any order and a later part overrides an earlier one of its kind. A part that is "*" or missing means
    any; "" and "/" leave all open. "/cpu:0" and "/gpu:0" are legacy for types CPU and GPU; "/device:gpu:0" has type
    "gpu", not GPU. Raises InvalidArgumentError for anything else.
    """
    parsed = find_full_name(name)
    if parsed is None:
        raise InvalidArgumentError(f"{name!r} is no device name; {_HOW}")
    return parsed


def device_order(device: str) -> tuple[str, int, int, str, int]:
    """What the members of a collective are ranked by, of a full name: job, replica, task, kind and number."""
    name = parse_full_name(device)
    return name.job or "", name.replica or 0, name.task or 0, name.type or "", name.id or 0


def find_local_name(name: str) -> ParsedName | None:
    """The parsed "TYPE:ID", or None when `name` is malformed."""
    match = _LOCAL.fullmatch(name)
    return None if match is None else ParsedName(type=match[1], id=int(match[2]))


def parse_local_name(name: str) -> ParsedName:
    """Parses "TYPE:ID", e.g. "CPU:10"; InvalidArgumentError for anything else."""
    parsed = find_local_name(name)
    if parsed is None:
        raise InvalidArgumentError(f"{name!r} is no local device name; write TYPE:ID, for example CPU:0")
    return parsed


def full_name(job: str, replica: int, task: int, device_type: str, device_id: int) -> str:
    """The name of one device in the modern spelling."""
    return f"/job:{job}/replica:{replica}/task:{task}/device:{device_type}:{device_id}"


def legacy_full_name(job: str, replica: int, task: int, device_type: str, device_id: int) -> str:
    """The name of one device as old graphs spell it: lower-case type and no "device:"."""
    return f"/job:{job}/replica:{replica}/task:{task}/{device_type.lower()}:{device_id}"


def local_name(device_type: str, device_id: int) -> str:
    """The name of a device within its task."""
    return f"/device:{device_type}:{device_id}"


def legacy_local_name(device_type: str, device_id: int) -> str:
    """The name of a device within its task, as old programs spell it."""
    return f"{device_type}:{device_id}"


def names_for_device_mappings(parsed: ParsedName) -> list[str]:
    """Both full names that a device is looked up by, modern and legacy; empty unless all parts are set."""
    job, replica, task, device_type, device_id = parsed.job, parsed.replica, parsed.task, parsed.type, parsed.id
    if job is None or replica is None or task is None or device_type is None or device_id is None:
        return []
    parts = (job, replica, task, device_type, device_id)
    return [full_name(*parts), legacy_full_name(*parts)]


def local_names_for_device_mappings(parsed: ParsedName) -> list[str]:
    """Both names that a device is looked up by within its task; empty unless type and id are set."""
    if parsed.type is None or parsed.id is None:
        return []
    return [local_name(parsed.type, parsed.id), legacy_local_name(parsed.type, parsed.id)]


def split_device_name(name: str) -> tuple[str, str]:
    """Task part (in the order job, replica, task) and "TYPE:ID" of a device name.

    Raises InvalidArgumentError when the name is malformed or leaves type or id open.
    """
    parsed = parse_full_name(name)
    if parsed.type is None or parsed.id is None:
        raise InvalidArgumentError(f"{name!r} names no single device of its task: type and id must be set")
    return parsed.task_name(), legacy_local_name(parsed.type, parsed.id)


def is_specification(less_specific: ParsedName, more_specific: ParsedName) -> bool:
    """Whether every part that `less_specific` sets is set to the same value in `more_specific`."""
    pairs = zip(_parts(less_specific), _parts(more_specific), strict=True)
    return all(less is None or less == more for less, more in pairs)


def is_complete_specification(pattern: ParsedName, name: ParsedName) -> bool:
    """Whether `name` is full and fits `pattern`."""
    return name.is_full and is_specification(pattern, name)


def are_compatible(a: ParsedName, b: ParsedName) -> bool:
    """Whether no part is set to different values in the two, so that some device may match both."""
    if a == b:
        return True  # as nearly always, and quicker
    pairs = zip(_parts(a), _parts(b), strict=True)
    return all(x is None or y is None or x == y for x, y in pairs)


def is_same_address_space(a: ParsedName, b: ParsedName) -> bool:
    """Whether both set job, replica and task, to the same values."""
    return a.has_task_parts and a.task_name() == b.task_name()


def merge(target: ParsedName, other: ParsedName, *, soft: bool = False) -> ParsedName:
    """The constraint that implies both: parts set in either.

    With `soft`, a conflict of types opens type and id, a conflict of ids opens the id. Every other conflict raises
    InvalidArgumentError; conflicts are checked in the order job, replica, task, type, id.
    """
    if other == target:
        return target
    merged = target
    for key in ("job", "replica", "task"):
        merged = _merge_part(merged, other, key)
    if soft and _conflict(merged, other, "type"):
        return replace(merged, type=None, id=None)
    merged = _merge_part(merged, other, "type")
    if soft and _conflict(merged, other, "id"):
        return replace(merged, id=None)
    return _merge_part(merged, other, "id")


def _conflict(a: ParsedName, b: ParsedName, key: str) -> bool:
    x, y = getattr(a, key), getattr(b, key)
    return x is not None and y is not None and x != y


def _merge_part(target: ParsedName, other: ParsedName, key: str) -> ParsedName:
    if _conflict(target, other, key):
        raise InvalidArgumentError(f"Cannot merge devices with incompatible {key}s: '{target}' and '{other}'")
    value = getattr(other, key)
    return target if value is None or value == getattr(target, key) else replace(target, **{key: value})


def complete(name: ParsedName, base: ParsedName) -> ParsedName:
    """`name` with its open parts filled in from `base`."""
    return ParsedName(
        base.job if name.job is None else name.job,
        base.replica if name.replica is None else name.replica,
        base.task if name.task is None else name.task,
        base.type if name.type is None else name.type,
        base.id if name.id is None else name.id,
    )


def canonicalize(name: str, base: str) -> str:
    """The full modern spelling of a local, partial or full name; open parts come from the full name `base`.

    Raises InvalidArgumentError when either is malformed or `base` leaves a part open.
    """
    parsed_base, parsed = find_full_name(base), find_local_name(name) or find_full_name(name)
    if parsed_base is None:
        raise InvalidArgumentError(f"Could not parse basename: {base} into a device specification; {_HOW}")
    if not parsed_base.is_full:
        raise InvalidArgumentError(f"Basename: {base} should be fully specified.")
    if parsed is None:
        raise InvalidArgumentError(f"Could not parse {name} into a device specification; {_HOW}")
    return str(complete(parsed, parsed_base))


def _parts(name: ParsedName) -> tuple[str | int | None, ...]:
    return name.job, name.replica, name.task, name.type, name.id
