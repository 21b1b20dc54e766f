"""Which device types have a kernel for an op, and which arguments that kernel wants in host memory.

Flows in: op name, attrs, device type. Flows out: `KernelFacts`, or None where TensorFlow 2.21 has no such kernel. The
facts were read from TensorFlow's kernel registry by `tools/make_kernel_facts.py`; they say nothing about the kernels of
this program, which run anything they implement on every simulated device.

Always holds: a kernel of the device type itself goes before one for any device ("DEFAULT"). What the facts do not tell
is assumed, and marked so:

- All kernels are known of some 450 ops. Of the others only kernels with arguments in host memory are, so such an op
  is taken to have a kernel everywhere; on CPUs, where an op with a default kernel has nearly always one of its own
  too, its default kernels are left aside.
- Only kernels of CPUs and GPUs are known. Another kind of device says which of the two it has the kernels of.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from .device_kinds import CPU, device_kind, kind_names

_LABEL_ATTR = "_kernel"


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """One kernel: the arguments it wants in host memory; `assumed` when the facts do not mention the kernel itself."""

    host_args: frozenset[str] = frozenset()
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class _Entry:
    """A kernel and the element types that attrs must have for it."""

    constraints: tuple[tuple[str, frozenset[int]], ...]
    label: str
    facts: KernelFacts

    def matches(self, attrs: Mapping[str, Any], label: str) -> bool:
        """Whether a node with these attrs may run on this kernel."""
        return label == self.label and all(_allows(attrs.get(name), values) for name, values in self.constraints)


def _allows(value: Any, allowed: frozenset[int]) -> bool:  # a decoded attr: one type or a list of them
    return allowed.issuperset(value) if isinstance(value, tuple) else value in allowed


_ASSUMED = KernelFacts(assumed=True)


@cache
def _data() -> tuple[frozenset[str], dict[str, dict[str, list[Any]]]]:
    packed = files(__package__).joinpath("kernel_facts.json.gz").read_bytes()
    content = json.loads(gzip.decompress(packed))
    return frozenset(content["complete"]), content["kernels"]


@cache
def _entries(op: str, kernels_of: str) -> tuple[_Entry, ...]:
    complete, kernels = _data()
    return tuple(
        _Entry(
            tuple((name, frozenset(values)) for name, values in constraints.items()),
            label,
            KernelFacts(frozenset(host)),
        )
        for is_default, _, label, constraints, host in kernels[kernels_of].get(op, ())
        if not (is_default and kernels_of == CPU.name and op not in complete)
    )


def find_kernel(op: str, attrs: Mapping[str, Any], device_type: str) -> KernelFacts | None:
    """The kernel that a node with these attrs (decoded, defaults filled in) runs on, or None when there is none.

    The attr `_kernel` asks for a kernel with that label.
    """
    kind = device_kind(device_type)
    label = attrs[_LABEL_ATTR].decode() if _LABEL_ATTR in attrs else ""
    if op in kind.host_args:
        return KernelFacts(kind.host_args[op])
    for entry in _entries(op, kind.kernels_of):
        if entry.matches(attrs, label):
            return entry.facts
    return None if op in _data()[0] else _ASSUMED


def host_arguments(op: str) -> dict[str, frozenset[str]]:
    """By kind of device with a kernel for the op: all arguments that some kernel there wants in host memory."""
    found = {}
    for name in kind_names():
        entries = _entries(op, device_kind(name).kernels_of)
        if entries or op not in _data()[0]:
            found[name] = frozenset(arg for entry in entries for arg in entry.facts.host_args)
    return found


def types_with_kernel(op: str, attr: str, device_type: str) -> frozenset[int] | None:
    """The element types of `attr` that some kernel takes; None where kernels take whatever the op's declaration allows.

    None too for an op whose kernels are not all known.
    """
    if op not in _data()[0]:
        return None
    found: set[int] = set()
    for entry in _entries(op, device_kind(device_type).kernels_of):
        values = dict(entry.constraints).get(attr)
        if values is None:
            return None
        found |= values
    return frozenset(found)


def deciding_attrs(op: str, device_type: str) -> tuple[str, ...]:
    """Names of the attrs that `find_kernel` looks at for this op, sorted: equal values give equal kernels."""
    return _deciding_attrs(op, device_kind(device_type).kernels_of)


@cache
def _deciding_attrs(op: str, kernels_of: str) -> tuple[str, ...]:
    constrained = {name for entry in _entries(op, kernels_of) for name, _ in entry.constraints}
    return tuple(sorted(constrained | {_LABEL_ATTR}))
