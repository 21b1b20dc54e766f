"""Which kernels TensorFlow 2.21 has for an op on a type of device, and which of their arguments are in host memory.

`tools/make_kernel_facts.py` has read the facts from TensorFlow's kernel registry. They decide placement and memory
types; the kernels of this program run on every simulated device. The facts have gaps, which are filled by assumptions:

- All kernels are known for about 450 ops. For any other op only the kernels with arguments in host memory are known; it
  is assumed to have a kernel everywhere. On CPUs its "DEFAULT" kernels, those for any device type, are ignored, because
  such an op nearly always has a CPU kernel too.
- Only kernels of CPUs and GPUs are known. Any other kind of device says which of the two it resembles.

An op of your own has the kernels that were registered for it (`own_kernels`).

A kernel for the device type itself is preferred to a "DEFAULT" kernel.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

from ..dtypes import DataType
from .device_kinds import KernelTable, device_kind, kind_names
from .own_kernels import host_args_of_own, own_kernels

_LABEL_ATTR = "_kernel"


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """One kernel: its arguments in host memory; `assumed` if the facts do not list the kernel."""

    host_args: frozenset[str] = frozenset()
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class _Entry:
    """A kernel, its label, and the element types that it allows, by attr."""

    constraints: tuple[tuple[str, frozenset[int]], ...]
    label: str
    facts: KernelFacts

    def matches(self, attrs: Mapping[str, Any], label: str) -> bool:
        """Whether a node with these attrs can use this kernel."""
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
def _entries(op: str, table: KernelTable) -> tuple[_Entry, ...]:
    complete, kernels = _data()
    return tuple(
        _Entry(
            tuple((name, frozenset(values)) for name, values in constraints.items()),
            label,
            KernelFacts(frozenset(host)),
        )
        for is_default, _, label, constraints, host in kernels[table].get(op, ())
        if not is_default or table.counts_default_kernels or op in complete
    )


def find_kernel(op: str, attrs: Mapping[str, Any], device_type: str) -> KernelFacts | None:
    """The kernel of a node with these attrs (decoded, with defaults), or None if there is none.

    The attr `_kernel` selects kernels by label.
    """
    kind = device_kind(device_type)
    label = attrs[_LABEL_ATTR].decode() if _LABEL_ATTR in attrs else ""
    if op in kind.host_args:
        return KernelFacts(kind.host_args[op])
    if own_kernels(op) is not None:
        own = host_args_of_own(op, device_type)
        return None if own is None else KernelFacts(own)
    for entry in _entries(op, kind.kernel_table):
        if entry.matches(attrs, label):
            return entry.facts
    return None if op in _data()[0] else _ASSUMED


def host_arguments(op: str) -> dict[str, frozenset[str]]:
    """All arguments that some kernel of the op has in host memory, by name of the kind of device."""
    host_args: dict[str, frozenset[str]] = {}
    for name in kind_names():
        if own_kernels(op) is not None:
            own = host_args_of_own(op, name)
            host_args.update({} if own is None else {name: own})
            continue
        entries = _entries(op, device_kind(name).kernel_table)
        if entries or op not in _data()[0]:
            host_args[name] = frozenset(arg for entry in entries for arg in entry.facts.host_args)
    return host_args


def registered_kernels(op: str) -> list[str]:
    """The known kernels of an op in words, as TensorFlow lists them: `device='CPU'; T in [DT_FLOAT]`.

    TensorFlow mostly registers a kernel for each type, so there is a text for each; its order and XLA's are not known.
    """
    own = own_kernels(op)
    if own is not None:
        return [f"device='{kind}'" for kind in kind_names() if host_args_of_own(op, kind) is not None]
    texts: dict[str, None] = {}
    for table, kernels in _data()[1].items():
        for is_default, _, label, constraints, _ in kernels.get(op, ()):
            device = f"device='{'DEFAULT' if is_default else table}'" + (f"; label='{label}'" if label else "")
            for types in product(*constraints.values()):
                allowed = zip(constraints, types, strict=True)
                texts["; ".join([device, *(f"{name} in [DT_{DataType(t).name}]" for name, t in allowed)])] = None
    return list(texts)


def types_with_kernel(op: str, attr: str, device_type: str) -> frozenset[int] | None:
    """The element types of `attr` for which there is a kernel.

    None if the kernels allow every type that the op declares, or if not all its kernels are known.
    """
    if op not in _data()[0]:
        return None
    types: set[int] = set()
    for entry in _entries(op, device_kind(device_type).kernel_table):
        values = dict(entry.constraints).get(attr)
        if values is None:
            return None
        types |= values
    return frozenset(types)


def deciding_attrs(op: str, device_type: str) -> tuple[str, ...]:
    """Names of the attrs that `find_kernel` reads for this op, sorted. Equal values of them give equal kernels."""
    return _deciding_attrs(op, device_kind(device_type).kernel_table)


@cache
def _deciding_attrs(op: str, table: KernelTable) -> tuple[str, ...]:
    constrained = {name for entry in _entries(op, table) for name, _ in entry.constraints}
    return tuple(sorted(constrained | {_LABEL_ATTR}))
