"""What nodes of one kind do with a holder of tensors: which inputs they put in, which outputs are elements of it.

op                      holding        puts   gives   lists
StackPopV2              TAKES_LAST            0
TensorListPushBack      PUTS           1              0        output 0 is the list with the new element
TensorListPopBack       TAKES_LAST            1       0        output 0 is the list without the element
AddN of variants        SUMS                          0, 1
TensorSliceDataset      PUTS           all                     a value that has what it was made from
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from ....graph.dtypes import REF_OFFSET, DataType, base_type
from ....graph.ops.holders import PUTTING, written_inputs
from ....graph.ops.properties import NodeProperties
from ....graph.ops.record import Holding, NodeClass, OpRecord

_OF_LISTS = (Holding.JOINS, Holding.SUMS, Holding.LIKE)


class HolderOp(NamedTuple):
    """What a node does with a holder. Without `holding` it makes an array whose elements are read once."""

    holding: Holding | None
    puts: tuple[int, ...] = ()
    """ports of the inputs that it puts in"""
    gives: tuple[int, ...] = ()
    """ports of the outputs that are the components of an element"""
    lists: tuple[int, ...] = ()
    """ports of the inputs that are lists"""
    makes_list: bool = False
    """output 0 is a list, or another value that has elements"""
    replaces: bool = False
    """it writes at an index, where an element may be"""
    has_holder: bool = False
    """input 0 is the list, or the handle of the object"""
    counts: int = -1
    """the port of the input that has a row for each piece which it puts in; -1: each row is one"""
    area: Hashable = None
    """the name of the staging area that it uses"""
    source: bytes = b""
    """of the op that makes an array of gradients: the attr that tells several such arrays of one array apart"""


def holder_op(properties: NodeProperties) -> HolderOp | None:
    """What nodes of one kind do with holders; None for most."""
    record, inputs, outputs = properties.op_def.record, properties.input_types, properties.output_types
    holding = record.holding
    lists = tuple(port for port, dtype in enumerate(inputs) if base_type(dtype) is DataType.VARIANT)
    makes_list = bool(outputs) and base_type(outputs[0]) is DataType.VARIANT
    if holding is None:
        if properties.attrs.get("clear_after_read"):
            return HolderOp(None)
        is_value = makes_list and record.element_shape_input < 0 and not _passes_on(record)
        return HolderOp(Holding.PUTS, tuple(range(len(inputs))), makes_list=True) if is_value and inputs else None
    if holding in _OF_LISTS and not makes_list:
        return None
    if holding is Holding.KEEPS:
        return HolderOp(holding, tuple(range(len(inputs))))
    names = [arg.name for arg in properties.op_def.input_args]
    has_object = bool(inputs) and (inputs[0] >= REF_OFFSET or base_type(inputs[0]) is DataType.RESOURCE)
    puts = tuple(written_inputs(properties))
    gets_list = 0 in lists and 0 not in puts
    makes = makes_list and (gets_list or holding in PUTTING) and holding not in (Holding.READS, Holding.PUSHES)
    return HolderOp(
        holding,
        puts,
        _gives(properties, holding, makes_list=makes),
        lists if holding in _OF_LISTS else (0,) if gets_list else (),
        makes,
        "index" in names,
        has_object or gets_list,
        names.index("lengths") if "lengths" in names else -1,
        None if has_object or gets_list or makes else _area(properties),
        properties.attrs.get("source", b""),
    )


def _passes_on(record: OpRecord) -> bool:
    """Whether what a node outputs is what it gets, or what functions give."""
    is_other = record.node_class in (NodeClass.OTHER, NodeClass.NO_OP)
    return record.is_view or record.calls is not None or record.regroups or not is_other


def _gives(properties: NodeProperties, holding: Holding, *, makes_list: bool) -> tuple[int, ...]:
    count = len(properties.output_types)
    match holding:
        case Holding.TAKES_FIRST | Holding.READS | Holding.TAKES_LAST:
            args = properties.op_def.output_args
            has_key = len(args) > 1 and args[0].name == "key"
            return tuple(range(int(makes_list or has_key), count))
        case Holding.TAKES_COPIES:
            return tuple(range(count))
    return ()


def _area(properties: NodeProperties) -> Hashable:
    attrs = properties.attrs
    return (attrs.get("container"), attrs["shared_name"]) if attrs.get("shared_name") else None
