"""Which ports of a node live in host memory on a given type of device.

Flows in: the properties of a node and a device type. Flows out: one bool per input and one per output, True for host.
Always holds: the answer depends on op, port types, and the few attrs that choose a kernel, and is memoised on just
those, so that a hundred thousand constants share one entry.

The rules, those of TensorFlow 2.21: the arguments that the node's kernel names, strings and resource handles
anywhere, and the ports that the attrs `_input_hostmem` and `_output_hostmem` number. A node without a kernel there
(and the call of a function, or a functional loop, whose kernel nobody asks) has strings, resource handles and the types
that the kind of device keeps there (int32, unless it says otherwise) on the host, whatever its attrs say.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import DataType, always_on_host
from .device_kinds import device_kind
from .kernel_facts import KernelFacts, deciding_attrs, find_kernel
from .properties import NodeProperties
from .record import Calls
from .registry import find_op
from .type_inference import name_ranges

MemoryTypes = tuple[tuple[bool, ...], tuple[bool, ...]]

_CALLS = (Calls.CALL, Calls.GRADIENT, Calls.WHILE)  # as in TensorFlow, which leaves out conditionals
_FORCED = ("_input_hostmem", "_output_hostmem")
_memo: dict[tuple[object, ...], MemoryTypes] = {}


def memory_types(properties: NodeProperties, device_type: str) -> MemoryTypes:
    """Per input and per output, whether it is in host memory when the node runs on a device of that type."""
    attrs = properties.attrs
    names = deciding_attrs(properties.op, device_type) + _FORCED
    values = tuple(map(attrs.find, names))
    # The signature by identity, not the name: functions of different graphs may share one.
    kind = device_kind(device_type)
    key = (properties.op_def, kind, properties.input_types, properties.output_types, values)
    found = _memo.get(key)
    if found is None:
        found = _memo[key] = _memory_types(properties, device_type)
    return found


def _memory_types(properties: NodeProperties, device_type: str) -> MemoryTypes:
    is_call = properties.op_def.record.calls in _CALLS or find_op(properties.op) is not properties.op_def
    kernel = None if is_call else find_kernel(properties.op, properties.attrs, device_type)
    if kernel is None:
        host_types = device_kind(device_type).host_types
        return _without_kernel(properties.input_types, host_types), _without_kernel(properties.output_types, host_types)
    named = name_ranges(properties.op_def, properties.attrs)
    types = (properties.input_types, properties.output_types)
    inputs, outputs = (
        _with_kernel(kernel, ports, ranges, properties.attrs.get(forced, ()))
        for ports, ranges, forced in zip(types, named, _FORCED, strict=True)
    )
    return inputs, outputs


def _without_kernel(types: Sequence[DataType], host_types: frozenset[DataType]) -> tuple[bool, ...]:
    return tuple(dtype in host_types or always_on_host(dtype) for dtype in types)


def _with_kernel(
    kernel: KernelFacts, types: Sequence[DataType], ranges: dict[str, range], forced: Sequence[int]
) -> tuple[bool, ...]:
    host = {port for name in kernel.host_args if name in ranges for port in ranges[name]}
    return tuple(port in host or port in forced or always_on_host(dtype) for port, dtype in enumerate(types))
