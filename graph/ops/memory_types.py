"""Which inputs and outputs of a node are in host memory on a given type of device.

TensorFlow 2.21 has these in host memory: the arguments that the node's kernel names, strings and resource handles on
any device, and the ports that the attrs `_input_hostmem` and `_output_hostmem` number. A node without a kernel there
has strings, resource handles and the `host_types` of the kind of device (int32 by default) in host memory, whatever its
attrs say. The same holds for calls of functions and functional loops, for which TensorFlow does not look up a kernel.

Results are memoised by op, port types and the few attrs that select a kernel, so that a hundred thousand constants
share one entry.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import DataType, always_on_host
from .device_kinds import device_kind
from .kernel_facts import KernelFacts, deciding_attrs, find_kernel
from .own_kernels import host_args_of_own
from .properties import NodeProperties
from .record import Calls
from .registry import find_op
from .type_inference import name_ranges

MemoryTypes = tuple[tuple[bool, ...], tuple[bool, ...]]

_CALLS = (Calls.CALL, Calls.GRADIENT, Calls.WHILE)  # without conditionals, as in TensorFlow
_FORCED = ("_input_hostmem", "_output_hostmem")
_memo: dict[tuple[object, ...], MemoryTypes] = {}


def memory_types(properties: NodeProperties, device_type: str) -> MemoryTypes:
    """For each input and each output, whether it is in host memory when the node runs on that type of device."""
    attrs = properties.attrs
    names = deciding_attrs(properties.op, device_type) + _FORCED
    values = tuple(map(attrs.find, names))
    # The signature and not its name: different graphs may have different functions of one name.
    kind, own = device_kind(device_type), host_args_of_own(properties.op, device_type)
    key = (properties.op_def, kind, own, properties.input_types, properties.output_types, values)
    types = _memo.get(key)
    if types is None:
        types = _memo[key] = _memory_types(properties, device_type)
    return types


def _memory_types(properties: NodeProperties, device_type: str) -> MemoryTypes:
    is_call = properties.op_def.record.calls in _CALLS or find_op(properties.op) is not properties.op_def
    kernel = None if is_call else find_kernel(properties.op, properties.attrs, device_type)
    if kernel is None:
        host_types = device_kind(device_type).host_types
        return _without_kernel(properties.input_types, host_types), _without_kernel(properties.output_types, host_types)
    ports_of_args = name_ranges(properties.op_def, properties.attrs)
    port_types = (properties.input_types, properties.output_types)
    inputs, outputs = (
        _with_kernel(kernel, types, ranges, properties.attrs.get(forced, ()))
        for types, ranges, forced in zip(port_types, ports_of_args, _FORCED, strict=True)
    )
    return inputs, outputs


def _without_kernel(types: Sequence[DataType], host_types: frozenset[DataType]) -> tuple[bool, ...]:
    return tuple(dtype in host_types or always_on_host(dtype) for dtype in types)


def _with_kernel(
    kernel: KernelFacts, types: Sequence[DataType], ranges: dict[str, range], forced: Sequence[int]
) -> tuple[bool, ...]:
    host = {port for name in kernel.host_args if name in ranges for port in ranges[name]}
    return tuple(port in host or port in forced or always_on_host(dtype) for port, dtype in enumerate(types))
