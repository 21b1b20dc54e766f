"""From the properties, output shapes and kind of device of a node to its memory: size, place, buffer of every output.

    MatMul, output (8, 4) of float, on a GPU        128 bytes in its memory, in a buffer of its own
    Reshape of that output, on the same device      128 bytes in its memory, in the buffer of input 0
    Const                                           there for the whole step, and no op may write into it

All nodes with the same properties and kind of device have the same facts, a `MemoryKind`, which are worked out once: a
hundred thousand nodes have a few hundred kinds, on however many equal devices they run. The sizes alone depend on the
shapes too. Memories are numbered. Device k has memory 2 * k ("device"; for a kind of device that computes in the
memory of its host that is the host's), and 2 * k + 1 for what it keeps in the memory of its host ("host").
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal, NamedTuple, cast, get_args

from ....graph.dtypes import DataType, Dims, Shape, base_type, is_ref, item_size
from ....graph.ops.device_kinds import device_kind
from ....graph.ops.memory_types import memory_types
from ....graph.ops.properties import NodeProperties
from ....graph.ops.record import Holding, NodeClass, OpRecord, ReadsHandle, State
from ...device import Device
from .holder_ops import HolderOp, holder_op

MemoryPlace = Literal["device", "host"]
PLACES: tuple[MemoryPlace, ...] = get_args(MemoryPlace)


OWN, DECIDED_LATER = -1, -2
"""instead of the number of an input whose buffer an output has: none, and one that depends on what has happened"""


class MemoryKind(NamedTuple):
    """The facts of one kind of node; the lists are by output."""

    on_host: list[int]
    """1 for what is in the memory of the host though the device has its own"""
    dtype: list[int]
    shares: list[int]
    """the input whose buffer the output has"""
    stated_bytes: list[int] | None
    """of a handle, which counts as its variable: the size that the attrs state"""
    is_variable: bool
    """the first output is a variable, or a handle that counts as its variable"""
    is_fixed: bool
    """a constant, a variable, or fed: nothing may be written into the outputs"""
    is_lasting: bool
    """the outputs are there for the whole step"""
    writes_in_place: bool
    holder: HolderOp | None
    """what it does with lists, stacks, arrays and queues"""
    returns_inputs: bool
    """its inputs are given to the caller"""
    is_merge: bool
    reads_variable: bool
    takes_over: bool
    uses_content: bool
    """it reads or changes the content of the variable whose handle it has"""

    def sizes(self, shapes: Sequence[Shape]) -> list[int]:
        """The bytes of the outputs of a node with these output shapes."""
        return self.stated_bytes or _sizes(shapes, self.dtype)


def memory_kind(properties: NodeProperties, device_type: str) -> MemoryKind:
    """The facts of nodes of these properties on a kind of device."""
    record = properties.op_def.record
    is_handle = record.state is State.VARIABLE and bool(record.handle_shape_attr)
    is_variable = is_handle or record.node_class is NodeClass.VARIABLE
    is_constant = record.node_class is NodeClass.CONSTANT
    is_fed = record.is_placeholder or record.node_class is NodeClass.ARG
    if is_handle:  # the handle is small and on the host; count the variable
        types = [properties.attrs["dtype"]]
        stated = _sizes([properties.attrs[record.handle_shape_attr]], types)
        on_host: Sequence[bool] = [False]
    else:
        types, stated = list(properties.output_types), None
        has_own_memory = device_kind(device_type).own_memory
        on_host = memory_types(properties, device_type)[1] if has_own_memory else [False] * len(types)
    is_merge = record.node_class is NodeClass.MERGE
    reads_variable = record.is_view and record.reads_handle is ReadsHandle.VALUE
    return MemoryKind(
        on_host=list(map(int, on_host)),
        dtype=[base_type(dtype) for dtype in types],
        shares=[DECIDED_LATER] if reads_variable else _shares(properties, record),
        stated_bytes=stated,
        is_variable=is_variable,
        is_fixed=is_variable or is_constant or is_fed,
        is_lasting=is_variable or is_constant,
        writes_in_place=record.in_place,
        holder=holder_op(properties),
        returns_inputs=record.node_class is NodeClass.RETVAL,
        is_merge=is_merge,
        reads_variable=reads_variable,
        takes_over=record.takes_over,
        uses_content=DataType.RESOURCE in properties.input_types and not _passes_handle(record),
    )


def _passes_handle(record: OpRecord) -> bool:
    """Whether a node with the handle of a variable leaves its content alone, or replaces it without a look at it."""
    if record.reads_handle is not None:
        return record.reads_handle is ReadsHandle.SHAPE
    return record.is_view or record.is_transfer or record.takes_over


def _shares(properties: NodeProperties, record: OpRecord) -> list[int]:
    """By output the input whose buffer it has. Both a view and a reference to a variable have that of an input."""
    outputs, inputs = properties.output_types, properties.input_types
    if record.node_class is NodeClass.MERGE:
        return [DECIDED_LATER, *[OWN] * (len(outputs) - 1)]
    if record.holding is Holding.PUSHES:
        return [record.written_input]
    if record.is_view and inputs:
        return list(range(len(outputs))) if record.regroups else [0] * len(outputs)
    variable = next((i for i, dtype in enumerate(inputs) if is_ref(dtype)), OWN)
    return [variable if is_ref(dtype) else OWN for dtype in outputs]


def _sizes(shapes: Sequence[Shape], types: Sequence[int]) -> list[int]:
    return [_bytes(shape, dtype) for shape, dtype in zip(shapes, types, strict=True)]


def _bytes(shape: Shape, dtype: int) -> int:
    """Bytes of a tensor; 0 where a size is not known."""
    if shape is None or None in shape:
        return 0
    return prod(cast(Dims, shape)) * item_size(dtype)


def memory_names(devices: Sequence[str]) -> list[tuple[str, MemoryPlace]]:
    """Device and place of every memory, by number."""
    return [(device, place) for device in devices for place in PLACES]


def address_spaces(devices: Sequence[Device]) -> list[int]:
    """The address space of every memory: the host memory of a task is one, a GPU's own memory is another."""
    spaces: dict[str, int] = {}
    numbers = []
    for device in devices:
        own = device.name if device_kind(device.type).own_memory else device.task_name
        numbers += [spaces.setdefault(name, len(spaces)) for name in (own, device.task_name)]
    return numbers
